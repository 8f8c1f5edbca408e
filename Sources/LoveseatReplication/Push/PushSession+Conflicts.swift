import LoveseatBLIP
import LoveseatModel

/// What becomes of revisions that the peer did not take as its current ones (replication.md §8, docs/decisions/0001).
extension PushSession {
    // MARK: Hubs

    /// A hub has something else than the proposal is to go on top of.
    mutating func meet(_ id: String, _ state: HubState, _ effects: inout SessionEffects) {
        guard let change = documents[id]?.change else { return }
        switch effects.ask({ try $0.meet(change, state, in: collection) }) {
        case .isObsolete, .agrees: finish(id, synced: nil, &effects)
        case .offer(let ancestor):
            if countDisagreement(change) {
                documents[id]?.change.remoteAncestor = ancestor
                documents[id]?.stage = .offered
                waiting.append(id)
            } else {
                fail(id, conflict(change), &effects)
            }
        case .waits(let isMarked):
            if !isMarked { disagreements[id, default: Disagreement()].isFetchable = true }
            park(id, &effects)
        case nil: break
        }
    }

    func conflict(_ change: LocalChange) -> LoveseatError {
        let name = "document \"\(change.documentID)\""
        return LoveseatError(
            .httpConflict,
            disagreements[change.documentID]?.isUnseen == true
                ? "\(name) is not taken: the peer has a document of this name that this user may not see"
                    + ", or that the filter leaves out"
                : "\(name) conflicts with another revision at the peer"
        )
    }

    // MARK: Waiting for the pull

    /// Leaves a document to the pull, if there is one, to bring what the peer has.
    private mutating func park(_ id: String, _ effects: inout SessionEffects) {
        guard let change = documents[id]?.change else { return }
        guard pulls, disagreements[id]?.isUnseen != true else { return fail(id, conflict(change), &effects) }
        release(id, as: .parked)
    }

    private func isParked(_ id: String) -> Bool {
        if case .parked = documents[id]?.stage { true } else { false }
    }

    /// Documents that the pull will not bring, and that can be fetched by their IDs.
    var fetchable: [String] {
        disagreements.filter { $0.value.isFetchable && isParked($0.key) }.keys.sorted()
    }

    /// A document was fetched by its ID. If that explains nothing, nothing will.
    mutating func fetched(_ id: String, isComplete: Bool, _ effects: inout SessionEffects) {
        guard isParked(id) else { return }
        if isComplete { disagreements[id, default: Disagreement()].isUnseen = true }
        documentMoved(id, &effects)
    }

    /// The pull, or somebody who resolved a conflict, changed a document.
    mutating func documentMoved(_ id: String, _ effects: inout SessionEffects) {
        guard isParked(id) else { return }
        documents[id]?.stage = .offered
        meet(id, .unknown, &effects)
    }

    /// The peer took a document away, and it was purged: what waited of it was no edit, and is done with.
    mutating func documentRemoved(_ id: String) {
        if isParked(id) { forget(id) }
    }

    /// Documents whose conflict nothing has explained; they stay pending.
    mutating func reportParked(_ effects: inout SessionEffects) {
        let parked = documents.values.filter { isParked($0.change.documentID) }.map(\.change)
        for change in parked.sorted(by: { $0.sequence < $1.sequence }) {
            report(change, conflict(change), &effects)
            documents[change.documentID] = nil
        }
    }

    // MARK: Loveseats

    /// The peer took the revision, and knows a reason why another one is current.
    mutating func outranked(
        _ id: String,
        _ parcel: Parcel,
        _ tree: [UInt8],
        _ effects: inout SessionEffects
    ) {
        do throws(ReplyError) {
            let (knowledge, current) = try TreeMessage.parse(tree)
            hear(knowledge, current, id, parcel, &effects)
        } catch {
            failure = LoveseatError(reply: error, "reading what the peer knows of \"\(id)\"")
        }
    }

    /// Where the two still disagree, the document was stored anew and comes by the feed once more.
    private mutating func hear(
        _ knowledge: TreeKnowledge,
        _ current: RevisionID,
        _ id: String,
        _ parcel: Parcel,
        _ effects: inout SessionEffects
    ) {
        guard let change = documents[id]?.change else { return }
        let hearing = effects.ask {
            try $0.hear(knowledge, of: id, current: current, takesContent: pulls, in: collection)
        }
        switch hearing {
        case .agrees: agreed(id)
        case .disagrees: countDisagreement(change)
        case .isBehind:
            report(change, nil, &effects)
            return finish(id, synced: parcel.revision, isDocument: true, &effects)
        case .lacksContent:
            // A pull that began with an empty collection may have left out that the document was deleted.
            disagreements[id, default: Disagreement()].isFetchable = true
            return park(id, &effects)
        case nil: return
        }
        report(change, nil, &effects)
        finish(id, synced: nil, isDocument: true, &effects)
    }

    // MARK: Counting

    mutating func agreed(_ id: String) {
        disagreements[id]?.count = 0
        disagreements[id]?.revision = nil
    }

    /// Returns whether another attempt is worth it.
    @discardableResult
    mutating func countDisagreement(_ change: LocalChange) -> Bool {
        var entry = disagreements[change.documentID] ?? Disagreement()
        entry.count = entry.revision == change.revision ? entry.count + 1 : 1
        entry.revision = change.revision
        disagreements[change.documentID] = entry
        return !isGivenUp(change)
    }

    /// Whether this session has offered a revision often enough.
    func isGivenUp(_ change: LocalChange) -> Bool {
        guard let entry = disagreements[change.documentID], entry.revision == change.revision else {
            return false
        }
        return entry.count > tuning.disagreements
    }
}
