import LoveseatModel

/// The app's own connection to a peer, for example over Bluetooth, a serial line or a message queue.
///
/// `send` is called by one task at a time, and so is `receive`; both may be in progress at once. Throw a
/// ``MessagingError`` to say whether connecting again may help; after any other error, the replicator connects again.
public protocol MessageTransport: Sendable {
    /// Sends bytes after those that were sent before, and returns when the transport can take more.
    ///
    /// With ``ProtocolType/messageStream``, `bytes` is one message, which the other side receives as a whole.
    func send(_ bytes: [UInt8]) async throws
    /// Waits for what arrives next and returns it, or nil when the other side has closed the connection.
    ///
    /// With ``ProtocolType/messageStream``, it returns one whole message.
    func receive() async throws -> [UInt8]?
    /// Closes the connection. Calls of `receive` and `send` that are in progress have to return or throw then.
    func close() async
}

/// The units that a transport preserves: whole messages, or the order of bytes only. Both sides of a connection need the same.
public enum ProtocolType: UInt8, Hashable, Sendable {
    /// The transport delivers whole messages, in order, each once. Nothing is added to them.
    case messageStream = 0
    /// The transport delivers bytes in order, in pieces of any size. Messages are framed as WebSocket frames (RFC 6455).
    case byteStream = 1
}

/// An error of a transport, with the advice whether to connect again.
public struct MessagingError: Error, Sendable {
    /// The underlying error.
    public let error: any Error
    /// Whether connecting again may help. If false, a replicator stops.
    public let isRecoverable: Bool

    /// Creates an error from an underlying one.
    public init(error: any Error, isRecoverable: Bool) {
        self.error = error
        self.isRecoverable = isRecoverable
    }
}

extension LoveseatError {
    /// A transport's error: `webSocketCloseUserTransient` or `webSocketCloseUserPermanent`.
    init(transport error: any Error) {
        if let error = error as? LoveseatError {
            self = error
            return
        }
        let messaging = error as? MessagingError
        let isRecoverable = messaging?.isRecoverable ?? true
        self.init(
            isRecoverable ? .webSocketCloseUserTransient : .webSocketCloseUserPermanent,
            "the app's transport failed: \(messaging?.error ?? error)"
        )
    }
}
