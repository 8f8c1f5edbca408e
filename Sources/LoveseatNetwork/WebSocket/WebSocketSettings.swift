import NIOCore

/// How one end of a WebSocket behaves.
package struct WebSocketSettings: Hashable, Sendable {
    /// The largest message that replication takes, in bytes.
    package static let largestFrame = 1 << 20

    /// Clients mask what they send, servers do not.
    package let isClient: Bool
    /// Seconds without a word from the peer after which it is asked for one.
    package let heartbeat: Double
    /// The largest message that is accepted, in bytes.
    package var largestMessage = largestFrame
    /// Takes text messages, which are not BLIP: see ``WebSocketChannel/receiveText()``.
    package var acceptsText = false

    package init(isClient: Bool, heartbeat: Double) {
        self.isClient = isClient
        self.heartbeat = heartbeat
    }

    var interval: TimeAmount { .milliseconds(Int64(min(heartbeat, 1e9) * 1_000)) }
}
