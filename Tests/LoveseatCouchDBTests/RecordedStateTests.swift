import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

// Group in ./test: programs
/// What real CouchDBs held at the end of recorded replications (Tests/Fixtures/couchdb/traffic), pulled and pushed by the replicator.
struct RecordedStateTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/traffic")

    private static func scenarios(_ prefix: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasPrefix(prefix) && $0.hasSuffix(".end.json") }.sorted()
    }

    private static func state(_ name: String) throws -> JSONElement {
        try JSONElement(parsing: Array(Data(contentsOf: folder.appending(path: name))))
    }

    /// A leaf as the recordings describe it.
    private struct Leaf: Hashable {
        let history: [String]
        let isDeleted: Bool
        let body: String
    }

    /// Without attachments, whose content the recordings only name.
    private static func leaves(_ documents: JSONElement?) throws -> [(
        id: String, leaf: Leaf, json: JSONValue
    )] {
        var all: [(String, Leaf, JSONValue)] = []
        for document in documents?.items.map({ $0 }) ?? [] {
            guard let id = document["id"]?.string, let leaves = document["leaves"] else { continue }
            for leaf in leaves.items {
                let revisions = try #require(leaf["revisions"])
                let body = try #require(leaf["body"]).value
                let isDeleted = leaf["deleted"]?.bool ?? false
                var json = body
                json["_revisions"] = revisions.value
                if isDeleted { json["_deleted"] = true }
                let history = try RevisionText.history(revisions).map(\.text)
                let text = JSONText(canonical: body).description
                all.append((id, Leaf(history: history, isDeleted: isDeleted, body: text), json))
            }
        }
        return all
    }

    @Test(arguments: scenarios("cr-pull-")) func `a pull brings what CouchDB's own replicator brought`(
        _ name: String
    ) async throws {
        let couch = try await FakeCouch()
        try await couch.send("PUT", "/db")
        let wanted = try Self.leaves(try Self.state(name)["listener"]?["docs"])
        guard !wanted.isEmpty else { return }
        for (id, _, json) in wanted {
            let answer = try await couch.send(
                "PUT",
                "/db\(PathEncoding.document(id))?new_edits=false",
                JSONText(canonical: json).description
            )
            #expect(answer.status < 300, "\(id): \(answer.text)")
        }
        let active = try ActiveSide()
        let pass = try await active.replicate(couch.url(), .pull)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty)
        let collection = try active.collection
        for (id, leaves) in Dictionary(grouping: wanted, by: { $0.id }) {
            let store = try collection.openStore()
            let record = try store.readRows { try $0.record(id, in: collection.handle) }
            let whole = try store.whole(try #require(record, "\(id)"), in: collection.handle)
            let found = try DocumentBranches(of: whole).leaves.map {
                Leaf(
                    history: $0.history.map(\.text),
                    isDeleted: $0.isDeleted,
                    body: ($0.body ?? .emptyObject).canonical.description
                )
            }
            #expect(Set(found) == Set(leaves.map { $0.leaf }), "\(id)")
        }
    }

    @Test(arguments: scenarios("cr-push-")) func `a push brings all that was here`(_ name: String)
        async throws
    {
        let couch = try await FakeCouch()
        try await couch.send("PUT", "/db")
        let wanted = try Self.leaves(try Self.state(name)["start"]?["peer"]?["docs"])
        guard !wanted.isEmpty else { return }
        let active = try ActiveSide()
        let collection = try active.collection
        try collection.openStore().write { transaction in
            for (id, leaf, _) in wanted {
                _ = try transaction.insertBranch(
                    try leaf.history.map { try #require(RevisionID($0)) },
                    of: id,
                    in: collection.handle,
                    body: try JSONText(leaf.body),
                    isDeleted: leaf.isDeleted
                )
            }
        }
        let pass = try await active.replicate(couch.url(), .push)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty)
        for (id, leaf, _) in wanted {
            let answer = try await couch.send(
                "GET",
                "/db\(PathEncoding.document(id))?revs=true&rev=\(leaf.history[0])"
            )
            let document = try IncomingDocument(try JSONElement(parsing: answer.body))
            let found = Leaf(
                history: document.history.map(\.text),
                isDeleted: document.isDeleted,
                body: document.body.description
            )
            #expect(found == leaf, "\(id)")
        }
    }
}
