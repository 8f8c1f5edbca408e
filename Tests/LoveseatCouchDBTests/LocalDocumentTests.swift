import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Local documents with odd revisions and IDs.
struct LocalDocumentTests {
    private static let highest = "0-9007199254740991"

    @Test func `a local document gets no revision that cannot be named afterwards`() async throws {
        let served = try await ServedDatabase()
        let first = try await served.call("PUT", "/main/_local/a", ["_rev": "0-9007199254740990", "n": 1])
        #expect(first.json["rev"] == .string(Self.highest))
        for revision in [
            Self.highest, "0-9007199254740992", "0-9223372036854775807", "0-99999999999999999999",
        ] {
            let answer = try await served.call("PUT", "/main/_local/a", ["_rev": .string(revision), "n": 2])
            #expect(answer.status == 400, "\(revision): \(answer.text)")
            let row = try await served.call(
                "POST",
                "/main/_bulk_docs",
                ["docs": [["_id": "_local/a", "_rev": .string(revision)]]]
            )
            #expect(row.json[0]?["ok"] == nil, "\(revision): \(row.text)")
            if revision == Self.highest {
                #expect(row.status == 201)
                #expect(row.json[0]?["error"] == "bad_request")
            }
        }
        let kept = try await served.call("GET", "/main/_local/a").json
        #expect(kept["n"] == 1)
        #expect(kept["_rev"] == .string(Self.highest))
        let named = try await served.call(
            "PUT",
            "/main/_local/a?new_edits=false",
            ["_rev": .string(Self.highest), "n": 3]
        )
        #expect(named.json["rev"] == .string(Self.highest))
        // Without a revision, it begins anew.
        #expect(try await served.call("PUT", "/main/_local/a", ["n": 4]).json["rev"] == "0-1")
        await served.listener.stop()
    }

    @Test func `a slash in the ID of a local document is encoded, as with CouchDB`() async throws {
        let served = try await ServedDatabase()
        for path in ["_local/x/y", "_local%2Fx/y"] {
            for method in ["GET", "PUT", "DELETE"] {
                let answer = try await served.call(method, "/main/\(path)", method == "PUT" ? [:] : nil)
                #expect(answer.status == 400, "\(method) \(path): \(answer.text)")
            }
        }
        #expect(try await served.call("PUT", "/main/_local/x%2Fy", ["n": 1]).json["id"] == "_local/x/y")
        #expect(try await served.call("GET", "/main/_local%2Fx%2Fy").json["n"] == 1)
        await served.listener.stop()
    }
}
