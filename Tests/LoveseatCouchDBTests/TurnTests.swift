import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: alone
/// The parts of long answers are made when it is their turn.
@Suite(.serialized, .timeLimit(.minutes(1))) struct TurnTests {
    /// Requests whose answers have several parts, with how many times a text is in them.
    private static let requests:
        [(method: String, path: String, accept: String, body: String, text: String, count: Int)] = [
            ("POST", "/main/_find", "*/*", #"{"selector":{"kind":"none"}}"#, "_id", 0),
            ("POST", "/main/_find", "*/*", #"{"selector":{"kind":"k"},"limit":1000}"#, "\"_id\"", 700),
            ("GET", "/main/_changes?include_docs=true", "*/*", "", "\"doc\":{", 701),
            ("GET", "/main/_changes", "*/*", "", "\"seq\":", 701),
            ("GET", "/main/leaves?open_revs=all", "application/json", "", "\"ok\":{", 300),
            ("GET", "/main/leaves?open_revs=all", "multipart/mixed", "", "\"_rev\":\"1-", 300),
        ]

    private func fill(_ served: ServedDatabase) async throws {
        let collection = try served.database.defaultCollection()
        try collection.save((0..<700).map { Document(id: "d\($0)", ["kind": "k"]) })
        // More than a megabyte, so that an answer in parts makes some of its texts twice.
        let text = String(repeating: "x", count: 5_000)
        for start in [0, 150] {
            let leaves = (start..<start + 150).map { number in
                #"{"_id":"leaves","_rev":"1-\#(String(number, radix: 16))a","t":"\#(text)"}"#
            }
            let client = served.client
            let body = Array(#"{"new_edits":false,"docs":[\#(leaves.joined(separator: ","))]}"#.utf8)
            let answer = try await offPool {
                try client.send(
                    "POST",
                    "/main/_bulk_docs",
                    [("Content-Type", "application/json")],
                    body: body
                )
            }
            #expect(answer.json == [])
        }
    }

    @Test(arguments: requests.indices)
    func `a long answer waits while others have their turn, and is whole then`(_ index: Int) async throws {
        let (method, path, accept, body, text, count) = Self.requests[index]
        let served = try await ServedDatabase()
        try await fill(served)
        let (client, workers) = (served.client, BodyWorkers.shared)
        let (started, start) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        var holders: [Task<Void, any Error>] = []
        var starts = started.makeAsyncIterator()
        // All places are taken by somebody else.
        for _ in 0..<BodyWorkers.sharedPlaces {
            holders.append(
                Task {
                    try await workers.turn(of: "somebody else", done: 0) {
                        start.yield()
                        gate.wait()
                    }
                }
            )
            await starts.next()
        }
        let request = Task {
            try await offPool {
                let headers =
                    [("Accept", accept)] + (body.isEmpty ? [] : [("Content-Type", "application/json")])
                return try client.send(method, path, headers, body: body.isEmpty ? nil : Array(body.utf8))
            }
        }
        while (workers.waiting(of: "127.0.0.1") ?? 0) == 0 { await Task.yield() }
        for _ in holders { gate.signal() }
        for holder in holders { try await holder.value }
        let answer = try await request.value
        #expect(answer.status == 200)
        #expect(answer.text.ranges(of: text).count == count)
        await served.listener.stop()
    }
}
