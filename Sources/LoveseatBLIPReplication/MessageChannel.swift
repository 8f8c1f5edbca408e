import LoveseatModel

/// A two-way stream of whole messages to one peer, which replication needs from a transport.
///
/// Messages arrive complete and in order; the channel does the framing. WebSockets, app-supplied transports and the in-memory pair are
/// channels.
package protocol MessageChannel: Sendable {
    /// Sends messages, and returns when there is room for more.
    ///
    /// - Throws: if the connection is gone. Messages that were sent before may have arrived.
    func send(_ messages: [[UInt8]]) async throws

    /// The messages that have arrived, at least one; nil after the peer said goodbye with code 1000 or 1001.
    ///
    /// Until this is called again, only a bounded amount is read from the peer.
    ///
    /// - Throws: ``LoveseatError`` if the connection broke, or the peer closed it for a reason.
    func receive() async throws -> [[UInt8]]?

    /// Says goodbye with a WebSocket close code (blip.md §11), and does not wait long for the peer's.
    func close(code: Int, reason: String) async
}
