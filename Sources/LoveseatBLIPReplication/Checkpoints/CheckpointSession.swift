import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Decides where one collection of an active peer starts, and when its checkpoint is saved (replication.md §5).
///
/// Saving goes to the peer first, then to the database: if the connection breaks in between, some work is repeated, and none is lost.
struct CheckpointSession {
    private enum Stage: Hashable {
        case idle
        /// The checkpoint was sent. `repairs`: how often it may still be sent again, under another revision of the peer's copy.
        case sent(Checkpoint, repairs: Int)
        /// The peer is asked under which revision it keeps its copy.
        case refetching(Checkpoint, repairs: Int)
    }

    private let replica: any ReplicaCheckpoints
    let collection: Int
    let id: String
    /// The position to send in the `collection` property; nil in the form of `CBMobile_2`.
    var wireIndex: Int?
    private(set) var start = Checkpoint()
    /// Which marks for the peer count in this session.
    private(set) var trust = MarkTrust()
    /// The state that earlier sessions have left.
    private var stored = StoredCheckpoint()
    private var hasLocal: Bool { stored.body != nil }
    /// The database's checkpoint says more than the part that both sides have.
    private var keepsMore = false
    /// Whether each revision that the peer was marked as having before is known to be there, or is offered again by this session.
    private var coversMarks: Bool {
        plan.pushes || trust.leavesOutMarked || (stored.marks == .unknown && !hasLocal)
    }
    private var peerRevision = ""
    private var saved: Checkpoint?
    private var stage = Stage.idle
    private var timerIsSet = false
    /// No checkpoint is kept, or the peer refused the last save. Trying again at every opportunity would never end.
    private var gaveUp: Bool

    private let repairs: Int
    private let plan: ActivePlan

    /// `repairs`: see ``ReplicationTuning/checkpointRepairs``.
    init(_ replica: any ReplicaCheckpoints, collection: Int, id: String, repairs: Int, _ plan: ActivePlan) {
        self.replica = replica
        self.collection = collection
        self.id = id
        self.repairs = repairs
        self.plan = plan
        gaveUp = plan.isFetch
    }

    var isSaving: Bool { stage != .idle }

    mutating func loaded(_ stored: StoredCheckpoint) {
        self.stored = stored
        // The first replication with a peer has no checkpoint yet.
        guard let local = stored.body else { return }
        start = Checkpoint(JSONElement(local))
    }

    /// Takes the peer's copy, or nil if it has none.
    mutating func peerAnswered(_ json: JSONElement?, revision: String?) {
        peerRevision = revision ?? ""
        let peer = json.map { Checkpoint($0) } ?? Checkpoint()
        // If nothing was done yet, a peer that has lost its checkpoint would seem to agree.
        let agrees = hasLocal && start.intersect(peer, wasTakenFrom: stored.wasTakenFrom) && json != nil
        // A peer that was put back to an earlier state has the same checkpoint then, and does not list the documents that it took away.
        if stored.wasTakenFromSince { start.remote = nil }
        saved = agrees ? start : nil
        keepsMore = hasLocal && !agrees
        trust = markTrust(agreesWithPeer: agrees)
        if plan.reset == .none { return }
        (start, saved) = (Checkpoint(), nil)
    }

    /// A peer that loses power loses its last commits, and with them revisions that it is marked here as having. It certainly has those
    /// that are covered by a checkpoint that both sides still have (docs/decisions/0006-lost-commits.md).
    private func markTrust(agreesWithPeer agrees: Bool) -> MarkTrust {
        var trust = MarkTrust()
        trust.leavesOutMarked =
            agrees && stored.marks == .ours(isCovered: true) && plan.reset != .checkpointAndMarks
        let isCertain =
            switch stored.marks {
            case .unknown, .ours(isCovered: true): true
            // The marks of a session that only pulls are of the peer's own revisions, which it may well take back.
            case .ours(isCovered: false): !plan.pushes
            case .others(let isCovered): isCovered && !hasLocal
            }
        if !isCertain || (hasLocal && !agrees) { trust.followed = start.completed }
        return trust
    }

    /// Notes progress, and saves the checkpoint later or now.
    mutating func progressed(
        to checkpoint: Checkpoint,
        now: Bool,
        time: Int64,
        tuning: ReplicationTuning,
        _ effects: inout SessionEffects
    ) {
        if gaveUp || stage != .idle || (timerIsSet && !now) || checkpoint == saved { return }
        if now {
            save(checkpoint, time: time, &effects)
        } else if !timerIsSet {
            timerIsSet = true
            effects.append(
                .setTimer(.checkpoint(collection: collection), milliseconds: tuning.checkpointDelay)
            )
        }
    }

