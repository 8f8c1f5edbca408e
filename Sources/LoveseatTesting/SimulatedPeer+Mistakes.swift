import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Edits, and the planted mistakes with the rule for conflicts (docs/decisions/0001). Each mistake is made with calls that every app has.
extension SimulatedPeer {
    /// Saves an edit.
    ///
    /// - Returns: whether something changed.
    func edit(_ id: String, in collection: Int, _ body: JSONText, isDeleted: Bool = false) throws -> Bool {
        try store.write { transaction in
            let handle = collections[collection]
            guard fault == .leaveOthersOpen, let record = try transaction.record(id, in: handle),
                try !record.tree().isLine
            else {
                let made = try transaction.save(
                    id,
                    in: handle,
                    body: body,
                    isDeleted: isDeleted,
                    condition: .lastWriteWins
                )
                return made != nil
            }
            // An edit by somebody who knew nothing beside the line of the current revision.
            let revision = try BodyDigest.revisionID(
                parent: record.revision,
                isDeleted: isDeleted,
                body: body
            )
            let incoming = IncomingRecord(
                documentID: id,
                history: [revision, record.revision],
                isDeleted: isDeleted,
                body: body,
                sender: .loveseat
            )
            _ = try transaction.insert(incoming, in: handle)
            return true
        }
    }

    /// A mistake: a process that starts again does not know which times the versions of the database have.
    func forgetClock() throws {
        // Only a database that makes versions has a clock.
        if store.source == nil { return }
        try store.write { try $0.setInfo("clock", "0") }
    }

    /// Puts the content that was here before on top of a hub's revision that was made on it.
    func undo(
        _ revision: IncomingRevision,
        by before: RevisionTree.Node?,
        in collection: Int
    ) throws(LoveseatError) {
        // Most revisions are not edits on a hub's line.
        guard revision.sender == .hub, !revision.isDeleted, let before, let body = before.body,
            !before.isDeleted, revision.line.dropFirst().contains(before.id)
        else { return }
        do { _ = try edit(revision.documentID, in: collection, body.canonical) } catch {
            throw LoveseatError(storage: error)
        }
    }

    /// Deletes the document that is current, if a deletion of another one has arrived.
    func deleteOthers(like revision: IncomingRevision, in collection: Int) throws(LoveseatError) {
        // Most deletions are of the document that is here, or there is none.
        guard revision.isDeleted, let tree = tree(revision.documentID, in: collection),
            tree.current?.isDeleted == false,
            tree.candidates.contains(where: { $0.node.id == revision.line.first })
        else { return }
        do { _ = try edit(revision.documentID, in: collection, .emptyObject, isDeleted: true) } catch {
            throw LoveseatError(storage: error)
        }
    }
}
