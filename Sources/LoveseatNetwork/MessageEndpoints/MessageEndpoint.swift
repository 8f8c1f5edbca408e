import LoveseatBLIPReplication
public import LoveseatCore
package import LoveseatModel

/// A peer that is reached over the app's own transport, such as Bluetooth or a message queue.
///
/// The peer is another Loveseat, or an app of Couchbase Lite 2 to 4 with a listener for message endpoints. A transport negotiates no form of the
/// protocol, so the replicator asks the peer how it names revisions before it names one itself. Nothing has to be configured, and a peer may be
/// upgraded to Couchbase Lite 4 under the same ``uid``.
public struct MessageEndpoint: BLIPEndpoint {
    /// A name for the peer, 1 to 1,024 bytes. Keep it the same for the same peer, because the checkpoint is stored under it.
    public let uid: String
    /// Whether the transport preserves messages or is a stream of bytes. Both sides need the same.
    public let protocolType: ProtocolType
    /// Whether a second connection to the peer is possible meanwhile.
    package var takesSecondConnection = true
    private let makeTransport: @Sendable () async throws -> any MessageTransport

    /// Creates an endpoint whose transports a closure connects.
    ///
    /// - Parameters:
    ///   - uid: A name for the peer, always the same for the same peer.
    ///   - protocolType: Whether the transport preserves messages or is a stream of bytes.
    ///   - connect: Returns a new connection for each attempt. If it throws, the attempt fails; a ``MessagingError`` says whether the
    ///     replicator tries again.
    public init(
        uid: String,
        protocolType: ProtocolType,
        connect: @escaping @Sendable () async throws -> any MessageTransport
    ) {
        self.uid = uid
        self.protocolType = protocolType
        makeTransport = connect
    }

    package var remoteName: String { "x-msg-endpt:\(uid)" }

    package func validate() throws(LoveseatError) {
        guard !uid.isEmpty, uid.utf8.count <= 1_024 else {
            throw LoveseatError(
                .invalidParameter,
                "the message endpoint's uid is not valid: use 1 to 1,024 bytes"
            )
        }
    }

    package func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
        let transport: any MessageTransport
        do { transport = try await makeTransport() } catch { throw LoveseatError(transport: error) }
        let channel = try await TransportChannel.make(
            transport,
            protocolType,
            isActive: true,
            heartbeat: options.heartbeat
        )
        return PeerConnection(channel: channel, negotiated: nil)
    }
}
