import LoveseatBLIP
import LoveseatModel

/// Decides where one collection of an active peer starts, and when its checkpoint is saved (replication.md §5).
///
/// Saving goes to the peer first, then to the database: a cut in between can only repeat work.
struct CheckpointSession: Sendable {
    private enum Saving: Hashable {
        case no, beginning, remotely, refetching, locally
    }

    let collection: Int
    let id: String
    /// The position to send in the `collection` property; nil in the form of `CBMobile_2`.
    var wireIndex: Int?
    private(set) var start = Checkpoint()
    /// Which marks of what the peer has count in this session.
    private(set) var trust = MarkTrust()
    private var hasLocal = false
    private var marks = MarkState.unknown
    /// What the peer was marked to have before is either known to be there, or offered again by this session.
    private var coversMarks: Bool { pushes || trust.leavesOutMarked || (marks == .unknown && !hasLocal) }
    private var peerRevision = ""
    private var saved: Checkpoint?
    private var saving = Saving.no
    private var beingSaved: Checkpoint?
    private var timerIsSet = false
    /// No checkpoint is kept, or the peer refused the last save; trying again at every opportunity would never end.
    private var gaveUp: Bool
    /// How often this save may still be tried under the revision that the peer has.
    private var repairsLeft = 0

    private let repairs: Int
    private let pushes: Bool
    private let reset: ActivePlan.Reset

    /// `repairs`: see ``ReplicationTuning/checkpointRepairs``.
    init(collection: Int, id: String, repairs: Int, _ plan: ActivePlan) {
        self.collection = collection
        self.id = id
        self.repairs = repairs
        pushes = plan.pushes
        reset = plan.reset
        gaveUp = plan.isFetch
    }

    var isSaving: Bool { saving != .no }

    mutating func loaded(_ local: JSONText?, _ marks: MarkState) {
        self.marks = marks
        guard let local else { return }
        hasLocal = true
        start = Checkpoint(JSONElement(local))
    }

    /// The peer's copy, or that it has none.
    mutating func peerAnswered(_ json: JSONElement?, revision: String?) {
        peerRevision = revision ?? ""
        let peer = json.map { Checkpoint($0) } ?? Checkpoint()
        // Where nothing was done yet, a peer that has lost its checkpoint would agree all the same.
        let agrees = hasLocal && start.intersect(peer) && json != nil
        saved = agrees ? start : nil
        trust = markTrust(agreesWithPeer: agrees)
        guard reset != .none else { return }
        (start, saved) = (Checkpoint(), nil)
    }

    /// A peer that loses power loses its last commits, and with them what it is marked here to have. What a checkpoint that
    /// both sides still have covers is there for certain (docs/decisions/0006-lost-commits.md).
    private func markTrust(agreesWithPeer agrees: Bool) -> MarkTrust {
        var trust = MarkTrust()
        trust.leavesOutMarked = agrees && marks == .ours(isCovered: true) && reset != .checkpointAndMarks
        let isCertain =
            switch marks {
            case .unknown, .ours(isCovered: true): true
            // What a session that only pulls is marked to have came from the peer, which may well take it back.
            case .ours(isCovered: false): !pushes
            case .others(let isCovered): isCovered && !hasLocal
            }
        if !isCertain || (hasLocal && !agrees) { trust.followed = start.completed }
        return trust
    }

    /// Notes progress: saves later, or now.
    mutating func progressed(
        to checkpoint: Checkpoint,
        now: Bool,
        time: Int64,
        tuning: ReplicationTuning,
        _ effects: inout [ReplicationEffect]
    ) {
        guard !gaveUp, saving == .no, now || !timerIsSet, checkpoint != saved else { return }
        if now {
            save(checkpoint, time: time, &effects)
        } else if !timerIsSet {
            timerIsSet = true
            effects.append(
                .setTimer(.checkpoint(collection: collection), milliseconds: tuning.checkpointDelay)
            )
        }
    }

    mutating func timerFired(_ checkpoint: Checkpoint, time: Int64, _ effects: inout [ReplicationEffect]) {
        timerIsSet = false
        if checkpoint != saved, !gaveUp, saving == .no { save(checkpoint, time: time, &effects) }
    }

    /// Whether something would be lost, that is done again next time, if the connection ended now.
    func needsSave(_ checkpoint: Checkpoint) -> Bool { checkpoint != saved && !gaveUp }

    private mutating func save(_ checkpoint: Checkpoint, time: Int64, _ effects: inout [ReplicationEffect]) {
        if timerIsSet { effects.append(.cancelTimer(.checkpoint(collection: collection))) }
        timerIsSet = false
        beingSaved = checkpoint
        repairsLeft = repairs
        begin(&effects)
    }

    private mutating func begin(_ effects: inout [ReplicationEffect]) {
        saving = .beginning
        effects.append(
            .store(
                .beginCheckpoint(collection: collection),
                then: .checkpointBegun(collection: collection)
            )
        )
    }

    /// What is marked from now on is not covered by the checkpoint, which goes to the peer now.
    mutating func begun(time: Int64, _ effects: inout [ReplicationEffect]) {
        guard saving == .beginning, let checkpoint = beingSaved else { return }
        saving = .remotely
        var properties: MessageProperties = ["Profile": "setCheckpoint"]
        properties["collection"] = wireIndex.map(String.init)
        properties["client"] = id
        properties["rev"] = peerRevision
        let message = Message(properties, body: checkpoint.json(time: time).bytes)
        effects.append(.send(message, then: .setCheckpoint(collection: collection)))
    }

    mutating func savedRemotely(
        _ answer: Result<Message, ReplyError>,
        time: Int64,
        _ effects: inout [ReplicationEffect]
    ) {
        guard saving == .remotely, let beingSaved else { return }
        switch answer {
        case .success(let message):
            peerRevision = message.properties["rev"] ?? ""
            saving = .locally
            effects.append(
                .store(
                    .saveCheckpoint(
                        collection: collection,
                        beingSaved.json(time: time),
                        coversMarks: coversMarks
                    ),
                    then: .checkpointSaved(collection: collection)
                )
            )
        // Another revision is stored there, or none any more (gateway.md 18).
        case .failure(let error) where [404, 409].contains(error.code) && repairsLeft > 0:
            repairsLeft -= 1
            saving = .refetching
            var properties: MessageProperties = ["Profile": "getCheckpoint"]
            properties["collection"] = wireIndex.map(String.init)
            properties["client"] = id
            effects.append(.send(Message(properties), then: .refetchCheckpoint(collection: collection)))
        case .failure(let error): giveUp(LoveseatError(reply: error, "saving the checkpoint"), &effects)
        }
    }

    private mutating func giveUp(_ error: LoveseatError, _ effects: inout [ReplicationEffect]) {
        saving = .no
        gaveUp = true
        effects.append(.report(.checkpointNotSaved(error)))
    }

    mutating func refetched(
        _ answer: Result<Message, ReplyError>,
        _ effects: inout [ReplicationEffect]
    ) {
        guard saving == .refetching else { return }
        switch answer {
        case .success(let message): peerRevision = message.properties["rev"] ?? ""
        case .failure(let error) where error.code == 404: peerRevision = ""
        case .failure(let error):
            return giveUp(LoveseatError(reply: error, "asking for the checkpoint"), &effects)
        }
        begin(&effects)
    }

    mutating func savedLocally(_ answer: StoreAnswer, _ effects: inout [ReplicationEffect]) {
        guard saving == .locally else { return }
        saving = .no
        if case .failed(let error) = answer { giveUp(error, &effects) } else { saved = beingSaved }
        beingSaved = nil
    }
}
