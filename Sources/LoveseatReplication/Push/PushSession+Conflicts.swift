import LoveseatBLIP
import LoveseatModel

/// What becomes of revisions that the peer did not take as its current ones (replication.md §8, docs/decisions/0001).
extension PushSession {
    /// Two sides that talk past each other more often than this are left to the next session.
    private static let mostDisagreements = 3

    // MARK: Hubs

    /// A hub has something else than the proposal is to go on top of.
    mutating func meet(_ change: LocalChange, _ state: HubState, _ effects: inout SessionEffects) {
        switch effects.ask({ try $0.meet(change, state, in: collection) }) {
        case .isObsolete, .agrees: finish(change, synced: nil, &effects)
        case .offer(let ancestor):
            if countDisagreement(change) {
                var again = change
                again.remoteAncestor = ancestor
                waiting.append(again)
            } else {
                fail(change, conflict(change), &effects)
            }
        case .waits(let isMarked):
            if !isMarked { fetchable.insert(change.documentID) }
            wait(change, &effects)
        case nil: break
        }
    }

    func conflict(_ change: LocalChange) -> LoveseatError {
        let name = "document \"\(change.documentID)\""
        return LoveseatError(
            .httpConflict,
            unseen.contains(change.documentID)
                ? "\(name) is not taken: the peer has a document of this name that this user may not see"
                    + ", or that the filter leaves out"
                : "\(name) conflicts with another revision at the peer"
        )
    }

    /// A document was fetched by its ID. If that explains nothing, nothing will.
    mutating func fetched(_ id: String, isComplete: Bool, _ effects: inout SessionEffects) {
        guard parked[id] != nil else { return }
        if isComplete { unseen.insert(id) }
        documentMoved(id, &effects)
    }

    /// The pull, or somebody who resolved a conflict, changed a document.
    mutating func documentMoved(_ id: String, _ effects: inout SessionEffects) {
        guard let change = parked.removeValue(forKey: id) else { return }
        busy[id] = .some(nil)
        meet(change, .unknown, &effects)
    }

    /// Documents whose conflict nothing has explained; they stay pending.
    mutating func reportParked(_ effects: inout SessionEffects) {
        for change in parked.values.sorted(by: { $0.sequence < $1.sequence }) {
            report(change, conflict(change), &effects)
        }
        parked = [:]
    }

    // MARK: Loveseats

    /// The peer took the revision, and knows a reason why another one is current.
    mutating func outranked(
        _ revision: QueuedRevision,
        _ answer: Message,
        _ effects: inout SessionEffects
    ) {
        do throws(ReplyError) {
            let (knowledge, current) = try TreeMessage.parse(answer.body)
            hear(knowledge, current, revision, &effects)
        } catch {
            failure = LoveseatError(reply: error, "reading what the peer knows of \"\(revision.documentID)\"")
        }
    }

    /// Where the two still disagree, the document was stored anew and comes by the feed once more.
    private mutating func hear(
        _ knowledge: TreeKnowledge,
        _ current: RevisionID,
        _ revision: QueuedRevision,
        _ effects: inout SessionEffects
    ) {
        let id = revision.documentID
        let hearing = effects.ask {
            try $0.hear(knowledge, of: id, current: current, takesContent: pulls, in: collection)
        }
        switch hearing {
        case .agrees: disagreements[id] = nil
        case .disagrees: countDisagreement(revision.change)
        case .isBehind:
            report(revision, nil, &effects)
            return end(revision, synced: true, &effects)
        case .lacksContent:
            // A pull that began with an empty collection may have left out that the document was deleted.
            fetchable.insert(id)
            return wait(revision.change, &effects)
        case nil: return
        }
        report(revision, nil, &effects)
        end(revision, synced: false, isDocument: true, &effects)
    }

    /// Leaves a document to the pull, if there is one, to bring what the peer has.
    private mutating func wait(_ change: LocalChange, _ effects: inout SessionEffects) {
        guard pulls, !unseen.contains(change.documentID) else {
            return fail(change, conflict(change), &effects)
        }
        parked[change.documentID] = change
        release(change.documentID, succeeded: nil, &effects)
    }

    // MARK: Both

    /// Returns whether another attempt is worth it.
    @discardableResult
    mutating func countDisagreement(_ change: LocalChange) -> Bool {
        let before = disagreements[change.documentID]
        let count = before?.revision == change.revision ? before?.count ?? 0 : 0
        disagreements[change.documentID] = (change.revision, count + 1)
        return !isGivenUp(change)
    }

    /// Whether this session has offered a revision often enough.
    func isGivenUp(_ change: LocalChange) -> Bool {
        guard let entry = disagreements[change.documentID], entry.revision == change.revision else {
            return false
        }
        return entry.count > Self.mostDisagreements
    }

    /// Reports a document that could not be pushed. It stays pending.
    mutating func fail(
        _ change: LocalChange,
        _ error: LoveseatError,
        _ effects: inout SessionEffects
    ) {
        report(change, error, &effects)
        failed[change.documentID] = change.sequence
        progress.finish(change.bodySize, isDocument: false)
        release(change.documentID, succeeded: nil, &effects)
    }
}
