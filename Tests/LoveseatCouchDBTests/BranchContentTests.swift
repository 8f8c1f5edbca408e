import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// The content of branches that lost, at peers that got them over Couchbase's protocol.
struct BranchContentTests {
    private static let leaves = ["1-a", "1-b", "1-c"]

    private func content(_ served: ServedDatabase, _ leaf: String) async throws -> JSONValue {
        try await served.call(
            "GET",
            "/main/x?rev=\(leaf)&attachments=true",
            nil,
            [("Accept", "application/json")]
        ).json
    }

    /// Puts branches into a database. `filler`: the bytes that each has beside its attachment.
    private func insert(
        _ leaves: [String] = Self.leaves,
        into served: ServedDatabase,
        filler: Int
    ) async throws {
        let text = String(repeating: "x", count: filler)
        let documents = leaves.map { leaf -> JSONValue in
            let data = Data("content of \(leaf)".utf8).base64EncodedString()
            return [
                "_id": "x", "_rev": .string(leaf), "leaf": .string(leaf), "text": .string(text),
                "_attachments": ["q": ["data": .string(data), "content_type": "text/plain"]],
            ]
        }
        let answer = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["new_edits": false, "docs": .array(documents)]
        )
        #expect(answer.status == 201)
        #expect(answer.json == [])
    }

    /// Tells a database which leaves the source has, as a peer does that sends only the content of its current revision.
    /// Returns the leaves that the database knows then.
    private func receiveNames(from source: ServedDatabase, into target: ServedDatabase) throws -> [String] {
        let (here, there) = (
            try target.database.defaultCollection(), try source.database.defaultCollection()
        )
        let found = try there.openStore().readRows { try $0.record("x", in: there.handle) }
        let record = try #require(found)
        var incoming = IncomingRecord(
            documentID: "x",
            history: [record.revision],
            isDeleted: false,
            body: record.body,
            sender: .loveseat
        )
        incoming.knowledge = try record.tree().knowledge.keepingBody(of: nil)
        let received = incoming
        _ = try here.openStore().write { try $0.insert(received, in: here.handle) }
        let known = try here.openStore().readRows { try $0.record("x", in: here.handle)?.tree() }
        return try #require(known).leaves.map(\.id.text).sorted()
    }

    private func replicate(
        _ active: ServedDatabase,
        _ target: any Endpoint,
        _ type: ReplicatorType
    ) async throws {
        var configuration = ReplicatorConfiguration(
            collections: [try active.database.defaultCollection()],
            target: target
        )
        configuration.replicatorType = type
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    @Test(arguments: [false, true], [10, 100_000, 3_000_000])
    func `every branch comes with its content and attachments, pulled and pushed`(
        _ pulls: Bool,
        _ filler: Int
    )
        async throws
    {
        let (source, target) = (try await ServedDatabase(), try await ServedDatabase())
        try await insert(into: source, filler: filler)
        let (active, passive) = pulls ? (target, source) : (source, target)
        try await replicate(active, DatabaseEndpoint(database: passive.database), pulls ? .pull : .push)
        for leaf in Self.leaves {
            let found = try await content(target, leaf)
            #expect(found == (try await content(source, leaf)))
            #expect(found["leaf"] == .string(leaf))
        }
        for served in [source, target] { await served.listener.stop() }
    }

    @Test
    func
        `a branch whose content did not come is not listed, cannot be edited, and comes over CouchDB's wire`()
        async throws
    {
        let (source, target) = (try await ServedDatabase(), try await ServedDatabase())
        try await insert(into: source, filler: 10)
        // The current revision comes with its attachment, the others by name only.
        try await insert(["1-c"], into: target, filler: 10)
        #expect(try receiveNames(from: source, into: target) == Self.leaves)
        let json = [("Accept", "application/json")]
        let open = try await target.call("GET", "/main/x?open_revs=all", nil, json).json
        let served = open.array?.compactMap { $0["ok"]?["leaf"]?.string } ?? []
        let missing = Self.leaves.filter { !served.contains($0) }
        #expect(!served.isEmpty)
        #expect(!missing.isEmpty)
        #expect(open.array?.count == served.count)
        let listed = try await target.call("GET", "/main/_changes?style=all_docs").json["results"]?[0]
        #expect(listed?["changes"]?.array?.compactMap { $0["rev"]?.string }.sorted() == served.sorted())
        let difference: JSONValue = ["x": .array(Self.leaves.map { .string($0) })]
        let wanted = try await target.call("POST", "/main/_revs_diff", difference).json["x"]?["missing"]
        #expect(wanted?.array?.compactMap(\.string).sorted() == missing.sorted())
        let leaf = try #require(missing.first)
        let put = try await target.call(
            "PUT",
            "/main/x/new?rev=\(leaf)",
            "text",
            [("Content-Type", "text/plain")]
        )
        #expect(put.status == 409, "\(put.text)")
        let port = try #require(target.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/main"))
        try await replicate(source, CouchDBEndpoint(url: url), .push)
        for leaf in Self.leaves {
            #expect(try await content(target, leaf) == (try await content(source, leaf)))
        }
        for served in [source, target] { await served.listener.stop() }
    }

    @Test func `kept branches are listed, and ended by keeping one of them`() async throws {
        let served = try await ServedDatabase()
        try await insert(into: served, filler: 10)
        let collection = try served.database.defaultCollection()
        let found = try collection.conflicts(of: "x")
        #expect(found.map { $0.revisionID?.text } == ["1-b", "1-a"])
        #expect(found.map { $0["leaf"]?.string } == ["1-b", "1-a"])
        #expect(try collection.conflicts(of: "none").isEmpty)
        let other = try #require(RevisionID("1-b"))
        try collection.resolveConflicts(of: "x", keeping: other)
        #expect(try collection.conflicts(of: "x").isEmpty)
        #expect(try collection.document(id: "x")?["leaf"]?.string == "1-b")
        let document = try await served.call("GET", "/main/x?conflicts=true").json
        #expect(document["leaf"] == "1-b")
        #expect(document["_conflicts"] == nil)
        let error = #expect(throws: LoveseatError.self) {
            try collection.resolveConflicts(of: "x", keeping: RevisionID("1-a") ?? other)
        }
        #expect(error?.code == .conflict)
        await served.listener.stop()
    }

    @Test func `of a deletion and an edit that lost to it, every answer names the same revision`()
        async throws
    {
        let (one, other) = (try await ServedDatabase(), try await ServedDatabase())
        let target = DatabaseEndpoint(database: other.database)
        let collections = try [one, other].map { try $0.database.defaultCollection() }
        var document = Document(id: "x", ["n": 1])
        try collections[0].save(&document)
        try await replicate(one, target, .push)
        document["n"] = 2
        try collections[0].save(&document)
        try collections[1].delete(try #require(try collections[1].document(id: "x")))
        try await replicate(one, target, .pushAndPull)
        let open = try await one.call("GET", "/main/x?open_revs=all", nil, [("Accept", "application/json")])
            .json
        let leaves = open.array?.compactMap { $0["ok"]?["_rev"]?.string } ?? []
        #expect(leaves.count == 2)
        #expect(leaves.first?.hasPrefix("3-") == true)
        for served in [one, other] {
            let changes = try await served.call("GET", "/main/_changes?style=all_docs").json["results"]?[0]
            #expect(changes?["changes"]?.array?.compactMap { $0["rev"]?.string } == leaves)
            let main = try await served.call("GET", "/main/_changes").json["results"]?[0]?["changes"]?[0]
            #expect(main?["rev"]?.string == leaves.first)
            let row = try await served.call("POST", "/main/_all_docs", ["keys": ["x"]]).json["rows"]?[0]
            #expect(row?["value"]?["rev"]?.string == leaves.first)
            await served.listener.stop()
        }
    }
}
