package import LoveseatModel
import LoveseatStorage

/// Edits of tools.
extension Collection {
    /// Ends a document's conflict: a leaf becomes the current revision, and the other leaves are given up.
    ///
    /// - Parameters:
    ///   - id: The document's ID.
    ///   - leaf: The revision to keep.
    ///   - edit: The content to save on top of it; nil for its own.
    /// - Returns: The current revision afterwards.
    /// - Throws: ``LoveseatError``: `notFound` if there is no such document; `conflict` if the revision is not a live leaf any more;
    ///   an error of the content.
    package func settle(_ id: String, keeping leaf: RevisionID, edit: JSONText? = nil) throws -> RevisionID {
        let store = try openStore()
        let edited = try edit.map { try checkedBody(of: Document(id: id, json: $0.bytes)) }
        return try DocumentStore.wrapping {
            try store.write(within: database.config.busyTimeout) { transaction in
                guard let record = try transaction.record(id, in: handle) else { throw notFound(id) }
                guard let node = try record.tree().leaves.first(where: { $0.id == leaf }), !node.isDeleted,
                    let kept = node.body
                else {
                    throw LoveseatError(
                        .conflict,
                        "revision \(leaf) of \"\(id)\" cannot be kept: it is not the newest of its branch any more"
                    )
                }
                try settlePending(id, keeping: leaf, transaction)
                try settleBranches(id, keeping: leaf, transaction)
                return try save(edited ?? kept, as: id, over: leaf, isEdit: edited != nil, transaction)
            }
        }
    }

    /// Settles what waits for a resolver.
    private func settlePending(_ id: String, keeping leaf: RevisionID, _ transaction: StoreWriteTransaction)
        throws
    {
        while let record = try transaction.record(id, in: handle) {
            let pending = try record.tree().pending.map(\.id)
            guard let next = pending.contains(leaf) ? leaf : pending.first else { return }
            let settled = try transaction.resolve(
                id,
                in: handle,
                local: record.revision,
                remote: next,
                next == leaf ? .remote : .local
            )
            guard settled != nil else { return }
        }
    }

    /// Gives up the other live branches of a document that peers of CouchDB's wire know.
    private func settleBranches(_ id: String, keeping leaf: RevisionID, _ transaction: StoreWriteTransaction)
        throws
    {
        guard let record = try transaction.record(id, in: handle) else { return }
        let live = try DocumentBranches(of: record).leaves.filter { !$0.isDeleted }.map(\.id)
        guard live.contains(leaf) else { return }
        for other in live where other != leaf {
            _ = try transaction.resolveBranches(of: id, in: handle, local: leaf, remote: other, .local)
        }
    }

    /// Saves the content, unless it is current already. A new revision gives up the candidates that are left.
    private func save(
        _ body: JSONText,
        as id: String,
        over leaf: RevisionID,
        isEdit: Bool,
        _ transaction: StoreWriteTransaction
    ) throws -> RevisionID {
        guard let record = try transaction.record(id, in: handle) else { throw notFound(id) }
        if !isEdit, record.revision == leaf {
            let tree = try record.tree()
            if tree.keepsBranches || tree.open(among: tree.candidates).count <= 1 { return leaf }
        }
        let saved = try transaction.save(
            id,
            in: handle,
            body: body,
            isDeleted: false,
            condition: .lastWriteWins
        )
        return saved?.revision ?? record.revision
    }
}
