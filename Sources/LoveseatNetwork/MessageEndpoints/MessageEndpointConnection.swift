import LoveseatCore
import LoveseatModel
private import Synchronization

/// A connection over the app's own transport, with callbacks, as in Couchbase Lite. ``MessageTransport`` is the same
/// with `async` methods.
///
/// Its methods may be called from any thread. Messages are sent one at a time: the next one follows the completion of
/// the one before.
public protocol MessageEndpointConnection: AnyObject, Sendable {
    /// Connects to the peer. Call the completion once, with true or with an error. From then on, pass what arrives to `connection`.
    func open(
        connection: any ReplicatorConnection,
        completion: @escaping @Sendable (Bool, MessagingError?) -> Void
    )
    /// Disconnects, because replication has finished or failed. Call the completion once.
    func close(error: (any Error)?, completion: @escaping @Sendable () -> Void)
    /// Sends a message. Call the completion once, when the connection can take another message.
    func send(message: Message, completion: @escaping @Sendable (Bool, MessagingError?) -> Void)
}

/// The object to which a ``MessageEndpointConnection`` passes what it receives.
public protocol ReplicatorConnection: Sendable {
    /// Reports that the other side closed the connection, or that the connection broke if there is an error.
    func close(error: MessagingError?)
    /// Passes on a message, or bytes of a stream, in the order in which they arrive.
    func receive(message: Message)
}

/// Creates connections for a ``MessageEndpoint``.
public protocol MessageEndpointDelegate: Sendable {
    /// Returns a new connection. Each attempt to connect needs another one.
    func createConnection(endpoint: MessageEndpoint) -> any MessageEndpointConnection
}

/// Makes a transport of a connection with callbacks.
final class CallbackTransport: MessageTransport, ReplicatorConnection {
    /// The maximum number of received bytes that were not consumed yet. Peers wait for each other long before; an app that delivers more does
    /// not deliver what a peer sent.
    private static let receiveLimit = 32 << 20

    private let connection: any MessageEndpointConnection
    private let mailbox = Mailbox(limit: receiveLimit) {}
    private let waiting = Mutex<[[UInt8]]>([])
    private let failure = Mutex<MessagingError?>(nil)
    private let isClosed = Atomic(false)

    init(_ connection: any MessageEndpointConnection) { self.connection = connection }

    func open() async throws {
        try await waitFor { self.connection.open(connection: self, completion: $0) }
    }

    func send(_ bytes: [UInt8]) async throws {
        try await waitFor { self.connection.send(message: Message(bytes), completion: $0) }
    }

    func receive() async throws -> [UInt8]? {
        if let first = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return first }
        guard let arrived = try await mailbox.receive(), let first = arrived.first else {
            if let error = failure.withLock({ $0 }) { throw error }
            return nil
        }
        waiting.withLock { $0 = Array(arrived.dropFirst()) }
        return first
    }

    /// Asks the app to close, once.
    func close() async {
        if isClosed.exchange(true, ordering: .acquiringAndReleasing) { return }
        let error = failure.withLock { $0 }
        await withCheckedContinuation { continuation in
            let once = OnceWith<Void> { continuation.resume() }
            connection.close(error: error) { once.run(()) }
        }
        mailbox.finish()
    }

    // MARK: The app's side

    func close(error: MessagingError?) {
        failure.withLock { $0 = $0 ?? error }
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

    private func waitFor(
        _ start: @escaping (@escaping @Sendable (Bool, MessagingError?) -> Void) -> Void
    ) async throws {
        let error: MessagingError? = await withCheckedContinuation { continuation in
            let once = OnceWith<MessagingError?> { continuation.resume(returning: $0) }
            start { success, error in
                let unknown = LoveseatError(
                    .unexpectedError,
                    "the connection failed without an error"
                )
                once.run(success ? nil : error ?? MessagingError(error: unknown, isRecoverable: true))
            }
        }
        if let error {
            failure.withLock { $0 = $0 ?? error }
            throw error
        }
    }
}

/// A completion of which only the first call counts.
private final class OnceWith<Value: Sendable>: Sendable {
    private let body: @Sendable (Value) -> Void
    private let isDone = Atomic(false)
    init(_ body: @escaping @Sendable (Value) -> Void) { self.body = body }
    func run(_ value: Value) {
        if !isDone.exchange(true, ordering: .acquiringAndReleasing) { body(value) }
    }
}
