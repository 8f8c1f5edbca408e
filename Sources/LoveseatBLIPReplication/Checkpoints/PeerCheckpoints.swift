import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The checkpoints that the peer keeps here (replication.md §5).
struct PeerCheckpoints: Sendable {
    /// Those that were saved over this connection.
    private var saved: Set<ExactText> = []

    /// Answers a request for a checkpoint.
    func answer(
        _ request: GetCheckpointMessage,
        number: UInt64,
        from replica: any ReplicaCheckpoints,
        _ effects: inout SessionEffects
    ) {
        // The database failed, and the peer was told.
        guard let found = effects.answering(number, { try replica.peerCheckpoint(request.id) }) else {
            return
        }
        guard let found else {
            return effects.append(.replyError(ReplyError("HTTP", 404), to: number, isUrgent: false))
        }
        let answer = GetCheckpointMessage.Answer(revision: found.revision, body: found.body)
        effects.append(.reply(answer.message, to: number))
    }

    /// Saves a checkpoint. `limit`: how many a connection may save.
    mutating func save(
        _ request: SetCheckpointMessage,
        number: UInt64,
        limit: Int,
        in replica: any ReplicaCheckpoints,
        _ effects: inout SessionEffects
    ) throws(ReplyError) {
        let id = ExactText(request.id)
        guard saved.contains(id) || saved.count < limit else {
            throw ReplyError("HTTP", 403, "a connection may save \(limit) checkpoints")
        }
        saved.insert(id)
        guard let revision = CheckpointRevision.number(request.revision) else {
            throw ReplyError("HTTP", 409, "revision ID mismatch")
        }
        let stored = effects.answering(number) {
            try replica.savePeerCheckpoint(request.body, as: request.id, replacing: revision)
        }
        // The database failed, and the peer was told.
        guard let stored else { return }
        guard let stored else { throw ReplyError("HTTP", 409, "revision ID mismatch") }
        effects.append(.reply(SetCheckpointMessage.Answer(revision: stored).message, to: number))
    }
}
