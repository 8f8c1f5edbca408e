import Foundation
import Loveseat
import Synchronization

/// Standard output and standard error.
enum Output {
    /// The reader of standard output has gone.
    struct Gone: Error {}

    private static let lock = Mutex(())

    /// Writes a line to standard output at once. Control characters are escaped.
    static func line(_ text: String) throws {
        try lock.withLock { _ in try write(text.printable + "\n", to: 1) }
    }

    /// Writes a JSON object as a line.
    static func line(_ json: JSONObject) throws { try line("\(JSONValue.object(json))") }

    /// Writes lines of a picture to standard output as they are.
    static func picture(_ lines: [String]) throws {
        try lock.withLock { _ in try write(lines.joined(separator: "\n") + "\n", to: 1) }
    }

    /// Writes a remark to standard error. If that is closed, the work continues.
    static func remark(_ text: String) { remark(raw: text.printable + "\n") }

    /// Writes text to standard error as it is.
    static func remark(raw text: String) {
        lock.withLock { _ in try? write(text, to: 2) }
    }

    private static func write(_ text: String, to descriptor: Int32) throws {
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Gone() }
            written += count
        }
    }
}

extension String {
    /// The text with every character escaped that could make a terminal do something, a line's end among them.
    var printable: String {
        guard unicodeScalars.contains(where: \.isTerminalCommand) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isTerminalCommand {
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension Unicode.Scalar {
    /// Control characters, and what changes the direction or the lines of text around it.
    fileprivate var isTerminalCommand: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

/// Numbers of bytes for people.
enum ByteText {
    static func text(_ bytes: UInt64) -> String {
        guard bytes >= 1_000 else { return "\(bytes) B" }
        var value = Double(bytes)
        for unit in ["kB", "MB", "GB", "TB"] {
            value /= 1_000
            if value < 999.95 { return "\((value * 10).rounded() / 10) \(unit)" }
        }
        return "\(value.rounded()) TB"
    }
}
