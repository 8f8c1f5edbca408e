public import Foundation

/// A message, or bytes of a stream, on its way over a ``MessageEndpointConnection``.
public final class Message: Sendable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a message from what arrived.
    public static func fromData(_ data: Data) -> Message { Message([UInt8](data)) }

    /// Returns the bytes to send.
    public func toData() -> Data { Data(bytes) }
}
