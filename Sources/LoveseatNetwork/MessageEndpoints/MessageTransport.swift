public import Foundation
import LoveseatModel

/// A connection to a peer over whatever the app has: Bluetooth, a serial line, a message queue.
///
/// This is the whole of what replication needs of it. ``MessageEndpointConnection`` is the same with callbacks, as Couchbase
/// Lite has it. Throw a ``MessagingError`` to say whether it is worth connecting again; any other error says it is.
public protocol MessageTransport: Sendable {
    /// Sends bytes after those sent before, and returns when it can take more: with ``ProtocolType/messageStream`` as one
    /// message, which the other side receives as a whole.
    func send(_ bytes: [UInt8]) async throws
    /// What has arrived: with ``ProtocolType/messageStream`` one whole message. Nil when the other side closed.
    func receive() async throws -> [UInt8]?
    /// Closes the connection. `receive` and `send` end then, also those under way.
    func close() async
}

/// What a transport keeps of what is sent.
public enum ProtocolType: UInt8, Hashable, Sendable {
    /// Messages arrive whole, in order, each once. Nothing is added to them.
    case messageStream = 0
    /// Bytes arrive in order, in whatever pieces. Messages are framed as WebSocket does (blip.md §13).
    case byteStream = 1
}

/// Bytes that a transport carries.
public struct Message: Hashable, Sendable {
    /// The bytes.
    public let bytes: [UInt8]

    /// A message of bytes.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// A message of data.
    public static func fromData(_ data: Data) -> Message { Message(Array(data)) }

    /// The bytes as data.
    public func toData() -> Data { Data(bytes) }
}

/// Why a transport failed.
public struct MessagingError: Error, Sendable {
    /// The app's error.
    public let error: any Error
    /// Whether it is worth connecting again.
    public let isRecoverable: Bool

    /// An error of the app's.
    public init(error: any Error, isRecoverable: Bool) {
        self.error = error
        self.isRecoverable = isRecoverable
    }
}

extension LoveseatError {
    /// A transport's error: `webSocketCloseUserTransient` or `webSocketCloseUserPermanent` (blip.md §13).
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
