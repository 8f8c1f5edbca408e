import Foundation
import LoveseatPlatform

/// A client that sends requests byte for byte, one connection each.
package struct RawClient: Sendable {
    package let port: UInt16

    package init(port: UInt16) { self.port = port }

    package struct Answer: Sendable {
        package var status = 0
        package var headers: [String: String] = [:]
        /// All headers, in order, with names in lower case.
        package var fields: [(name: String, value: String)] = []
        package var body: [UInt8] = []
        package var text: String { String(decoding: body, as: UTF8.self) }
        package init() {}
        package func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }
    }

    package struct Failure: Error {}

    package func send(
        _ method: String,
        _ path: String,
        _ headers: [(String, String)] = [],
        body: [UInt8]? = nil,
        chunks: [[UInt8]]? = nil
    ) throws -> Answer {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
        for (name, value) in headers where chunks == nil || name.lowercased() != "transfer-encoding" {
            head += "\(name): \(value)\r\n"
        }
        var bytes: [UInt8] = []
        if let chunks {
            head += "Transfer-Encoding: chunked\r\n\r\n"
            for chunk in chunks {
                bytes += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]
            }
            bytes += Array("0\r\n\r\n".utf8)
        } else {
            let isBodiless = body == nil && ["GET", "HEAD", "DELETE", "OPTIONS", "COPY"].contains(method)
            head += (isBodiless ? "" : "Content-Length: \(body?.count ?? 0)\r\n") + "\r\n"
            bytes = body ?? []
        }
        return try Self.parse(exchange(Array(head.utf8) + bytes), isHead: method == "HEAD")
    }

    /// Sends bytes, and returns what comes until the other side closes.
    package func exchange(_ bytes: [UInt8]) throws -> [UInt8] {
        let descriptor = try connect()
        defer { close(descriptor) }
        write(bytes, to: descriptor)
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return all }
            all += buffer[..<count]
        }
    }

    /// Sends a request that need not be complete, and returns the first bytes of the answer.
    ///
    /// `pieces`: how many bytes are sent at once.
    package func beginning(of request: String, pieces: Int = .max) throws -> String {
        let descriptor = try connect()
        defer { close(descriptor) }
        var flag: Int32 = 1
        setsockopt(
            descriptor,
            Int32(IPPROTO_TCP),
            TCP_NODELAY,
            &flag,
            socklen_t(MemoryLayout<Int32>.size)
        )
        var rest = Array(request.utf8)[...]
        while !rest.isEmpty {
            write(Array(rest.prefix(pieces)), to: descriptor)
            rest = rest.dropFirst(pieces)
        }
        var buffer = [UInt8](repeating: 0, count: 1_024)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    package func write(_ bytes: [UInt8], to descriptor: Int32) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                LoveseatPlatform.send(
                    descriptor,
                    $0.baseAddress.map { $0 + sent },
                    bytes.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
            }
            // The server may refuse what is too large before it has read it.
            guard count > 0 else { break }
            sent += count
        }
    }

    /// Opens a connection; the caller closes it. Reading from it ends after 60 s of silence.
    package func connect() throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure() }
        var wait = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                LoveseatPlatform.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failure() }
        return descriptor
    }

    package static func parse(_ bytes: [UInt8], isHead: Bool) throws -> Answer {
        var rest = bytes[...]
        var answer = Answer()
        repeat {
            guard let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) else { throw Failure() }
            let lines = String(decoding: rest[..<end.lowerBound], as: UTF8.self).components(
                separatedBy: "\r\n"
            )
            answer.status = Int(lines[0].split(separator: " ").dropFirst().first ?? "") ?? 0
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                guard parts.count == 2 else { continue }
                let value = parts[1].trimmingCharacters(in: .whitespaces)
                answer.headers[parts[0].lowercased()] = value
                answer.fields.append((parts[0].lowercased(), value))
            }
            rest = rest[end.upperBound...]
        } while answer.status == 100
        guard !isHead else { return answer }
        guard answer.headers["transfer-encoding"] == "chunked" else {
            answer.body = Array(rest)
            return answer
        }
        while let end = rest.firstRange(of: [13, 10]) {
            let size = Int(String(decoding: rest[..<end.lowerBound], as: UTF8.self), radix: 16) ?? 0
            rest = rest[end.upperBound...]
            guard size > 0, rest.count >= size else { break }
            answer.body += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
        return answer
    }
}

/// Runs blocking code on a thread of its own.
package func offPool<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
