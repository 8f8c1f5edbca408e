public import LoveseatNetwork

/// A peer that is reached over the app's own transport, such as Bluetooth: a Loveseat, or an app of Couchbase Lite 2 to 4. The replicator asks the
/// peer how it names revisions, because a transport negotiates nothing.
///
/// Unchecked, because `target` and the delegate are the app's, and only the app uses `target`. The delegate is called on any thread.
public final class MessageEndpoint: EngineEndpoint, @unchecked Sendable {
    /// A name for the peer, 1 to 1,024 bytes. Keep it the same for the same peer, because the checkpoint is stored under it.
    public let uid: String
    /// Anything that helps the delegate to connect.
    public let target: Any?
    /// Whether the transport preserves messages or is a stream of bytes. Both sides need the same.
    public let protocolType: ProtocolType
    /// The object that creates connections.
    public let delegate: any MessageEndpointDelegate

    /// Creates an endpoint.
    public init(
        uid: String,
        target: Any?,
        protocolType: ProtocolType,
        delegate: any MessageEndpointDelegate
    ) {
        (self.uid, self.target, self.protocolType, self.delegate) = (uid, target, protocolType, delegate)
    }

    var engine: any Endpoint {
        LoveseatNetwork.MessageEndpoint(uid: uid, protocolType: protocolType) { [self] in
            let transport = CallbackTransport(delegate.createConnection(endpoint: self))
            try await transport.open()
            return transport
        }
    }
}
