import LoveseatCore
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Conflicts are shown side by side, and end with a click.
struct ConflictTests {
    private func conflicts(_ server: InspectorServer, _ id: String) async throws -> [String] {
        let shown = try await server.json("/api/document", ["id": id])
        return shown["conflicts"]?.array?.compactMap(\.string) ?? []
    }

    private func text(_ server: InspectorServer, _ id: String, _ revision: String) async throws -> String? {
        try await server.json("/api/revision", ["id": id, "revision": revision])["text"]?.string
    }

    private func keep(_ server: InspectorServer, _ id: String, _ revision: String, body: JSONValue? = nil)
        async throws
        -> Int
    {
        var json: JSONValue = ["collection": "_default", "id": .string(id), "keep": .string(revision)]
        json["body"] = body
        return try await server.post("/api/save", json).status
    }

    @Test(arguments: ["here", "there"])
    func `either version of a pulled conflict can be kept`(_ wanted: String) async throws {
        let server = try await InspectorServer()
        try server.collection.saveConflict("a")
        let leaves = try await conflicts(server, "a")
        #expect(leaves.count == 2)
        var texts: [String: String] = [:]
        for leaf in leaves { texts[leaf] = try await text(server, "a", leaf) }
        let kept = try #require(leaves.first { texts[$0] == wanted })
        #expect(try await keep(server, "a", kept) == 200)
        #expect(try await conflicts(server, "a") == [])
        #expect(try server.collection.document(id: "a")?["text"]?.string == wanted)
        #expect(try CollectionConflicts(server.collection).unresolvedIDs() == [])
        #expect(try DatabaseInspection(server.database).problems() == [])
        // The other one is gone: keeping it is refused.
        let other = try #require(leaves.first { $0 != kept })
        let late = try await keep(server, "a", other)
        #expect([200, 409].contains(late))
        try await server.stop()
    }

    @Test func `an edit of one version ends the conflict`() async throws {
        let server = try await InspectorServer()
        try server.collection.saveConflict("a")
        let leaves = try await conflicts(server, "a")
        let leaf = try #require(leaves.last)
        #expect(try await keep(server, "a", leaf, body: ["text": "merged"]) == 200)
        #expect(try server.collection.document(id: "a")?["text"]?.string == "merged")
        #expect(try await conflicts(server, "a") == [])
        #expect(try DatabaseInspection(server.database).problems() == [])
        try await server.stop()
    }

    /// Waits until a number of documents is listed and counted as those with a conflict: counts and positions are kept for a while.
    private func expectListed(_ server: InspectorServer, _ count: Int) async throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while true {
            let counted = try await server.json("/api/totals")["collections"]?[0]?["conflicts"]?.int
            let listed = try await server.json("/api/documents", ["conflicts": "1"])["count"]?.int
            if counted == count, listed == count { return }
            try #require(ContinuousClock.now < deadline, "\(String(describing: (counted, listed)))")
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    @Test(arguments: 0..<3)
    func `each of three branches of a CouchDB can be kept`(_ wanted: Int) async throws {
        let server = try await InspectorServer()
        let collection = try server.collection
        for branch in ["2-b", "2-c", "2-d"] {
            let history = try [branch, "1-a"].map { try #require(RevisionID($0)) }
            let body = JSONText(canonical: ["text": .string(branch)])
            try collection.openStore().write {
                _ = try $0.insertBranch(history, of: "x", in: collection.handle, body: body, isDeleted: false)
            }
        }
        let leaves = try await conflicts(server, "x")
        #expect(leaves.count == 3)
        try await expectListed(server, 1)
        let kept = leaves[wanted]
        #expect(try await keep(server, "x", kept) == 200)
        #expect(try await conflicts(server, "x") == [])
        try await expectListed(server, 0)
        #expect(try collection.document(id: "x")?["text"]?.string == kept)
        let record = try collection.openStore().readRows { try $0.record("x", in: collection.handle) }
        #expect(try DocumentBranches(of: try #require(record)).conflicts.isEmpty)
        #expect(try DatabaseInspection(server.database).problems() == [])
        try await server.stop()
    }

    @Test func `what cannot be kept is refused with a reason`() async throws {
        let server = try await InspectorServer()
        try server.collection.saveConflict("a")
        #expect(try await keep(server, "a", "1-ffff") == 409)
        #expect(try await keep(server, "a", "nonsense") == 400)
        #expect(try await keep(server, "missing", "1-ffff") == 404)
        let leaves = try await conflicts(server, "a")
        let leaf = try #require(leaves.first)
        #expect(try await keep(server, "a", leaf, body: ["_reserved": 1]) == 400)
        #expect(try await conflicts(server, "a").count == 2)
        try await server.stop()
    }
}
