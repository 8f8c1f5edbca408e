import LoveseatBLIP
import LoveseatModel

/// Decides where one collection of an active peer starts, and when its checkpoint is saved (replication.md §5).
///
/// Saving goes to the peer first, then to the database: a cut in between can only repeat work.
struct CheckpointSession: Sendable {
    private enum Saving: Hashable {
        case no, remotely, refetching, locally
    }

    let collection: Int
    let id: String
    /// The position to send in the `collection` property; nil in the form of `CBMobile_2`.
    var wireIndex: Int?
    private(set) var start = Checkpoint()
    private(set) var agreesWithPeer = true
    private(set) var hasLocal = false
    private var peerRevision = ""
    private var saved: Checkpoint?
    private var saving = Saving.no
    private var beingSaved: Checkpoint?
    private var timerIsSet = false
    /// The peer refused the last save; trying again at every opportunity would never end.
    private var gaveUp = false
    /// How often this save may still be tried under the revision that the peer has.
    private var repairsLeft = 0

    private let repairs: Int

    /// `repairs`: see ``ReplicationTuning/checkpointRepairs``.
    init(collection: Int, id: String, repairs: Int) {
        self.collection = collection
        self.id = id
        self.repairs = repairs
    }

    var isSaving: Bool { saving != .no }

    mutating func loaded(_ local: JSONText?) {
        guard let local else { return }
        hasLocal = true
        start = Checkpoint(JSONElement(local))
    }

    /// The peer's copy, or that it has none.
    mutating func peerAnswered(_ json: JSONElement?, revision: String?) {
        peerRevision = revision ?? ""
        guard hasLocal else { return }
        let peer = json.map { Checkpoint($0) } ?? Checkpoint()
        agreesWithPeer = start.intersect(peer)
        saved = agreesWithPeer ? start : nil
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
        send(checkpoint, time: time, &effects)
    }

    private mutating func send(_ checkpoint: Checkpoint, time: Int64, _ effects: inout [ReplicationEffect]) {
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
                    .saveCheckpoint(collection: collection, beingSaved.json(time: time)),
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
        time: Int64,
        _ effects: inout [ReplicationEffect]
    ) {
        guard saving == .refetching, let beingSaved else { return }
        switch answer {
        case .success(let message): peerRevision = message.properties["rev"] ?? ""
        case .failure(let error) where error.code == 404: peerRevision = ""
        case .failure(let error):
            return giveUp(LoveseatError(reply: error, "asking for the checkpoint"), &effects)
        }
        send(beingSaved, time: time, &effects)
    }

    mutating func savedLocally(_ answer: StoreAnswer, _ effects: inout [ReplicationEffect]) {
        guard saving == .locally else { return }
        saving = .no
        if case .failed(let error) = answer { giveUp(error, &effects) } else { saved = beingSaved }
        beingSaved = nil
    }
}
