import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatPlatform
import LoveseatTesting
import Synchronization
import Testing

// Group in ./test: alone
/// Clients that ask for much, and do not read it.
@Suite(.serialized) struct SlowReaderTests {
    /// How many documents there are, and how many bytes each of them has.
    private static let (count, size) = (200, 40_000)

    private static let keys = (0..<count).map { "\"d\($0)\"" }.joined(separator: ",")
    private static let requests: [(path: String, body: String)] = [
        ("GET /main/_changes?include_docs=true", ""),
        ("GET /main/_changes?include_docs=true&descending=true", ""),
        ("GET /main/_changes?include_docs=true&feed=continuous", ""),
        ("GET /main/_all_docs?include_docs=true", ""),
        ("POST /main/_all_docs?include_docs=true", "{\"keys\":[\(keys)]}"),
        (
            "POST /main/_bulk_get",
            "{\"docs\":[\((0..<count).map { "{\"id\":\"d\($0)\"}" }.joined(separator: ","))]}"
        ),
    ]

    @Test(.timeLimit(.minutes(2)), arguments: requests.indices)
    func `nothing is made for a client that does not read, however large the answer is`(_ index: Int)
        async throws
    {
        let asked = Mutex<Set<String>>([])
        let served = try await ServedDatabase {
            // What is made for a client is asked about first.
            $0.accessPolicy = AccessPolicy { peer, _, document in
                if let document { asked.withLock { _ = $0.insert(document.id) } }
                return .write
            }
        }
        let collection = try served.database.defaultCollection()
        for number in 0..<Self.count {
            var document = Document(
                id: "d\(number)",
                ["t": .string(String(repeating: "x", count: Self.size))]
            )
            try collection.save(&document)
        }
        // The number of documents, which a list begins with, is counted once.
        #expect(try await served.call("GET", "/main/_all_docs?limit=0").status == 200)
        asked.withLock { $0 = [] }
        let (target, body) = Self.requests[index]
        let client = served.client
        let descriptor = try await offPool {
            let descriptor = try client.connect()
            var room: Int32 = 4_096
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
            let head =
                "\(target) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            client.write(Array((head + body).utf8), to: descriptor)
            var first: UInt8 = 0
            #expect(recv(descriptor, &first, 1, 0) == 1)
            return descriptor
        }
        defer { close(descriptor) }
        // Until nothing more is made during twenty other requests.
        var (made, same) = (0, 0)
        while same < 20 {
            #expect(try await served.call("GET", "/main/none").status == 404)
            let now = asked.withLock { $0.count }
            (made, same) = (now, now == made ? same + 1 : 0)
        }
        let name = "\(target): \(made) documents of \(Self.size) bytes"
        #expect(made * Self.size <= 1 << 20, "\(name)")
        #expect(made > 0, "\(name)")
        await served.listener.stop()
    }

    @Test(.timeLimit(.minutes(2)))
    func `an answer that ends its connection comes whole, however slowly it is read`()
        async throws
    {
        let served = try await ServedDatabase()
        let content = [UInt8](repeating: 7, count: 12 << 20)
        let client = served.client
        let saved = try await offPool { try client.send("PUT", "/main/a/x", [], body: content) }
        #expect(saved.status == 201)
        let count = try await offPool {
            let descriptor = try client.connect()
            defer { close(descriptor) }
            var room: Int32 = 32_768
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
            client.write(
                Array("GET /main/a/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8),
                to: descriptor
            )
            var (buffer, count) = ([UInt8](repeating: 0, count: 4_096), 0)
            while true {
                let received = recv(descriptor, &buffer, buffer.count, 0)
                if received <= 0 { return count }
                count += received
            }
        }
        #expect(count > content.count)
        await served.listener.stop()
    }
}
