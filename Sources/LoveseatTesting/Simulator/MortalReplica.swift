import LoveseatModel
import LoveseatReplication

/// The database as a process sees it that may die: after that it is asked nothing more.
final class MortalReplica: ReplicaStore {
    private let inner: any ReplicaStore
    private let isDead: () -> Bool
    private let onAsked: (StoreRequest, StoreAnswer) -> Void

    init(
        _ inner: any ReplicaStore,
        isDead: @escaping () -> Bool,
        onAsked: @escaping (StoreRequest, StoreAnswer) -> Void = { _, _ in }
    ) {
        (self.inner, self.isDead, self.onAsked) = (inner, isDead, onAsked)
    }

    func perform(_ request: StoreRequest) -> StoreAnswer {
        guard !isDead() else { return .failed(LoveseatError(.unexpectedError, "the process died")) }
        let answer = inner.perform(request)
        onAsked(request, answer)
        return answer
    }
}
