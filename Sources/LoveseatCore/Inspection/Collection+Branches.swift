package import LoveseatModel
import LoveseatStorage

/// Edits of tools.
extension Collection {
    /// Ends a document's conflict: a leaf gets a new revision, which becomes the current one, and the other leaves are given up.
    ///
    /// - Parameters:
    ///   - id: The document's ID.
    ///   - leaf: The revision to keep.
    ///   - edit: The content to save on top of it; nil for its own.
    /// - Returns: The current revision afterwards.
    /// - Throws: ``LoveseatError``: `notFound` if there is no such document; `conflict` if the revision is not a live leaf any more;
    ///   an error of the content.
    package func resolveBranches(of id: String, keeping leaf: RevisionID, edit: JSONText? = nil) throws
        -> RevisionID
    {
        let store = try openStore()
        let edited = try edit.map { try checkedBody(of: Document(id: id, json: $0.bytes)) }
        return try DocumentStore.wrapping {
            try store.write(within: database.config.busyTimeout) { transaction in
                guard let record = try transaction.record(id, in: handle) else { throw notFound(id) }
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
                return try transaction.resolve(record, in: handle, keeping: leaf, edit: edited)
            }
        }
    }
}
