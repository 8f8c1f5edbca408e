import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: alone
/// Documents that were edited often: their ancestors are read only for a request that asks for them.
@Suite(.serialized) struct LongLineTests {
    private func edit(_ served: ServedDatabase, _ count: Int) async throws -> [String] {
        let collection = try served.database.defaultCollection()
        var document = Document(id: "d", ["n": 0])
        var revisions: [String] = []
        for number in 0..<count {
            document["n"] = JSONValue(number)
            try collection.save(&document)
            revisions.append(try #require(document.revisionID?.text))
        }
        return revisions
    }

    private func median(_ count: Int, _ body: () async throws -> Void) async throws -> Duration {
        var times: [Duration] = []
        for _ in 0..<count {
            let start = ContinuousClock.now
            try await body()
            times.append(.now - start)
        }
        return times.sorted()[count / 2]
    }

    @Test(.timeLimit(.minutes(3)))
    func `requests take as long for a document with a thousand ancestors as for one without`() async throws {
        let served = try await ServedDatabase()
        let current = try #require(try await edit(served, 1_500).last)
        let one = try #require(try await served.call("PUT", "/main/one", ["n": 1]).json["rev"]?.string)
        let requests: [(String, String, (String, String) -> JSONValue?)] = [
            ("GET", "/main/ID", { _, _ in nil }), ("GET", "/main/ID?rev=REV", { _, _ in nil }),
            ("GET", "/main/ID?conflicts=true", { _, _ in nil }),
            ("POST", "/main/_revs_diff", { JSONValue(dictionaryLiteral: ($0, [.string($1)])) }),
            ("POST", "/main/_revs_diff", { id, _ in JSONValue(dictionaryLiteral: (id, ["1501-a"])) }),
            ("POST", "/main/_all_docs?include_docs=true", { id, _ in ["keys": [.string(id)]] }),
            ("POST", "/main/_bulk_get", { ["docs": [["id": .string($0), "rev": .string($1)]]] }),
        ]
        for (method, path, body) in requests {
            func time(_ id: String, _ revision: String) async throws -> Duration {
                let path = path.replacing("ID", with: id).replacing("REV", with: revision)
                return try await median(41) {
                    let answer = try await served.call(method, path, body(id, revision))
                    #expect(answer.status == 200)
                }
            }
            let (long, short) = (try await time("d", current), try await time("one", one))
            // Reading a thousand ancestors takes three milliseconds and more; the request itself much less than one.
            #expect(
                long < short * 2 + .milliseconds(1),
                "\(method) \(path): \(long), \(short) for a new document"
            )
        }
        await served.listener.stop()
    }

    @Test(.timeLimit(.minutes(3))) func `all of a long line is there for a request that asks for it`()
        async throws
    {
        let served = try await ServedDatabase()
        let revisions = try await edit(served, 400)
        let current = try #require(revisions.last)
        let names = JSONValue.array(revisions.map { .string($0) })
        #expect(try await served.call("POST", "/main/_revs_diff", ["d": names]).json == [:])
        for index in [0, 1, 200, 330, 370, 385, 398] {
            let old = revisions[index]
            let diff = try await served.call("POST", "/main/_revs_diff", ["d": [.string(old)]]).json
            #expect(diff == [:], "revision \(index)")
            let latest = try await served.call("GET", "/main/d?rev=\(old)&latest=true").json
            #expect(latest["_rev"]?.string == current, "revision \(index)")
            let open = try await served.call(
                "GET",
                "/main/d?open_revs=%5B%22\(old)%22%5D&latest=true",
                nil,
                [("Accept", "application/json")]
            ).json
            #expect(open[0]?["ok"]?["_rev"]?.string == current, "revision \(index)")
            let bulk = try await served.call(
                "POST",
                "/main/_bulk_get?latest=true",
                ["docs": [["id": "d", "rev": .string(old)]]]
            ).json
            #expect(bulk["results"]?[0]?["docs"]?[0]?["ok"]?["_rev"]?.string == current, "revision \(index)")
        }
        let strange = try await served.call("POST", "/main/_revs_diff", ["d": ["200-a", "401-b"]]).json
        #expect(strange["d"]?["missing"] == ["200-a", "401-b"])
        #expect(strange["d"]?["possible_ancestors"] == [.string(current)])
        let whole = try await served.call("GET", "/main/d?revs=true&revs_info=true").json
        #expect(whole["_revisions"]?["ids"]?.array?.count == 400)
        #expect(whole["_revs_info"]?.array?.count == 400)
        #expect(whole["_revs_info"]?[0]?["status"] == "available")
        await served.listener.stop()
    }
}
