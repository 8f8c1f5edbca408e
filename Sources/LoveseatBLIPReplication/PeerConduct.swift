import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The peer's conduct over this connection: whether it is silent, and how often it broke the protocol.
struct PeerConduct: Sendable {
    /// Whether anything came since the silence timer was set.
    var hasHeard = false
    /// The messages that broke the protocol.
    private var violations = 0

    /// Sets the silence timer.
    mutating func startListening(_ tuning: ReplicationTuning, _ effects: inout SessionEffects) {
        hasHeard = false
        effects.append(.setTimer(.silence, milliseconds: tuning.silence))
    }

    /// Returns the error that ends the session if the peer is silent; otherwise sets the silence timer again.
    ///
    /// `isOurTurn`: whether the peer may be silent because this side is busy.
    mutating func checkSilence(
        isOurTurn: Bool,
        _ tuning: ReplicationTuning,
        _ effects: inout SessionEffects
    ) -> LoveseatError? {
        guard hasHeard || isOurTurn else {
            return LoveseatError(
                .timeout,
                "the peer answers nothing: no message for more than \(tuning.silence / 1_000) seconds. Is it overloaded?"
            )
        }
        startListening(tuning, &effects)
        return nil
    }

    /// Counts protocol violations. Returns the error that ends the session of a peer that keeps breaking the protocol.
    mutating func failure(after errors: [ReplyError], _ tuning: ReplicationTuning) -> LoveseatError? {
        var failure: LoveseatError?
        for error in errors {
            violations += 1
            guard violations > tuning.violationsAccepted else { continue }
            failure =
                failure
                ?? LoveseatError(
                    .remoteError,
                    "the peer broke the protocol again and again, at last: \(error.text)"
                )
        }
        return failure
    }
}
