import NIOCore

/// The settings of one end of a WebSocket.
package struct WebSocketSettings: Hashable, Sendable {
    /// The maximum size of a replication message, in bytes.
    package static let maximumFrameSize = 1 << 20

    /// Whether this is a client, whose frames are masked.
    package let isClient: Bool
    /// How long the connection may be idle, in seconds, before a ping is sent.
    package let heartbeat: Double
    /// The maximum size of a message that is accepted, in bytes.
    package var maximumMessageSize = maximumFrameSize
    /// Whether text messages are accepted, which are not BLIP: see ``WebSocketChannel/receiveText()``.
    package var acceptsText = false

    package init(isClient: Bool, heartbeat: Double) {
        self.isClient = isClient
        self.heartbeat = heartbeat
    }

    var interval: TimeAmount { .milliseconds(Int64(min(heartbeat, 1e9) * 1_000)) }
}
