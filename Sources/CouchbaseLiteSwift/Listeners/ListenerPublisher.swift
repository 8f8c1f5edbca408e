#if canImport(Combine)
import Combine
import Synchronization

/// A publisher that adds a listener for each subscriber, when it subscribes, and removes the listener when the subscription is cancelled.
///
/// Every change is delivered, whatever the subscriber demands: what a listener is called with cannot be asked for again.
struct ListenerPublisher<Output>: Publisher {
    typealias Failure = Never

    let add: (@escaping (Output) -> Void) -> ListenerToken

    func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Never {
        let subscription = ListenerSubscription()
        subscriber.receive(subscription: subscription)
        subscription.begin(add { _ = subscriber.receive($0) })
    }
}

private final class ListenerSubscription: Subscription, Sendable {
    private struct State {
        var token: ListenerToken?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func begin(_ token: ListenerToken) {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.token = token }
            return state.isCancelled
        }
        if isCancelled { token.remove() }
    }

    func request(_ demand: Subscribers.Demand) {}

    func cancel() {
        let token = state.withLock { state in
            defer { state = State(token: nil, isCancelled: true) }
            return state.token
        }
        token?.remove()
    }
}
#endif
