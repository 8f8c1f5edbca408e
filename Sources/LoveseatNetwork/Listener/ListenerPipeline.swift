package import LoveseatCore
import LoveseatModel
package import NIOCore
import NIOHTTP1

/// The pipeline of a listener's connection until it is a WebSocket.
package struct ListenerPipeline: Sendable {
    private let validator: UpgradeRequestValidator
    private let policy: RequestPolicy
    private let authenticator: ConnectionAuthenticator
    private let webSocket: WebSocketSettings
    private let limit: ConnectionLimit
    private let serve: @Sendable (PeerConnection, any Channel) -> Void

    /// `serve` is called, on the event loop, with each peer that got in.
    package init(
        databaseName: String,
        policy: RequestPolicy,
        authenticator: ConnectionAuthenticator,
        webSocket: WebSocketSettings,
        limit: ConnectionLimit = ConnectionLimit(nil),
        serve: @escaping @Sendable (PeerConnection, any Channel) -> Void
    ) {
        validator = UpgradeRequestValidator(databaseName: databaseName)
        self.policy = policy
        self.authenticator = authenticator
        self.webSocket = webSocket
        self.limit = limit
        self.serve = serve
    }

    /// Puts the handlers at the end of a new channel's pipeline. Called on its event loop. `shown`: where TLS notes the client's
    /// certificates.
    package func install(on channel: any Channel, shown: ShownCertificates? = nil) throws {
        let decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes))
        let encoder = HTTPResponseEncoder()
        let handshake = ListenerHandshake(
            validator: validator,
            policy: policy,
            authenticator: authenticator,
            shown: shown,
            webSocket: webSocket,
            limit: limit,
            serve: { serve($0, channel) },
            endHTTP: {
                _ = channel.pipeline.syncOperations.removeHandler(encoder)
                _ = channel.pipeline.syncOperations.removeHandler(decoder)
            }
        )
        try channel.pipeline.syncOperations.addHandlers([encoder, decoder, handshake])
    }
}
