import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Handles revisions that the peer did not take as its current ones (replication.md §8, docs/decisions/0001).
extension PushSession {
    // MARK: Hubs

    /// Handles a hub whose revision is another one than that on which the proposal is based.
    mutating func handleConflict(_ document: Outgoing, _ state: HubState, _ effects: inout SessionEffects) {
        let change = document.change
        switch effects.ask({ try replica.reconcile(change, state) }) {
        case .isObsolete, .agrees: finish(document, synced: nil, &effects)
        case .offer(let ancestor):
            if countDisagreement(change) {
                document.change.remoteAncestor = ancestor
                document.stage = .offered
                waiting.append(document)
            } else {
                fail(document, conflict(change), &effects)
            }
        case .waits(let isMarked):
            if !isMarked { disagreements[ExactText(document.id), default: Disagreement()].isFetchable = true }
            park(document, &effects)
        case nil: break
        }
    }

    /// Whether only the content of a document goes to the hub in this session.
    func isOnlyCopied(_ document: Outgoing) -> Bool {
        disagreements[ExactText(document.id)]?.copiedOnly == document.change.revision
    }

    /// Proposes the content as a copy on top of the hub's revision, to a hub that refused the line.
    mutating func offerCopy(_ document: Outgoing, over hub: RevisionName?, _ effects: inout SessionEffects) {
        guard countDisagreement(document.change) else {
            return fail(document, conflict(document.change), &effects)
        }
        disagreements[ExactText(document.id)]?.copiedOnly = document.change.revision
        document.change.remoteAncestor = hub
        document.stage = .offered
        waiting.append(document)
    }

    /// Asks a hub whether it has the revision that it took. A hub that has it below a deletion accepts it and changes nothing, as does a
    /// gateway whose document was purged and that has it on a deleted branch.
    mutating func doubt(_ document: Outgoing, _ revision: RevisionID) {
        var entry = disagreements[ExactText(document.id)] ?? Disagreement()
        (entry.taken, entry.isAsked) = (revision, true)
        disagreements[ExactText(document.id)] = entry
        document.change.remoteAncestor = .revision(revision)
        document.stage = .offered
        waiting.append(document)
    }

    /// Whether the answer to a proposal says if the peer has the revision that it took.
    mutating func isAskedAbout(_ document: Outgoing) -> Bool {
        guard var entry = disagreements[ExactText(document.id)], entry.isAsked else { return false }
        entry.isAsked = false
        disagreements[ExactText(document.id)] = entry
        return entry.taken == document.change.revision
    }

    /// Finishes a document: the hub answered that it has the revision, or that it takes it again.
    mutating func believe(_ document: Outgoing, _ effects: inout SessionEffects) {
        disagreements[ExactText(document.id)]?.taken = nil
        if disagreements[ExactText(document.id)] == Disagreement() {
            disagreements[ExactText(document.id)] = nil
        }
        finish(document, synced: NamedRevision(document.change), isDocument: true, &effects)
    }

    /// Whether a hub has taken this content in this session. It is not sent again: a hub that does not keep what it takes would be sent the
    /// same for ever, as would two that copy over each other. The next session sees the outcome.
    func wasTaken(_ content: SendableRevision, of document: Outgoing) -> Bool {
        guard let entry = disagreements[ExactText(document.id)] else { return false }
        // A copy on top of the original's own parent is the original.
        if content.revision == entry.taken { return true }
        return content.copy.map { $0.original == entry.copied } ?? false
    }

    func conflict(_ change: LocalChange) -> LoveseatError {
        let name = "document \"\(change.documentID)\""
        let entry = disagreements[ExactText(change.documentID)]
        // A session that pulls, too, would have fetched the peer's version.
        if entry?.isStored == true, entry?.isUnseen != true, !pulls { return .storedBeside(name) }
        return LoveseatError(
            .httpConflict,
            entry?.isUnseen == true
                ? "\(name) is not taken: the peer has a document of this name that this user may not see"
                    + ", or that the filter leaves out"
                : "\(name) conflicts with another revision at the peer" + (pulls ? "" : ": pull that one")
        )
    }

    // MARK: Waiting for the pull

    /// Leaves a document waiting until the pull, if there is one, brings the peer's revision.
    private mutating func park(_ document: Outgoing, _ effects: inout SessionEffects) {
        guard pulls, disagreements[ExactText(document.id)]?.isUnseen != true else {
            return fail(document, conflict(document.change), &effects)
        }
        leave(document, as: .parked)
    }

    private func parked(_ id: String) -> Outgoing? {
        documents[ExactText(id)].flatMap { $0.isParked ? $0 : nil }
    }

