import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// A revision that was not requested.
///
/// It is not stored, since it could bypass filters and the decisions about lists. But honest peers send some revisions twice (gateway.md 54), so
/// it does not end the session.
struct UnrequestedRevision {
    let arrival: Arrival
    /// The kind of peer that sent it.
    let peer: RevisionTree.PeerKind

    /// Answers the peer: the revision is taken if it is here already, with the same content.
    func answer(from replica: any ReplicaInbox, _ setup: PullSetup, _ effects: inout SessionEffects) {
        guard let revision = arrival.header.name else {
            return impossible("a revision that passed its check has no ID")
        }
        var change = AnnouncedChange(
            sequence: arrival.header.sequence ?? RemoteSequence(0),
            documentID: arrival.header.documentID,
            revision: revision
        )
        if case .state(let state) = arrival.header.history { change.vector = state.vector }
        let teller: RevisionTree.PeerKind = peer == .hub ? .client : peer
        let verdicts = effects.ask { try replica.evaluate([change], from: teller) }
        // The database failed, which ends the session.
        guard let verdicts else { return }
        let isHere = verdicts == [.alreadyHere]
        guard !isHere || hasContent(in: replica, of: revision, &effects) else {
            let reason = "revision \(revision) is here with other content"
            let error = LoveseatError(.httpConflict, "the peer sent other content: \(reason)")
            setup.report(change.documentID, isDeleted: arrival.header.isDeleted, error, &effects)
            return arrival.answer(ReplyError("HTTP", 409, reason), &effects)
        }
        guard isHere else {
            return arrival.answer(ReplyError("HTTP", 403, "the revision was not asked for"), &effects)
        }
        // A peer may want no answer.
        guard let request = arrival.request else { return }
        let taken = RevisionMessage.Answer.taken(isNew: false)
        effects.append(.reply(taken.message(isUrgent: arrival.isUrgent), to: request))
    }

    /// Whether the revision, which is here already, came with the same content, as far as that can be told.
    private func hasContent(
        in replica: any ReplicaInbox,
        of revision: RevisionName,
        _ effects: inout SessionEffects
    ) -> Bool {
        let header = arrival.header
        // A body that cannot be read cannot be compared. It is not stored either.
        guard header.deltaSource == nil, !header.isDeleted, let (bytes, _) = try? header.parts(from: peer),
            let content = try? ReceivedBody(bytes, generation: header.generation), !content.isRemoved,
            !content.contradictsTable
        else { return true }
        let found = effects.ask { try replica.body(of: revision, header.documentID) }
        guard case .some(.some(let body)) = found else { return true }
        return body.saysTheSame(as: content.body)
    }
}
