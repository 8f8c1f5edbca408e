package import LoveseatCore
import LoveseatModel
package import NIOCore
import NIOHTTP1

/// The pipeline of a listener's connection until it is a WebSocket.
package struct ListenerPipeline: Sendable {
    private let validator: UpgradeRequestValidator
    private let authenticator: ConnectionAuthenticator
    private let webSocket: WebSocketSettings
    private let serve: @Sendable (PeerConnection, any Channel) -> Void
    var tls: ListenerTLS?

    /// `fingerprint`: that of the listener's certificate. `serve` is called, on the event loop, with each peer that got in.
    package init(
        databaseName: String,
        authenticator: (any ListenerAuthenticator)?,
        fingerprint: String?,
        webSocket: WebSocketSettings,
        serve: @escaping @Sendable (PeerConnection, any Channel) -> Void
    ) {
        validator = UpgradeRequestValidator(databaseName: databaseName)
        self.authenticator = ConnectionAuthenticator(authenticator, fingerprint: fingerprint)
        self.webSocket = webSocket
        self.serve = serve
    }

    /// Puts the handlers at the end of a new channel's pipeline. Called on its event loop.
    package func install(on channel: any Channel) throws {
        let secure = try tls?.makeHandlers(address: PeerAddress(channel.remoteAddress).text)
        if let secure { try channel.pipeline.syncOperations.addHandlers(secure.handlers) }
        let decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes))
        let encoder = HTTPResponseEncoder()
        let handshake = ListenerHandshake(
            validator: validator,
            authenticator: authenticator,
            shown: secure?.shown,
            webSocket: webSocket,
            serve: { serve($0, channel) },
            endHTTP: {
                _ = channel.pipeline.syncOperations.removeHandler(encoder)
                _ = channel.pipeline.syncOperations.removeHandler(decoder)
            }
        )
        try channel.pipeline.syncOperations.addHandlers([encoder, decoder, handshake])
    }
}
