import Foundation
import LoveseatPlatform
import Synchronization

/// A test's server could not be reached or started.
struct NoAnswer: Error {}

/// A server that answers byte for byte what a test says.
final class RawServer: Sendable {
    struct Request: Sendable {
        let method: String
        let target: String
        let headers: [String: String]
        let body: [UInt8]
    }

    /// What is sent for a request; nil closes the connection.
    enum Reply: Sendable {
        case bytes([UInt8])
        /// Bytes, after which the server closes.
        case last([UInt8])
        /// Bytes, and then others again and again until the client closes.
        case endless([UInt8], then: [UInt8])
        /// Nothing until the client closes.
        case silence
    }

    let port: UInt16
    private let descriptor: Int32
    private let log = Mutex<[Request]>([])

    var requests: [Request] { log.withLock { $0 } }

    static func json(_ status: Int, _ text: String, _ headers: [String] = []) -> Reply {
        let lines = headers.map { $0 + "\r\n" }.joined()
        return .bytes(
            Array(
                "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\n\(lines)Content-Length: \(text.utf8.count)\r\n\r\n\(text)"
                    .utf8
            )
        )
    }

    init(_ answer: @escaping @Sendable (Request) -> Reply?) throws {
        let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                let bound = LoveseatPlatform.bind(listening, pointer, length)
                return bound == 0 ? getsockname(listening, pointer, &length) : bound
            }
        }
        guard result == 0, listen(listening, 32) == 0 else { throw NoAnswer() }
        descriptor = listening
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [weak self] in
            while true {
                let connection = accept(listening, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread { [weak self] in
                    Self.serve(connection) { request in
                        self?.log.withLock { $0.append(request) }
                        return answer(request)
                    }
                    close(connection)
                }
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    private static func serve(_ connection: Int32, _ answer: (Request) -> Reply?) {
        var bytes: [UInt8] = []
        while let request = read(connection, &bytes) {
            switch answer(request) {
            case nil: return
            case .bytes(let reply)?: guard write(connection, reply) else { return }
            case .last(let reply)?:
                _ = write(connection, reply)
                return
            case .endless(let head, let again)?:
                guard write(connection, head) else { return }
                while write(connection, again) {}
                return
            case .silence?:
                var byte: UInt8 = 0
                _ = recv(connection, &byte, 1, 0)
                return
            }
        }
    }

    private static func write(_ connection: Int32, _ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(connection, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private static func read(_ connection: Int32, _ bytes: inout [UInt8]) -> Request? {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        func more() -> Bool {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            bytes += buffer[..<count]
            return true
        }
        var end = bytes.firstRange(of: Array("\r\n\r\n".utf8))
        while end == nil {
            guard more() else { return nil }
            end = bytes.firstRange(of: Array("\r\n\r\n".utf8))
        }
        guard let end else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 {
                headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
            }
        }
        let length = Int(headers["content-length"] ?? "") ?? 0
        while bytes.count < end.upperBound + length { guard more() else { return nil } }
        let body = Array(bytes[end.upperBound..<(end.upperBound + length)])
        bytes.removeFirst(end.upperBound + length)
        let words = lines[0].split(separator: " ").map(String.init)
        guard words.count == 3 else { return nil }
        return Request(method: words[0], target: words[1], headers: headers, body: body)
    }
}

extension RawServer {
    /// Answers like an empty database, but for what a test says.
    static func emptyDatabase(_ request: Request, _ special: (Request) -> Reply? = { _ in nil }) -> Reply? {
        if let reply = special(request) { return reply }
        let path = request.target.prefix { $0 != "?" }
        switch path {
        case "/":
            return json(200, #"{"couchdb":"Welcome","uuid":"0123456789abcdef0123456789abcdef"}"#)
        case "/db/": return json(200, #"{"db_name":"db","update_seq":1,"instance_start_time":"0"}"#)
        case "/db/_changes": return json(200, #"{"results":[],"last_seq":"1-a"}"#)
        case "/db/_revs_diff": return json(200, "{}")
        case _ where path.hasPrefix("/db/_local/") && request.method == "PUT":
            return json(201, #"{"ok":true,"rev":"0-1"}"#)
        default: return json(404, #"{"error":"not_found","reason":"missing"}"#)
        }
    }
}