    mutating func timerFired(_ checkpoint: Checkpoint, time: Int64, _ effects: inout SessionEffects) {
        timerIsSet = false
        if checkpoint != saved, !gaveUp, stage == .idle { save(checkpoint, time: time, &effects) }
    }

    private mutating func save(_ checkpoint: Checkpoint, time: Int64, _ effects: inout SessionEffects) {
        if timerIsSet { effects.append(.cancelTimer(.checkpoint(collection: collection))) }
        timerIsSet = false
        send(checkpoint, repairs: repairs, time: time, &effects)
    }

    private mutating func send(
        _ checkpoint: Checkpoint,
        repairs: Int,
        time: Int64,
        _ effects: inout SessionEffects
    ) {
        // The database cannot be used: the session ends, or goes on without a checkpoint.
        guard retract(time: time, &effects) else { return }
        // The checkpoint does not cover marks that are made from now on. If the database cannot be read, it is not sent.
        guard use(&effects, { replica throws(LoveseatError) in try replica.beginCheckpoint() }) else {
            return
        }
        stage = .sent(checkpoint, repairs: repairs)
        let request = SetCheckpointMessage(
            id: id,
            replacing: peerRevision,
            body: checkpoint.json(time: time),
            collection: wireIndex
        )
        effects.append(.send(request.message, then: .setCheckpoint(collection: collection)))
    }

    /// Removes what the peer has lost from the database's checkpoint, before the peer gets a new one. Otherwise, if the database lost power
    /// later, it would compare its old checkpoint with the new one, and count sequences as done whose changes were lost as well.
    ///
    /// - Returns: whether to go on.
    private mutating func retract(time: Int64, _ effects: inout SessionEffects) -> Bool {
        guard keepsMore else { return true }
        keepsMore = false
        let body = start.json(time: time)
        return use(&effects) { replica throws(LoveseatError) in try replica.retractCheckpoint(body) }
    }

    /// Returns whether the database could be used. If it is busy the session ends, else it goes on without a checkpoint.
    private mutating func use(
        _ effects: inout SessionEffects,
        _ body: (any ReplicaCheckpoints) throws(LoveseatError) -> Void
    ) -> Bool {
        do throws(LoveseatError) {
            try body(replica)
            return true
        } catch  where error.code == .busy {
            effects.fail(error)
        } catch { giveUp(error, &effects) }
        return false
    }

    mutating func savedRemotely(
        _ answer: Result<Message, ReplyError>,
        time: Int64,
        _ effects: inout SessionEffects
    ) {
        guard case .sent(let checkpoint, let repairs) = stage else {
            return impossible("no checkpoint was sent: \(stage)")
        }
        switch answer {
        case .success(let message):
            peerRevision = SetCheckpointMessage.Answer(message).revision
            saveLocally(checkpoint, time: time, &effects)
        // Another revision is stored there, or none any more (gateway.md 18).
        case .failure(let error) where [404, 409].contains(error.code) && repairs > 0:
            stage = .refetching(checkpoint, repairs: repairs - 1)
            let request = GetCheckpointMessage(id: id, collection: wireIndex)
            effects.append(.send(request.message, then: .refetchCheckpoint(collection: collection)))
        case .failure(let error): giveUp(LoveseatError(reply: error, "saving the checkpoint"), &effects)
        }
    }

    private mutating func saveLocally(_ checkpoint: Checkpoint, time: Int64, _ effects: inout SessionEffects)
    {
        stage = .idle
        let body = checkpoint.json(time: time)
        let isWritten = use(&effects) { [coversMarks] replica throws(LoveseatError) in
            try replica.saveCheckpoint(body, coversMarks: coversMarks)
        }
        if isWritten { saved = checkpoint }
    }

    private mutating func giveUp(_ error: LoveseatError, _ effects: inout SessionEffects) {
        stage = .idle
        gaveUp = true
        effects.append(.report(.checkpointNotSaved(error)))
    }

    mutating func refetched(
        _ answer: Result<Message, ReplyError>,
        time: Int64,
        _ effects: inout SessionEffects
    ) {
        guard case .refetching(let checkpoint, let repairs) = stage else {
            return impossible("no checkpoint was asked for: \(stage)")
        }
        switch answer {
        case .success(let message): peerRevision = GetCheckpointMessage.Answer(message).revision ?? ""
        case .failure(let error) where error.code == 404: peerRevision = ""
        case .failure(let error):
            return giveUp(LoveseatError(reply: error, "asking for the checkpoint"), &effects)
        }
        send(checkpoint, repairs: repairs, time: time, &effects)
    }
}
