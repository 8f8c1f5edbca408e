import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// What a revision said can be read after it was replaced, until a compaction.
struct ReplacedRevisionTests {
    /// The ways in which a revision is asked for by its name.
    private static func read(_ id: String, _ revision: String, _ served: ServedDatabase) async throws
        -> [JSONValue?]
    {
        let single = try await served.call("GET", "/main/\(id)?rev=\(revision)")
        let open = try await served.call(
            "GET",
            "/main/\(id)?open_revs=%5B%22\(revision)%22%5D",
            nil,
            [("Accept", "application/json")]
        )
        let bulk = try await served.call(
            "POST",
            "/main/_bulk_get",
            ["docs": [["id": .string(id), "rev": .string(revision)]]]
        )
        return [
            single.status == 200 ? single.json : JSONValue?.none, open.json[0]?["ok"],
            bulk.json["results"]?[0]?["docs"]?[0]?["ok"],
        ]
    }

    @Test
    func `every revision says what its author wrote, whichever way it came, and nothing after a compaction`()
        async throws
    {
        for seed in PropertySeeds.of("REPLACED", 12) {
            var random = SeededGenerator(seed: seed)
            let served = try await ServedDatabase()
            let collection = try served.database.defaultCollection()
            var said: [String: [String: JSONValue]] = [:]
            func revisions(_ id: String) async throws -> [String] {
                let leaves = try await served.call(
                    "GET",
                    "/main/\(id)?open_revs=all",
                    nil,
                    [("Accept", "application/json")]
                )
                return (leaves.json.array ?? []).compactMap { $0["ok"] }.filter { $0["_deleted"] != true }
                    .compactMap { $0["_rev"]?.string }
            }
            for step in 0..<40 {
                let id = "d\(Int.random(in: 0..<3, using: &random))"
                let content: JSONValue = [1, "é", nil, [["x": 2.5]]][Int.random(in: 0..<4, using: &random)]
                let leaves = try await revisions(id)
                var made: String?
                switch Int.random(in: 0..<5, using: &random) {
                case 0:
                    var document = try collection.document(id: id) ?? Document(id: id)
                    document["n"] = content
                    document["step"] = JSONValue(step)
                    try collection.save(&document)
                    made = document.revisionID?.text
                case 1:
                    let name = "\(Int.random(in: 1...3, using: &random))-\(step)f"
                    let document: JSONValue = [
                        "_id": .string(id), "_rev": .string(name), "n": content, "step": JSONValue(step),
                    ]
                    _ = try await served.call(
                        "POST",
                        "/main/_bulk_docs",
                        ["new_edits": false, "docs": [document]]
                    )
                    made = name
                case 2:
                    guard let leaf = leaves.randomElement(using: &random) else { continue }
                    _ = try await served.call("DELETE", "/main/\(id)?rev=\(leaf)")
                default:
                    let parent = leaves.randomElement(using: &random)
                    let answer = try await served.call(
                        "PUT",
                        "/main/\(id)" + (parent.map { "?rev=\($0)" } ?? ""),
                        ["n": content, "step": JSONValue(step)]
                    )
                    made = answer.json["rev"]?.string
                }
                if let made { said[id, default: [:]][made] = ["n": content, "step": JSONValue(step)] }
            }
            for (id, all) in said {
                for (revision, wanted) in all {
                    for found in try await Self.read(id, revision, served) {
                        #expect(found?["n"] == wanted["n"], "seed \(seed): \(id) \(revision)")
                        #expect(found?["step"] == wanted["step"], "seed \(seed): \(id) \(revision)")
                        #expect(found?["_rev"] == .string(revision))
                    }
                }
            }
            _ = try served.database.store.compact()
            for (id, all) in said {
                let left = Set(try await revisions(id))
                for revision in all.keys {
                    let found = try await Self.read(id, revision, served)
                    #expect(
                        found.allSatisfy { ($0 != nil) == left.contains(revision) },
                        "seed \(seed): \(id) \(revision)"
                    )
                }
            }
            await served.listener.stop()
        }
    }

    @Test func `attachments of a replaced revision are served until a compaction, and purged ones never`()
        async throws
    {
        let served = try await ServedDatabase()
        var revisions: [String] = []
        for id in ["a", "b"] {
            let put = try await served.call(
                "PUT",
                "/main/\(id)",
                ["_attachments": ["x": ["data": id == "a" ? "YQ==" : "Yg=="]]]
            )
            revisions.append(try #require(put.json["rev"]?.string))
            #expect(
                try await served.call("PUT", "/main/\(id)?rev=\(revisions.last ?? "")", [:]).status == 201
            )
        }
        #expect(try await served.call("GET", "/main/a/x?rev=\(revisions[0])").text == "a")
        #expect(try await served.call("GET", "/main/a/x").status == 404)
        try served.database.defaultCollection().purge(id: "b")
        // Made again, it has the same first revision, but not what was purged.
        #expect(try await served.call("PUT", "/main/b", ["new": true]).status == 201)
        #expect(try await served.call("GET", "/main/b/x?rev=\(revisions[1])").status == 404)
        let freed = try served.database.store.compact()
        #expect(freed.blobs == 2)
        #expect(try await served.call("GET", "/main/a/x?rev=\(revisions[0])").status == 404)
        await served.listener.stop()
    }

    @Test func `contents are kept up to a size, the newest first`() async throws {
        let served = try await ServedDatabase()
        var (parent, revisions): (String?, [String]) = (nil, [])
        for number in 0..<80 {
            let text = String(repeating: "x", count: 30_000)
            let answer = try await served.call(
                "PUT",
                "/main/d" + (parent.map { "?rev=\($0)" } ?? ""),
                ["n": JSONValue(number), "text": .string(text)]
            )
            parent = answer.json["rev"]?.string
            revisions.append(parent ?? "")
        }
        var served200: [Int] = []
        for (number, revision) in revisions.enumerated()
        where try await served.call("GET", "/main/d?rev=\(revision)").status == 200 {
            served200.append(number)
        }
        let kept = StoreWriteTransaction.replacedBytes / 30_100
        #expect(served200 == Array((80 - kept - 1)..<80), "\(served200)")
        await served.listener.stop()
    }
}
