public import LoveseatCore
package import LoveseatModel
import LoveseatReplication

/// A peer that is reached over the app's own transport.
public struct MessageEndpoint: PeerEndpoint {
    /// Names the peer, always the same: checkpoints are kept under it.
    public let uid: String
    /// Whatever the app needs to find the peer.
    public let target: (any Sendable)?
    /// What the transport keeps of what is sent.
    public let protocolType: ProtocolType
    /// Makes connections; nil if transports are made by a closure.
    public let delegate: (any MessageEndpointDelegate)?
    private let makeTransport: @Sendable (MessageEndpoint) async throws -> any MessageTransport

    /// An endpoint whose connections a delegate makes.
    public init(
        uid: String,
        target: (any Sendable)?,
        protocolType: ProtocolType,
        delegate: any MessageEndpointDelegate
    ) {
        self.uid = uid
        self.target = target
        self.protocolType = protocolType
        self.delegate = delegate
        makeTransport = { endpoint in
            let transport = CallbackTransport(delegate.createConnection(endpoint: endpoint))
            try await transport.open()
            return transport
        }
    }

    /// An endpoint whose transports a closure connects, for each attempt another one.
    public init(
        uid: String,
        protocolType: ProtocolType,
        connect: @escaping @Sendable () async throws -> any MessageTransport
    ) {
        self.uid = uid
        target = nil
        self.protocolType = protocolType
        delegate = nil
        makeTransport = { _ in try await connect() }
    }

    package var remoteName: String { "x-msg-endpt:\(uid)" }

    package func validate() throws(LoveseatError) {
        guard !uid.isEmpty, uid.utf8.count <= 1_024 else {
            throw LoveseatError(.invalidParameter, "a message endpoint's uid has 1 to 1024 bytes")
        }
    }

    package func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
        let transport: any MessageTransport
        do { transport = try await makeTransport(self) } catch { throw LoveseatError(transport: error) }
        let channel = try await TransportChannel.make(
            transport,
            protocolType,
            isActive: true,
            heartbeat: options.heartbeat
        )
        // There is nobody to ask: each side speaks what it speaks (blip.md §13).
        return PeerConnection(channel: channel, negotiated: .mobile3)
    }
}
