import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A Loveseat's replica for a peer with version vectors, which makes the planted mistake.
final class FaultyVersions: ReplicaLayer {
    let inner: any Replica
    private let collection: Int
    private let owner: SimulatedPeer
    private let mistakes: VersionMistakes

    init(_ inner: any Replica, _ collection: Int, owner: SimulatedPeer, _ mistakes: VersionMistakes) {
        (self.inner, self.collection, self.owner, self.mistakes) = (inner, collection, owner, mistakes)
    }

    /// The state that is here; nil if there is no document.
    private func current(_ id: String) -> (node: RevisionTree.Node, state: StateHistory)? {
        guard let tree = owner.tree(id, in: collection), let node = tree.current else { return nil }
        return (node, tree.versions.state(of: node.id))
    }

    /// How the state that is here is related to a peer's; nil if there is no document.
    private func relation(_ id: String, to state: StateHistory) -> StateRelation? {
        current(id)?.state.relation(to: state)
    }

    /// Whether the state that is here and a peer's have been made at one time by two databases.
    private func isOfOneTime(_ id: String, _ state: StateHistory) -> Bool {
        guard let own = current(id)?.state.vector.current, let other = state.vector.current else {
            return false
        }
        return own.time == other.time && own.source != other.source
    }

    // MARK: Offers

    func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        let verdicts = try alive().evaluate(changes, from: peer)
        return zip(changes, verdicts).map { change, verdict in
            let (id, state) = (change.documentID, change.state)
            switch mistakes.fault {
            case .ignoreCover where verdict == .alreadyHere && relation(id, to: state) == .newer:
                return mistakes.errs(.ignoreCover) ? .wanted(ancestors: []) : verdict
            case .takeNewerForOlder where relation(id, to: state) == .older:
                return mistakes.errs(.takeNewerForOlder) ? .alreadyHere : verdict
            case .keepOwnOfEqualTimes where isOfOneTime(id, state): return .alreadyHere
            default: return verdict
            }
        }
    }

    func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        let verdicts = try alive().evaluate(proposals, from: peer)
        return zip(proposals, verdicts).map { proposal, verdict in
            let (id, state) = (proposal.documentID, proposal.state)
            switch mistakes.fault {
            case .ignoreCover where verdict == .alreadyHere && relation(id, to: state) == .newer:
                return mistakes.errs(.ignoreCover) ? .wanted : verdict
            case .takeNewerForOlder where relation(id, to: state) == .older:
                return mistakes.errs(.takeNewerForOlder) ? .alreadyHere : verdict
            case .keepOwnOfEqualTimes where isOfOneTime(id, state): return .alreadyHere
            default: return verdict
            }
        }
    }

    // MARK: Incoming

    func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
        switch mistakes.fault {
        case .ignoreCover:
            let older = revisions.filter { revision in
                revision.state.map { relation(revision.documentID, to: $0) == .newer } ?? false
            }
            let results = try alive().insert(revisions)
            for revision in older { try bringBack(revision) }
            return results
        case .keepOwnOfEqualTimes:
            let areRivals = revisions.map { revision in
                revision.state.map { isOfOneTime(revision.documentID, $0) } ?? false
            }
            let rest = zip(revisions, areRivals).filter { !$0.1 }.map(\.0)
            var results = try alive().insert(rest)[...]
            return areRivals.map { $0 ? .alreadyHere : results.popFirst() ?? .alreadyHere }
        case .mixUpContents: return try alive().insert(revisions.map(withOwnContent))
        default: return try alive().insert(revisions)
        }
    }

    /// Saves the content of a state that the current one includes.
    private func bringBack(_ revision: IncomingRevision) throws(LoveseatError) {
        do {
            _ = try owner.edit(
                revision.documentID,
                in: collection,
                revision.isDeleted ? .emptyObject : revision.body,
                isDeleted: revision.isDeleted
            )
        } catch { throw LoveseatError(storage: error) }
    }

    private func withOwnContent(_ revision: IncomingRevision) -> IncomingRevision {
        guard let state = revision.state, let (node, own) = current(revision.documentID),
            own.relation(to: state) == .conflict, let body = node.body
        else { return revision }
        var changed = IncomingRevision(
            documentID: revision.documentID,
            history: revision.history,
            isDeleted: node.isDeleted,
            body: body.canonical,
            sender: revision.sender
        )
        (changed.parent, changed.mayBeOld) = (revision.parent, revision.mayBeOld)
        changed.isOutdated = revision.isOutdated
        return changed
    }

    // MARK: Outgoing

    func changes(_ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        var page = try alive().changes(query)
        page.changes = page.changes.map { change in
            var change = change
            change.state = mistakes.state(change.state, of: change.documentID)
            return change
        }
        return page
    }

    func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision] {
        let found = try alive().revisions(requests)
        return zip(requests, found).map { request, outgoing in
            guard case .found(var content) = outgoing else { return outgoing }
            content.state = mistakes.state(content.state, of: request.documentID)
            return .found(content)
        }
    }

    func reconcile(_ change: LocalChange, _ state: HubState) throws(LoveseatError) -> Reconciliation {
        if mistakes.fault == .keepOwnOfEqualTimes, case .has(let theirs) = state,
            isOfOneTime(change.documentID, theirs)
        {
            return .waits(isMarked: true)
        }
        guard mistakes.fault == .countRefusalAsSuccess else { return try alive().reconcile(change, state) }
        let mark = SyncedRevision(
            documentID: change.documentID,
            revision: change.revision,
            sequence: change.sequence
        )
        try alive().markSynced([mark])
        return .agrees
    }
}

extension IncomingRevision {
    /// The state of a peer with version vectors; nil for a revision of a tree.
    fileprivate var state: StateHistory? {
        if case .state(let state) = history { state } else { nil }
    }
}
