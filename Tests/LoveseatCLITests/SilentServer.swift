import Foundation
import Testing

/// A TCP server that accepts one connection, hears what a client says first, and never answers.
final class SilentServer {
    let port: UInt16
    private let listener: Int32

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 8) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(isListening)
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(listener) }

    /// Waits for a client, and returns the head of its request.
    func hear() throws -> (connection: Int32, head: String) {
        let connection = accept(listener, nil, nil)
        try #require(connection >= 0)
        var head: [UInt8] = []
        while !String(decoding: head, as: UTF8.self).contains("\r\n\r\n") {
            var piece = [UInt8](repeating: 0, count: 4_096)
            let count = read(connection, &piece, piece.count)
            try #require(count > 0)
            head += piece[..<count]
        }
        return (connection, String(decoding: head, as: UTF8.self))
    }
}
