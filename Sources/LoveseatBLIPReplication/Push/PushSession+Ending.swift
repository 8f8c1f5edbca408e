import LoveseatModel
import LoveseatReplication

/// Finishes documents whose revision is no longer on its way.
extension PushSession {
    /// Finishes a document. `synced`: the revision that the peer is known to have now.
    mutating func finish(
        _ document: Outgoing,
        synced: NamedRevision?,
        isDocument: Bool = false,
        _ effects: inout SessionEffects
    ) {
        feed.completed.insert(document.change.sequence)
        progress.finish(document.change.bodySize, isDocument: isDocument)
        if let synced { mark(document.change, synced.id, &effects) }
        documents[ExactText(document.id)] = nil
        offerNext(of: document, synced: synced)
    }

    /// Reports a document that could not be pushed. It stays pending.
    mutating func fail(_ document: Outgoing, _ error: LoveseatError, _ effects: inout SessionEffects) {
        setup.report(document.change, error, &effects)
        progress.finish(document.change.bodySize, isDocument: false)
        leave(document, as: .failed)
    }

    /// Leaves a document in this stage, unless a newer change of it waits.
    mutating func leave(_ document: Outgoing, as stage: Outgoing.Stage) {
        document.stage = stage
        if document.next == nil { return }
        replace(document)
        offerNext(of: document, synced: nil)
    }

    private mutating func offerNext(of document: Outgoing, synced: NamedRevision?) {
        // Most documents do not change while they are on their way.
        guard var next = document.next else { return }
        if isProposing, let synced { next.remoteAncestor = synced.name }
        let newer = Outgoing(next)
        documents[ExactText(document.id)] = newer
        waiting.append(newer)
    }

    /// Finishes a change that does not go on, since a newer one takes its place.
    mutating func replace(_ document: Outgoing) {
        if document.isParked {
            complete(document.change)
        } else {
            feed.completed.insert(document.change.sequence)
        }
    }

    /// Finishes a change that is not on its way.
    mutating func complete(_ change: LocalChange) {
        feed.completed.insert(change.sequence)
        progress.finish(change.bodySize, isDocument: false)
    }

    // MARK: Marks

    private mutating func mark(_ change: LocalChange, _ revision: RevisionID, _ effects: inout SessionEffects)
    {
        // Only an active side keeps marks for its peer.
        guard isProposing else { return }
        let sequence = revision == change.revision ? change.sequence : nil
        unflushedMarks.append(
            SyncedRevision(documentID: change.documentID, revision: revision, sequence: sequence)
        )
        if unflushedMarks.count >= tuning.insertBatch { flushMarks(&effects) }
    }

    /// Writes down the revisions that the peer is now known to have.
    mutating func flushMarks(_ effects: inout SessionEffects) {
        if unflushedMarks.isEmpty { return }
        let marks = unflushedMarks
        unflushedMarks = []
        effects.ask { try replica.markSynced(marks) }
    }
}
