import LoveseatModel

/// What becomes of a document when its revision is no longer on its way.
extension PushSession {
    /// `synced`: the revision that the peer is known to have by that.
    mutating func finish(
        _ id: String,
        synced: RevisionID?,
        isDocument: Bool = false,
        _ effects: inout SessionEffects
    ) {
        guard let change = documents[id]?.change else { return }
        completed.insert(change.sequence)
        progress.finish(change.bodySize, isDocument: isDocument)
        if let synced { mark(id, synced, &effects) }
        release(id, as: nil, synced: synced)
    }

    /// Reports a document that could not be pushed. It stays pending.
    mutating func fail(_ id: String, _ error: LoveseatError, _ effects: inout SessionEffects) {
        guard let change = documents[id]?.change else { return }
        report(change, error, &effects)
        progress.finish(change.bodySize, isDocument: false)
        release(id, as: .failed)
    }

    /// Is done with a change that a newer one replaced before it was on its way.
    mutating func complete(_ change: LocalChange) {
        completed.insert(change.sequence)
        progress.finish(change.bodySize, isDocument: false)
    }

    /// Leaves a document in this stage, or forgets it; unless a newer change waits, which is offered then.
    mutating func release(_ id: String, as stage: Outgoing.Stage?, synced: RevisionID? = nil) {
        guard var next = documents[id]?.next else {
            if let stage { documents[id]?.stage = stage } else { documents[id] = nil }
            return
        }
        if let stage { documents[id]?.stage = stage }
        forget(id)
        if isProposing, let synced { next.remoteAncestor = synced }
        documents[id] = Outgoing(change: next)
        waiting.append(id)
    }

    /// A newer change took the place of one that is not on its way.
    mutating func forget(_ id: String) {
        guard let document = documents.removeValue(forKey: id) else { return }
        switch document.stage {
        case .parked: complete(document.change)
        case .failed: completed.insert(document.change.sequence)
        default: break
        }
    }

    // MARK: Marks and reports

    private mutating func mark(_ id: String, _ revision: RevisionID, _ effects: inout SessionEffects) {
        guard isProposing else { return }
        unflushedMarks.append(DocumentRevision(documentID: id, revision: revision))
        if unflushedMarks.count >= tuning.insertBatch { flushMarks(&effects) }
    }

    /// Writes down what the peer is now known to have.
    mutating func flushMarks(_ effects: inout SessionEffects) {
        guard !unflushedMarks.isEmpty else { return }
        let marks = unflushedMarks
        unflushedMarks = []
        effects.ask { try $0.markSynced(marks, in: collection) }
    }

    func report(_ change: LocalChange, _ error: LoveseatError?, _ effects: inout SessionEffects) {
        guard isProposing else { return }
        let event = DocumentEvent(
            collection: collection,
            documentID: change.documentID,
            isPush: true,
            isDeleted: change.isDeleted,
            error: error
        )
        effects.append(.report(.document(event)))
    }
}
