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

    /// Edits of one line, of a branch that loses, and of many branches: whatever is edited, not too much is kept.
    @Test(arguments: [(1, 30_000), (1, 900_000), (1, 15_000), (40, 15_000), (2, 100)])
    func `contents are kept up to a size, the newest first, also of branches that lose`(
        _ leaves: Int,
        _ size: Int
    )
        async throws
    {
        let served = try await ServedDatabase()
        let text = String(repeating: "x", count: size)
        func put(_ document: JSONValue) async throws {
            let answer = try await served.call(
                "POST",
                "/main/_bulk_docs",
                ["new_edits": false, "docs": [document]]
            )
            #expect(answer.json == [])
        }
        if leaves > 1 { try await put(["_id": "d", "_rev": "1000-ff"]) }
        var kept: [[String]] = Array(repeating: [], count: leaves)
        for leaf in 0..<leaves {
            try await put(["_id": "d", "_rev": .string("1-\(leaf)"), "text": .string(text)])
        }
        for leaf in 0..<leaves { kept[leaf].append("1-\(leaf)") }
        for edit in 0..<1_000 / (size / 300 + 1) + 120 {
            let leaf = edit % leaves
            let answer = try await served.call(
                "PUT",
                "/main/d?rev=\(kept[leaf].last ?? "")",
                ["text": .string(text), "edit": JSONValue(edit)]
            )
            kept[leaf].append(answer.json["rev"]?.string ?? "")
        }
        let handle = try served.database.defaultCollection().handle
        let record = try #require(try served.database.store.readRows { try $0.record("d", in: handle) })
        let bytes = try served.database.store.readRows { view in
            let whole = try view.withReplaced(view.whole(record, in: handle), in: handle)
            return try DocumentBranches(of: whole)
        }
        let readable = kept.map { $0.map { RevisionID($0).flatMap { bytes.revision($0)?.body } } }
        let replaced = readable.flatMap { $0.dropLast() }.compactMap(\.self).reduce(0) { $0 + $1.bytes.count }
        #expect(replaced <= ReplacedTable.maximumBytes + (256 << 10))
        #expect(
            replaced
                >= min(
                    ReplacedTable.maximumBytes - leaves * (size + 100),
                    kept.reduce(0) { $0 + $1.count - 1 } * size
                )
        )
        for line in readable {
            // What is kept are the last of a line.
            let first = line.firstIndex { $0 != nil } ?? 0
            #expect(line[first...].allSatisfy { $0 != nil })
        }
        await served.listener.stop()
    }

    @Test func `the content below a purged leaf is gone for good`() async throws {
        let served = try await ServedDatabase()
        func put(_ revision: String, _ ids: [String], _ text: String) async throws {
            let document: JSONValue = [
                "_id": "p", "_rev": .string(revision), "text": .string(text),
                "_revisions": ["start": JSONValue(ids.count), "ids": .array(ids.map { .string($0) })],
            ]
            _ = try await served.call("POST", "/main/_bulk_docs", ["new_edits": false, "docs": [document]])
        }
        try await put("1-a", ["a"], "first")
        try await put("2-b", ["b", "a"], "secret")
        try await put("3-b", ["b", "b", "a"], "third")
        try await put("3-c", ["c", "c", "a"], "other")
        #expect(try await served.call("GET", "/main/p?rev=2-b").json["text"] == "secret")
        #expect(try await served.call("POST", "/main/_purge", ["p": ["3-b"]]).status == 201)
        try await put("4-b", ["b", "b", "b", "a"], "again")
        #expect(try await served.call("GET", "/main/p?rev=2-b").status == 404)
        await served.listener.stop()
    }

    @Test func `lists of millions of items are refused`() async throws {
        let served = try await ServedDatabase()
        let items = [UInt8](repeating: 0, count: 600_000).map { _ in "{}" }.joined(separator: ",")
        for (path, name) in [("_bulk_get", "docs"), ("_bulk_docs", "docs"), ("_all_docs/queries", "queries")]
        {
            let client = served.client
            let answer = try await offPool {
                try client.send(
                    "POST",
                    "/main/\(path)",
                    [("Content-Type", "application/json")],
                    body: Array("{\"\(name)\":[\(items)]}".utf8)
                )
            }
            #expect(answer.status == 413, "\(path): \(answer.status)")
        }
        await served.listener.stop()
    }
}
