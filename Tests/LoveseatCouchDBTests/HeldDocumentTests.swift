import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatPlatform
import LoveseatTesting
import Testing

// Group in ./test: alone
/// Large documents are read for as many clients at once as fit in memory.
@Suite(.serialized, .timeLimit(.minutes(2))) struct HeldDocumentTests {
    /// How many bytes all requests may hold, and how many leaves the document has, with how many bytes each.
    private static let (limit, leaves, size) = (16 << 20, 60, 30_000)
    private static let clients = 12

    private static let revisions = (0..<leaves).map { "1-\(String($0, radix: 16))a" }
    private static let requests: [(method: String, path: String, accept: String, body: String)] = [
        ("GET", "/main/leaves?open_revs=all&revs=true", "application/json", ""),
        ("GET", "/main/leaves?open_revs=all", "multipart/mixed", ""),
        ("GET", "/main/wide", "application/json", ""),
        ("POST", "/main/_bulk_get", "application/json", #"{"docs":[{"id":"small"},{"id":"leaves"}]}"#),
        (
            "POST", "/main/_bulk_get", "multipart/mixed",
            #"{"docs":[\#(revisions.map { #"{"id":"leaves","rev":"\#($0)"}"# }.joined(separator: ","))]}"#
        ),
    ]

    private func fill(_ served: ServedDatabase) async throws {
        let text = String(repeating: "x", count: Self.size)
        let leaves = Self.revisions.map { #"{"_id":"leaves","_rev":"\#($0)","t":"\#(text)"}"# }
        let wide = String(repeating: "x", count: Self.leaves * Self.size)
        let docs =
            leaves + [#"{"_id":"wide","_rev":"1-a","t":"\#(wide)"}"#, #"{"_id":"small","_rev":"1-a"}"#]
        let body = Array(#"{"new_edits":false,"docs":[\#(docs.joined(separator: ","))]}"#.utf8)
        let client = served.client
        let answer = try await offPool {
            try client.send("POST", "/main/_bulk_docs", [("Content-Type", "application/json")], body: body)
        }
        #expect(answer.json == [])
    }

    /// Sends a request, and reads its answer's status alone. The caller closes the connection.
    private static func begin(_ index: Int, _ client: RawClient) throws -> (descriptor: Int32, status: Int?) {
        let (method, path, accept, body) = requests[index]
        let descriptor = try client.connect()
        var room: Int32 = 4_096
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
        let head =
            "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nAccept: \(accept)\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        client.write(Array((head + body).utf8), to: descriptor)
        var line = [UInt8](repeating: 0, count: "HTTP/1.1 200".utf8.count)
        let count = recv(descriptor, &line, line.count, Int32(MSG_WAITALL))
        return (descriptor, Int(String(decoding: line.prefix(max(count, 0)).suffix(3), as: UTF8.self)))
    }

    @Test(arguments: requests.indices)
    func `clients that do not read hold as much as the limit allows, and give it back`(_ index: Int)
        async throws
    {
        let served = try await ServedDatabase {
            $0.heldBytes = Self.limit
            $0.maximumRequestSize = Self.limit
        }
        try await fill(served)
        let client = served.client
        let begun = try await offPool { try (0..<Self.clients).map { _ in try Self.begin(index, client) } }
        let statuses = begun.map(\.status)
        let held = statuses.count { $0 == 200 }
        #expect(statuses.first == 200)
        #expect(statuses.allSatisfy { $0 == 200 || $0 == 503 }, "\(statuses)")
        // Each has the document once at least.
        #expect(held * Self.leaves * Self.size <= Self.limit, "\(statuses)")
        // Small requests are served meanwhile.
        #expect(try await served.call("GET", "/main/small").status == 200)
        for (descriptor, _) in begun { close(descriptor) }
        // A connection may have ended shortly before its memory is given back.
        var status: Int?
        repeat {
            let again = try await offPool { try Self.begin(index, client) }
            close(again.descriptor)
            status = again.status
        } while status == 503
        #expect(status == 200)
        await served.listener.stop()
    }
}