    /// Documents that the pull will not bring, and that can be fetched by their IDs.
    var fetchable: [String] {
        disagreements.filter { $0.value.isFetchable && parked($0.key.text) != nil }.map(\.key.text).sorted()
    }

    /// Continues with a document that was fetched by its ID. If that did not explain the conflict, nothing will.
    mutating func fetched(_ id: String, isComplete: Bool, _ effects: inout SessionEffects) {
        // The document may have changed while it was fetched, and is offered again.
        guard parked(id) != nil else { return }
        if isComplete { disagreements[ExactText(id), default: Disagreement()].isUnseen = true }
        documentMoved(id, &effects)
    }

    /// Offers a waiting document again, which the pull or a resolver has changed.
    mutating func documentMoved(_ id: String, _ effects: inout SessionEffects) {
        // Most documents that change do not wait for the pull.
        guard let document = parked(id) else { return }
        document.stage = .offered
        handleConflict(document, .unknown, &effects)
    }

    /// Finishes a document that the peer took away and that was purged: its waiting change was not an edit.
    mutating func documentRemoved(_ id: String) {
        // Most documents that are taken away do not wait for the pull.
        guard let document = parked(id) else { return }
        documents[ExactText(id)] = nil
        complete(document.change)
    }

    /// Reports the documents whose conflict nothing has explained. They stay pending.
    mutating func reportParked(_ effects: inout SessionEffects) {
        let parked = documents.values.filter(\.isParked).map(\.change)
        for change in parked.sorted(by: { $0.sequence < $1.sequence }) {
            setup.report(change, conflict(change), &effects)
            documents[ExactText(change.documentID)] = nil
        }
    }

    // MARK: Loveseats

    /// Handles the answer that the peer took the revision, and knows a reason why another one is current.
    mutating func outranked(
        _ document: Outgoing,
        _ parcel: Parcel,
        _ tree: [UInt8],
        _ effects: inout SessionEffects
    ) {
        do throws(ReplyError) {
            let tree = try TreeMessage.parse(tree)
            receive(tree.knowledge, tree.current, document, parcel, &effects)
        } catch {
            failure = LoveseatError(reply: error, "reading what the peer knows of \"\(document.id)\"")
        }
    }

    /// Stores the peer's tree. If the two sides still disagree, the document gets a new sequence and comes by the feed once more.
    private mutating func receive(
        _ knowledge: TreeKnowledge,
        _ current: RevisionID,
        _ document: Outgoing,
        _ parcel: Parcel,
        _ effects: inout SessionEffects
    ) {
        let (id, change) = (document.id, document.change)
        let theirs = RevisionTree(nodes: knowledge.nodes, remotes: [:])
        let hearing = effects.ask {
            try replica.merge(knowledge, of: id, current: current, takesContent: pulls)
        }
        switch hearing {
        case .agrees: agreed(id)
        case .disagrees: countDisagreement(change)
        case .isBehind: return finish(document, synced: parcel.revision, &effects)
        case .isRefused(let error): return fail(document, error, &effects)
        case .lacksContent:
            // A pull that began with an empty collection may have left out that the document was deleted.
            var entry = disagreements[ExactText(id)] ?? Disagreement()
            entry.isFetchable = true
            entry.isStored = theirs.node(parcel.revision.id) != nil
            disagreements[ExactText(id)] = entry
            return park(document, &effects)
        case nil: return
        }
        // A revision at the peer that descends from this one has it below: it was there before.
        let wasThere = parcel.revision.id != current && theirs.isAncestor(parcel.revision.id, of: current)
        if !wasThere { setup.report(change, nil, &effects) }
        finish(document, synced: nil, isDocument: !wasThere, &effects)
    }

    // MARK: Counting

    mutating func agreed(_ id: String) {
        if disagreements.isEmpty { return }
        disagreements[ExactText(id)]?.count = 0
        disagreements[ExactText(id)]?.revision = nil
    }

    /// Returns whether another attempt is worth it.
    @discardableResult
    mutating func countDisagreement(_ change: LocalChange) -> Bool {
        var entry = disagreements[ExactText(change.documentID)] ?? Disagreement()
        entry.count = entry.revision == change.revision ? entry.count + 1 : 1
        entry.revision = change.revision
        disagreements[ExactText(change.documentID)] = entry
        return !isGivenUp(change)
    }

    /// Whether this session has offered a revision often enough.
    func isGivenUp(_ change: LocalChange) -> Bool {
        guard let entry = disagreements[ExactText(change.documentID)], entry.revision == change.revision
        else {
            return false
        }
        return entry.count > tuning.disagreements
    }
}
