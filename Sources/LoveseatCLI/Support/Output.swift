import Foundation
import Loveseat
import Synchronization

/// Standard output, buffered.
final class Output: Sendable {
    /// Nobody reads any more.
    struct Gone: Error {}

    static let standard = Output()
    private let buffer = Mutex<[UInt8]>([])

    /// Writes text and a line's end.
    func line(_ text: some Sequence<UInt8>) throws {
        try buffer.withLock { buffer in
            buffer.append(contentsOf: text)
            buffer.append(UInt8(ascii: "\n"))
            if buffer.count > 64 << 10 { try Self.write(&buffer) }
        }
    }

    func line(_ text: String) throws { try line(text.utf8) }

    func line(_ value: JSONValue) throws { try line(value.description.utf8) }

    /// Writes bytes as they are.
    func raw(_ bytes: some Sequence<UInt8>) throws {
        try buffer.withLock { buffer in
            buffer.append(contentsOf: bytes)
            if buffer.count > 64 << 10 { try Self.write(&buffer) }
        }
    }

    func flush() throws { try buffer.withLock { try Self.write(&$0) } }

    private static func write(_ buffer: inout [UInt8]) throws {
        var written = 0
        while written < buffer.count {
            let count = buffer.withUnsafeBytes {
                Foundation.write(1, $0.baseAddress.map { $0 + written }, $0.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                buffer = []
                guard errno != EPIPE else { throw Gone() }
                throw LoveseatError(.ioError, "cannot write: \(String(cString: strerror(errno)))")
            }
            written += count
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Writes a remark to standard error.
    static func remark(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
