import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Requests that name a document more than once.
@Suite(.timeLimit(.minutes(1)))
struct RepeatedNamesTests {
    @Test(arguments: ["_revs_diff", "_missing_revs"])
    func `the answer has one row for a document that is named twice, with the revisions of both`(
        _ endpoint: String
    ) async throws {
        let served = try await ServedDatabase()
        // The second naming is in another part of the work.
        let others = (0..<500).map { #","d\#($0)":["1-a"]"# }.joined()
        let body = #"{"x":["1-a","1-b"]\#(others),"x":["1-b","1-c"]}"#
        let client = served.client
        let answer = try await offPool {
            try client.send(
                "POST",
                "/main/\(endpoint)",
                [("Content-Type", "application/json")],
                body: Array(body.utf8)
            )
        }
        #expect(answer.status == 200)
        #expect(answer.text.ranges(of: "\"x\":").count == 1)
        let missing = answer.json["x"]?["missing"] ?? answer.json["missing_revs"]?["x"]
        #expect(missing == ["1-a", "1-b", "1-c"])
        await served.listener.stop()
    }
}
