import Foundation
package import LoveseatCore
package import LoveseatModel
import LoveseatStorage

/// A folder for databases that is gone when the test is over.
package final class Scratch: Sendable {
    package let path: String

    package init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "loveseat-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    // A test may have removed it.
    deinit { try? FileManager.default.removeItem(atPath: path) }

    package var config: DatabaseConfiguration { DatabaseConfiguration(directory: path) }

    package func database(_ name: String) throws -> Database { try Database(name: name, config: config) }
}

/// Whether the tests run under the thread sanitizer, which looks for races and needs no volume.
package let isSanitized = ProcessInfo.processInfo.environment["LOVESEAT_SANITIZED"] != nil

extension LoveseatCore.Collection {
    /// Saves a document with a revision of this database, and one that a pull brought: a conflict that waits for a resolver.
    package func saveConflict(_ id: String) throws {
        try save(Document(id: id, ["text": "here"]))
        let store = try openStore()
        let remote = try store.write { try $0.checkpointTables.remoteNumber("ws://peer/db") }
        var pulled = IncomingRecord(
            documentID: id,
            history: [RevisionID(generation: 1, digest: [0])],
            isDeleted: false,
            body: try JSONText(#"{"text":"there"}"#),
            sender: .loveseat,
            remote: remote
        )
        pulled.asksResolver = true
        let incoming = pulled
        _ = try store.write { try $0.insert(incoming, in: handle) }
    }

    /// A revision that another database sends. Without an ID, it gets the one that is derived from its version.
    package struct VersionedRevision: Sendable {
        let id: String?
        let vector: String?

        package init(id: String? = nil, vector: String? = nil) { (self.id, self.vector) = (id, vector) }
    }

    /// Stores a document with version vectors, as another Loveseat sends it, and returns the IDs of its revisions, the newest first.
    ///
    /// `line`: the revisions, the oldest first, each on top of the one before. Only the last one has content. `isExported`: whether it comes from an
    /// export, of which the clock refuses no version.
    package func receive(
        _ line: [VersionedRevision],
        of id: String,
        isExported: Bool = false
    ) throws -> [RevisionID] {
        var knowledge = TreeKnowledge()
        for revision in line {
            let parent = knowledge.nodes.first?.id
            let vector = try revision.vector.map { try VersionVector($0) }
            let derived = vector?.current.flatMap {
                RevisionID(version: $0, documentID: id, parent: parent, sha256: Hashing.sha256)
            }
            guard let name = revision.id.map({ RevisionID($0) }) ?? derived else {
                throw LoveseatError(.badRevisionID, "a revision has neither an ID nor a version")
            }
            knowledge.nodes.insert(RevisionTree.Node(id: name, parent: parent, flags: [], body: nil), at: 0)
            knowledge.vectors[name] = vector
        }
        var received = IncomingRecord(
            documentID: id,
            history: knowledge.nodes.map(\.id),
            isDeleted: false,
            body: try JSONText(#"{"text":"there"}"#),
            sender: .loveseat
        )
        received.knowledge = knowledge
        received.isExported = isExported
        let incoming = received
        _ = try openStore().write { try $0.insert(incoming, in: handle) }
        return incoming.history
    }

    /// Every document's ID, with its revision and text; tombstones included.
    package func contents() throws -> [String: String] {
        let store = try openStore()
        var found: [String: String] = [:]
        try store.read { view in
            try view.changes(in: handle, since: 0) { record in
                let body = record.isDeleted ? "deleted" : record.body.canonical.description
                // Strings are also equal if they are only composed in another way.
                let isPlain = record.id.utf8.allSatisfy { $0 < 0x80 }
                let id =
                    isPlain ? record.id : record.id.unicodeScalars.map { $0.escaped(asASCII: true) }.joined()
                found[id] = "\(record.revision) \(body)"
                return true
            }
        }
        return found
    }
}
