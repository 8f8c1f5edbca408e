package import LoveseatModel
import LoveseatStorage

/// The documents of a collection with revisions that contend.
package struct CollectionConflicts {
    private let collection: Collection

    package init(_ collection: Collection) { self.collection = collection }

    /// The revisions that contend with a document's current one, the highest first.
    ///
    /// `call`: the name of the called function, for messages.
    func contending(with id: String, call: String = #function) throws(LoveseatError) -> [Document] {
        let store = try collection.openStore(call)
        return try DocumentStore.wrapping {
            guard let record = try store.readRows({ try $0.record(id, in: collection.handle) }),
                record.encodedTree != nil
            else { return [] }
            return try record.tree().contending.compactMap { node in
                guard let body = node.body else { return nil }
                guard let element = body.storedObject else { throw record.damage }
                return Document(
                    id: id,
                    revisionID: node.id,
                    sequence: record.sequence,
                    body: body,
                    indexed: element
                )
            }
        }
    }

    /// A document with revisions that contend.
    package struct Contention: Hashable, Sendable {
        /// The state of the revisions other than the current one.
        package enum State: String, Sendable {
            /// They wait for the app's resolver.
            case waiting
            /// Peers of CouchDB's wire keep them, until somebody ends the conflict.
            case kept
            /// They lost by the rule between Loveseats, and stay until the next edit (docs/decisions/0001).
            case decided
        }

        package let id: String
        package let state: State
        /// The current one first, then the others, the highest first.
        package let revisions: [RevisionID]
    }

    /// The documents with revisions that contend, in order of their IDs: live leaves beside the current revision that nobody gave up.
    ///
    /// This reads all documents that have more than one branch. Damaged ones are left out: `check` names them. `includingDecided`: also
    /// those of which the rule between Loveseats has chosen one.
    package func all(includingDecided: Bool) throws -> [Contention] {
        var found: [Contention] = []
        try collection.openStore().read { view in
            try view.branched(in: collection.handle) { record in
                guard let tree = try? record.tree() else { return true }
                let isDecided = tree.pending.isEmpty && !tree.keepsBranches
                let others = isDecided ? (includingDecided ? tree.losing : []) : tree.contending
                if others.isEmpty { return true }
                found.append(
                    Contention(
                        id: record.id,
                        state: isDecided ? .decided : tree.pending.isEmpty ? .kept : .waiting,
                        revisions: [record.revision] + others.map(\.id)
                    )
                )
                return true
            }
        }
        return found.sorted { $0.id.bytesPrecede($1.id) }
    }

    /// The documents with conflicts that were not resolved yet, in order.
    package func unresolvedIDs() throws -> [String] {
        try collection.openStore().read { try $0.conflictedIDs(in: collection.handle, limit: -1).ids }
    }

    /// The newest live revisions of all branches of a document.
    package func liveLeaves(of id: String) throws -> [RevisionID] {
        try CollectionHistory(collection).revisions(of: id).filter {
            $0.flags.contains("leaf") && !$0.flags.contains("deleted")
        }.map(\.id)
    }

    /// Ends a document's conflict: a leaf gets a new revision, which becomes the current one, and the other leaves are given up.
    ///
    /// - Parameters:
    ///   - id: The document's ID.
    ///   - leaf: The revision to keep.
    ///   - edit: The content to save on top of it; nil for its own.
    ///   - call: The name of the called function, for messages.
    /// - Returns: The current revision afterwards.
    /// - Throws: ``LoveseatError``: `notFound` if there is no such document; `conflict` if the revision is not a live leaf any more;
    ///   an error of the content.
    package func resolve(
        _ id: String,
        keeping leaf: RevisionID,
        edit: JSONText? = nil,
        call: String = #function
    ) throws(LoveseatError) -> RevisionID {
        let store = try collection.openStore(call)
        let edited = try body(edit, of: id)
        return try DocumentStore.wrapping {
            try store.write(within: collection.database.config.busyTimeout, call: call) { transaction in
                guard let record = try transaction.record(id, in: collection.handle) else {
                    throw LoveseatError.noDocument(id, in: collection)
                }
                guard let node = try record.tree().leaves.first(where: { $0.id == leaf }), !node.isDeleted
                else {
                    throw LoveseatError(
                        .conflict,
                        "revision \(leaf) of \"\(id)\" cannot be kept: it is not the newest of its branch any more"
                    )
                }
                guard node.body != nil else {
                    throw LoveseatError(
                        .conflict,
                        "revision \(leaf) of \"\(id)\" cannot be kept: its content is not here; pull it from a peer that has it"
                    )
                }
                return try transaction.resolve(record, in: collection.handle, keeping: leaf, edit: edited)
            }
        }
    }

    private func body(_ edit: JSONText?, of id: String) throws(LoveseatError) -> JSONText? {
        guard let edit else { return nil }
        return try DocumentValidator(collection).body(of: Document(id: id, json: edit.bytes))
    }
}

extension RevisionTree {
    /// The revisions that contend with the current one, the highest first: those that wait for a resolver, and live branches that are
    /// kept.
    fileprivate var contending: [Node] {
        guard !isLine else { return [] }
        let current = current?.id
        let branches = keepsBranches ? open(among: candidates).map(\.node) : []
        return (pending + branches.filter { !$0.isDeleted }).filter { $0.id != current }.sorted {
            $0.id > $1.id
        }
    }

    /// The live revisions that lost by the rule between Loveseats and were not given up, the highest first. A copy is not another one.
    fileprivate var losing: [Node] {
        guard !isLine, let current else { return [] }
        let winner = original(current.id)
        return open(among: candidates).filter { $0.original != winner && !$0.node.isDeleted }.map(\.node)
            .sorted { $0.id > $1.id }
    }
}
