import Foundation
import Loveseat
import Synchronization

/// Standard output, buffered.
final class Output: Sendable {
    /// The reader has gone.
    struct Gone: Error {}

    static let standard = Output()
    private let buffer = Mutex<[UInt8]>([])
    private let wasUsed = Atomic(false)
    private static let quiet = Atomic(false)

    /// Whether nothing has been written.
    var isUnused: Bool { buffer.withLock { $0.isEmpty } && !wasUsed.load(ordering: .relaxed) }

    /// Counts as written to from now on.
    func reserve() { wasUsed.store(true, ordering: .relaxed) }

    /// Writes text and a line's end.
    func line(_ text: some Sequence<UInt8>) throws {
        try buffer.withLock { buffer in
            buffer.append(contentsOf: text)
            buffer.append(UInt8(ascii: "\n"))
            if buffer.count > 64 << 10 { try write(&buffer) }
        }
    }

    /// Writes one piece of text. Control characters in it are escaped.
    func line(_ text: String) throws { try line(text.printable.utf8) }

    /// Writes text of several lines. Control characters in them are escaped.
    func lines(_ text: String) throws {
        for part in text.split(separator: "\n", omittingEmptySubsequences: false) { try line(String(part)) }
    }

    /// Writes pieces of text with tabs in between. Control characters in them are escaped.
    func fields(_ fields: String...) throws { try self.fields(fields) }

    func fields(_ fields: [String]) throws {
        try line(fields.map(\.printable).joined(separator: "\t").utf8)
    }

    /// Writes JSON, with those control characters escaped that JSON itself allows in strings.
    func line(_ value: JSONValue) throws { try json(value.description) }

    /// Writes JSON text, which may have several lines.
    func json(_ text: String) throws { try line(text.printableJSON.utf8) }

    /// Writes JSON text byte for byte, with only terminal control characters escaped.
    func stored(_ bytes: [UInt8]) throws {
        if isTerminal { try json(String(decoding: bytes, as: UTF8.self)) } else { try line(bytes) }
    }

    private let isTerminal = isatty(1) == 1

    /// Writes bytes as they are.
    func raw(_ bytes: some Sequence<UInt8>) throws {
        try buffer.withLock { buffer in
            buffer.append(contentsOf: bytes)
            if buffer.count > 64 << 10 { try write(&buffer) }
        }
    }

    /// Checks that standard output is still read, which only writing would tell otherwise.
    ///
    /// - Throws: ``Gone`` if it is not.
    func checkReader() throws {
        var output = pollfd(fd: 1, events: 0, revents: 0)
        if poll(&output, 1, 0) == 1, output.revents & Int16(POLLERR) != 0 { throw Gone() }
    }

    func flush() throws { try buffer.withLock { try write(&$0) } }

    private func write(_ buffer: inout [UInt8]) throws {
        if !buffer.isEmpty { wasUsed.store(true, ordering: .relaxed) }
        try Self.write(&buffer)
    }

    private static func write(_ buffer: inout [UInt8], to descriptor: Int32 = 1) throws {
        do { try write(all: buffer, to: descriptor) } catch {
            buffer = []
            throw error
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Writes bytes to an open file. `place`: its name in messages; nil for standard output.
    ///
    /// - Throws: ``Gone`` if its reader is gone; `ioError`.
    static func write(all bytes: [UInt8], to descriptor: Int32, _ place: String? = nil) throws {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                guard errno != EPIPE else { throw Gone() }
                let reason = String(cString: strerror(errno))
                throw LoveseatError(.ioError, "cannot write\(place.map { " \($0)" } ?? ""): \(reason)")
            }
            written += count
        }
    }

    /// From now on there are no notices.
    static func beQuiet() { quiet.store(true, ordering: .relaxed) }

    /// Writes what may be left out to standard error: not with `--quiet`.
    static func notice(_ text: String) { notice(raw: text.printable + "\n") }

    /// Likewise, as it is.
    static func notice(raw text: String) { if !quiet.load(ordering: .relaxed) { remark(raw: text) } }

    /// Writes an error, a warning or a question to standard error.
    static func remark(_ text: String) { remark(raw: text.printable + "\n") }

    /// Writes text to standard error as it is. If it is closed, the work continues.
    static func remark(raw text: String) {
        var bytes = Array(text.utf8)
        try? write(&bytes, to: 2)
    }
}

extension String {
    /// The text with every character escaped that could make a terminal do something, a line's end among them.
    var printable: String { escaping { $0.value < 0x20 || $0.isTerminalCommand } }

    /// JSON text with the same characters escaped where JSON allows them in strings.
    var printableJSON: String { escaping(\.isTerminalCommand) }

    private func escaping(_ isEscaped: (Unicode.Scalar) -> Bool) -> String {
        guard unicodeScalars.contains(where: isEscaped) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if isEscaped(scalar) {
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension Unicode.Scalar {
    /// DEL and the C1 controls, and what changes the direction or the lines of text around it.
    fileprivate var isTerminalCommand: Bool {
        switch value {
        case 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
