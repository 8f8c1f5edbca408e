import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// How many revisions a listener names (`_revs_limit`).
struct RevisionLimitTests {
    private func edit(_ served: ServedDatabase, _ count: Int, over revision: String?) async throws -> String {
        var revision = revision
        for number in 0..<count {
            var document: JSONValue = ["n": JSONValue(number)]
            if let revision { document["_rev"] = .string(revision) }
            revision = try await served.call("PUT", "/main/d", document).json["rev"]?.string
        }
        return revision ?? ""
    }

    /// The revisions that are named in each way.
    private func named(_ served: ServedDatabase, _ revision: String) async throws -> [[String]] {
        func names(_ value: JSONValue?) -> [String] {
            let start = value?["start"].flatMap { Int($0.description) } ?? 0
            return (value?["ids"]?.array ?? []).enumerated().map { "\(start - $0)-\($1.string ?? "")" }
        }
        let winner = try await served.call("GET", "/main/d?revs=true&revs_info=true").json
        let own = try await served.call("GET", "/main/d?rev=\(revision)&revs=true").json
        let open = try await served.call(
            "GET",
            "/main/d?open_revs=%5B%22\(revision)%22%5D&revs=true",
            nil,
            [("Accept", "application/json")]
        ).json
        let bulk = try await served.call(
            "POST",
            "/main/_bulk_get?revs=true",
            ["docs": [["id": "d", "rev": .string(revision)]]]
        ).json
        var all = [own, open[0]?["ok"], bulk["results"]?[0]?["docs"]?[0]?["ok"]].map {
            names($0?["_revisions"])
        }
        if winner["_rev"]?.string.isExactly(revision) == true {
            all.append(names(winner["_revisions"]))
            all.append((winner["_revs_info"]?.array ?? []).compactMap { $0["rev"]?.string })
        }
        return all
    }

    @Test(arguments: [50, 51, 60, 99, 100, 101, 120])
    func `as many revisions are named as the limit says, also after it was lowered`(_ limit: Int) async throws
    {
        let served = try await ServedDatabase()
        var revision = try await edit(served, 110, over: nil)
        let before = try await named(served, revision)
        #expect(before.allSatisfy { $0.count == 110 && $0 == before[0] })
        #expect(before.count == 5)
        #expect(try await served.call("PUT", "/main/_revs_limit", JSONValue(limit)).status == 200)
        for count in [110, 111, 113] {
            if count > 110 { revision = try await edit(served, count == 111 ? 1 : 2, over: revision) }
            for names in try await named(served, revision) {
                #expect(names.count == min(count, limit))
                #expect(names.first == revision)
            }
        }
        await served.listener.stop()
    }

    @Test func `a version that lost is listed with all its ancestors, however often the other is edited`()
        async throws
    {
        let served = try await ServedDatabase()
        #expect(try await served.call("PUT", "/main/_revs_limit", 120).status == 200)
        func ids(_ mark: String, _ range: ClosedRange<Int>) -> [JSONValue] {
            range.reversed().map { .string("\(mark)\($0)") }
        }
        let (lost, won) = (ids("aa", 1...90), ids("bb", 21...95) + ids("aa", 1...20))
        for (start, ids) in [(90, lost), (95, won)] {
            let document: JSONValue = [
                "_id": "d", "_revisions": ["start": JSONValue(start), "ids": .array(ids)],
            ]
            let answer = try await served.call(
                "POST",
                "/main/_bulk_docs",
                ["new_edits": false, "docs": [document]]
            )
            #expect(answer.json == [])
        }
        var revision = "95-bb95"
        for _ in 0..<4 {
            revision = try await edit(served, 60, over: revision)
            for names in try await named(served, "90-aa90") {
                #expect(names == lost.enumerated().map { "\(90 - $0)-\($1.string ?? "")" })
            }
            for names in try await named(served, revision) { #expect(names.count == 120) }
        }
        await served.listener.stop()
    }
}
