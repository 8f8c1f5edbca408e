package import LoveseatModel
import LoveseatStorage

/// The revisions and changes of a collection that the store keeps, for tools.
package struct CollectionHistory {
    private let collection: Collection

    package init(_ collection: Collection) { self.collection = collection }

    /// A revision of a document's tree.
    package struct TreeRevision: Sendable {
        package let id: RevisionID
        /// The nearest ancestor that is kept.
        package let parent: RevisionID?
        /// `current`, `leaf`, `deleted`, `conflict` (waits for a resolver), `candidate` (neither superseded nor closed), `closed`
        /// (given up), `derived` (the ID was made from a version).
        package let flags: [String]
        /// The original, if this is a copy for a hub.
        package let original: RevisionID?
        /// The first revisions of the documents that it belongs to; empty for a document with one line.
        package let origins: [RevisionID]
        /// Whether its content is kept.
        package let hasBody: Bool
        /// The version by which peers of Couchbase Lite 4 name the revision, with those that the revision includes. Nil if such peers are
        /// told the ID, as in a document without versions.
        package let vector: VersionVector?

        /// Adds the versions to a JSON object: `version`, `merged` (those of which it was merged) and `previous`. Nothing without
        /// ``vector``.
        package func addVersions(to json: inout JSONObject) {
            // A document without versions.
            guard let vector else { return }
            json["version"] = vector.current.map { .string($0.text) }
            json["merged"] = .array(vector.mergeVersions.map { .string($0.text) })
            json["previous"] = .array(vector.previous.map { .string($0.text) })
        }
    }

    /// A change in a collection, in order of its sequence.
    package struct ChangedRevision: Sendable {
        package let sequence: UInt64
        package let id: String
        package let revision: RevisionID
        package let isDeleted: Bool
    }

    /// The changes after a sequence, in order.
    package func changes(since: UInt64) throws -> [ChangedRevision] {
        let store = try collection.openStore()
        var found: [ChangedRevision] = []
        try store.read { view in
            try view.changes(in: collection.handle, since: since) { record in
                found.append(
                    ChangedRevision(
                        sequence: record.sequence,
                        id: record.id,
                        revision: record.revision,
                        isDeleted: record.isDeleted
                    )
                )
                return true
            }
        }
        return found
    }

    private func tree(of id: String) throws -> RevisionTree {
        let store = try collection.openStore()
        guard let record = try store.readRows({ try $0.record(id, in: collection.handle) }) else {
            throw LoveseatError(.notFound, "there is no document \"\(id)\" in \(collection.fullName)")
        }
        return try record.tree()
    }

    /// The source of the versions that this database makes; nil if it makes none.
    package func source() throws -> SourceID? { try collection.openStore().read { $0.source } }

    /// A document's revisions, newest first.
    package func revisions(of id: String) throws -> [TreeRevision] {
        let tree = try tree(of: id)
        let current = tree.current?.id
        let candidates = Set(tree.candidates.map(\.node.id))
        let closed = tree.closed
        return tree.nodes.values.sorted { $0.id > $1.id }.map { node in
            var flags: [String] = []
            if node.id == current { flags.append("current") }
            if tree.isLeaf(node.id) { flags.append("leaf") }
            if node.isDeleted { flags.append("deleted") }
            if node.flags.contains(.pending) { flags.append("conflict") }
            let isClosed = closed.contains(tree.original(node.id))
            if candidates.contains(node.id), node.id != current, !isClosed { flags.append("candidate") }
            if isClosed { flags.append("closed") }
            if Self.isDerived(node.id, of: id, in: tree) { flags.append("derived") }
            let vector = tree.vectors.isEmpty ? nil : tree.versions.state(of: node.id).vector
            return TreeRevision(
                id: node.id,
                parent: node.parent,
                flags: flags,
                original: tree.copies[node.id] == nil ? nil : tree.original(node.id),
                origins: tree.isLine ? [] : [tree.origin(of: node.id)],
                hasBody: node.body != nil,
                vector: vector?.isEmpty == false ? vector : nil
            )
        }
    }

    /// Whether a revision's ID was made from its version, because it came from a peer that has no revision IDs. It cannot be told any more when the
    /// parent is forgotten.
    private static func isDerived(_ revision: RevisionID, of id: String, in tree: RevisionTree) -> Bool {
        guard let version = tree.vectors[revision]?.current else { return false }
        let parent = tree.node(revision)?.parent
        let derived = RevisionID(version: version, documentID: id, parent: parent, sha256: Hashing.sha256)
        return derived == revision
    }

    /// The body of a revision, if it is kept.
    package func body(of id: String, revision: RevisionID) throws -> JSONText {
        guard let node = try tree(of: id).node(revision) else {
            throw LoveseatError(.notFound, "\"\(id)\" has no revision \(revision)")
        }
        guard let body = node.body else {
            throw LoveseatError(.notFound, "the content of revision \(revision) is not kept any more")
        }
        return body
    }

    /// The number of documents that were changed after a sequence, deleted ones included.
    ///
    /// - Throws: `notOpen` if the collection was deleted or closed.
    package func changeCount(after sequence: UInt64) throws(LoveseatError) -> Int {
        let store = try collection.database.store
        return try DocumentStore.wrapping {
            try store.read { try $0.changeCount(in: collection.handle, after: sequence) }
        }
    }
}
