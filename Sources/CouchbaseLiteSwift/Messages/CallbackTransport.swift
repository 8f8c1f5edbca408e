import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import Synchronization

/// Makes the engine's transport of an app's connection, and opens it.
///
/// Unchecked, because apps' connections are not marked: they are documented to be called on any thread.
final class CallbackTransport: MessageTransport, ReplicatorConnection, @unchecked Sendable {
    /// The maximum number of received bytes that were not consumed yet. Peers wait for each other long before; an app that delivers more does
    /// not deliver what a peer sent.
    private static let receiveLimit = 32 << 20

    private struct State {
        var arrived: [[UInt8]] = []
        var failure: MessagingError?
        var isClosed = false
        var opening: Task<Void, any Error>?
    }

    let connection: any MessageEndpointConnection
    private let mailbox = Mailbox(limit: receiveLimit) {}
    private let state = Mutex(State())

    init(_ connection: any MessageEndpointConnection) { self.connection = connection }

    /// Opens the connection. All calls wait for the first one.
    func open() async throws {
        let opening = try state.withLock { state in
            if let opening = state.opening { return opening }
            if state.isClosed {
                throw LoveseatError(.webSocketGoingAway, "the connection was closed before it was open")
            }
            let opening = Task.detached(executorPreference: BlockingThreads.shared) { [self] in
                try await waitFor { self.connection.open(connection: self, completion: $0) }
            }
            state.opening = opening
            return opening
        }
        try await opening.value
    }

    func send(_ bytes: [UInt8]) async throws {
        try await open()
        try await waitFor { self.connection.send(message: Message(bytes), completion: $0) }
    }

    func receive() async throws -> [UInt8]? {
        try await open()
        if let first = state.withLock({ $0.arrived.isEmpty ? nil : $0.arrived.removeFirst() }) {
            return first
        }
        guard let arrived = try await mailbox.receive(), let first = arrived.first else {
            if let failure = state.withLock({ $0.failure }) { throw failure }
            return nil
        }
        state.withLock { $0.arrived = Array(arrived.dropFirst()) }
        return first
    }

    /// Asks the app to close, once.
    func close() async {
        let (wasClosed, wasOpened, failure) = state.withLock { state in
            defer { state.isClosed = true }
            return (state.isClosed, state.opening != nil, state.failure?.error)
        }
        if wasClosed { return }
        // The app has nothing to close if it was not asked to open.
        if wasOpened {
            await withCheckedContinuation { continuation in
                let once = Once<Void> { continuation.resume() }
                connection.close(error: failure) { once.run(()) }
            }
        }
        mailbox.finish()
    }

    private func note(_ error: MessagingError?) { state.withLock { $0.failure = $0.failure ?? error } }

    private func waitFor(
        _ start: @escaping (@escaping @Sendable (Bool, MessagingError?) -> Void) -> Void
    ) async throws {
        let error: MessagingError? = await withCheckedContinuation { continuation in
            let once = Once<MessagingError?> { continuation.resume(returning: $0) }
            start { success, error in
                let unknown = LoveseatError(
                    .unexpectedError,
                    "the connection failed without an error"
                )
                once.run(success ? nil : error ?? MessagingError(error: unknown, isRecoverable: true))
            }
        }
        if let error {
            note(error)
            throw error
        }
    }

    // MARK: The app's side

    func close(error: MessagingError?) {
        note(error)
        mailbox.finish()
    }

    func receive(message: Message) {
        if mailbox.deliver([message.bytes]) { return }
        let overflow = LoveseatError(
            .webSocketCloseUserPermanent,
            "the peer sent more than \(Self.receiveLimit) bytes without waiting for an acknowledgement"
        )
        close(error: MessagingError(error: overflow, isRecoverable: false))
    }
}

/// A completion of which only the first call counts.
private final class Once<Value: Sendable>: Sendable {
    private let body: @Sendable (Value) -> Void
    private let isDone = Atomic(false)

    init(_ body: @escaping @Sendable (Value) -> Void) { self.body = body }

    func run(_ value: Value) {
        if !isDone.exchange(true, ordering: .acquiringAndReleasing) { body(value) }
    }
}
