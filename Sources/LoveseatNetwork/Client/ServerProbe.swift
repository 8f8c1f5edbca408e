package import LoveseatCore
import LoveseatModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOTLS

/// Validates a server's certificate once, for clients whose library cannot ask for a verdict: they compare the certificate of each
/// of their connections with the one that was found here.
package enum ServerProbe {
    private static let timeout = TimeAmount.seconds(15)

    /// Connects with TLS, through the proxy if there is one, and closes the connection again.
    ///
    /// - Returns: the server's certificate, DER.
    /// - Throws: ``LoveseatError``: why the server cannot be reached or is not trusted; `CancellationError`.
    package static func certificate(host: String, port: Int, _ options: ConnectionOptions) async throws
        -> [UInt8]
    {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let outcome = loop.makePromise(of: [UInt8].self)
        let address = WebSocketAddress(host: host, port: port, isSecure: true, target: "/")
        let tls = ClientTLS(host: host, options: options)
        let deadline = loop.scheduleTask(in: timeout) {
            outcome.fail(LoveseatError(.timeout, "\(host):\(port) does not answer"))
        }
        let install: @Sendable (any Channel) throws -> Void = { channel in
            try channel.pipeline.syncOperations.addHandler(tls.makeHandler())
            try channel.pipeline.syncOperations.addHandler(ProbeHandler(tls, outcome))
        }
        var bootstrap = ClientBootstrap(group: loop)
        if let name = options.networkInterface {
            bootstrap = bootstrap.bind(to: try ListenerAddresses.address(of: name, port: 0))
        }
        let proxy = options.proxy
        let connecting = bootstrap.connectTimeout(timeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let proxy else { return try install(channel) }
                    try WebSocketClient.tunnel(
                        through: proxy,
                        on: channel,
                        to: address,
                        fail: { outcome.fail($0) },
                        then: install
                    )
                }
            }
            .connect(host: proxy?.host ?? host, port: proxy.map { Int($0.port) } ?? port)
        connecting.whenFailure { outcome.fail(LoveseatError(network: $0)) }
        outcome.futureResult.whenComplete { _ in
            deadline.cancel()
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        return try await withTaskCancellationHandler {
            try await outcome.futureResult.get()
        } onCancel: {
            outcome.fail(CancellationError())
        }
    }
}

/// Reports the certificate when the handshake is complete, or why it failed.
private final class ProbeHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let tls: ClientTLS
    private let outcome: EventLoopPromise<[UInt8]>

    init(_ tls: ClientTLS, _ outcome: EventLoopPromise<[UInt8]>) { (self.tls, self.outcome) = (tls, outcome) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            do {
                let handler = try context.pipeline.syncOperations.handler(type: NIOSSLHandler.self)
                outcome.succeed(try handler.peerCertificate?.toDERBytes() ?? [])
            } catch { outcome.fail(LoveseatError(network: error)) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        outcome.fail(tls.failure ?? LoveseatError(network: error))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        outcome.fail(
            tls.failure
                ?? LoveseatError(
                    .tlsHandshakeFailed,
                    "the peer closed the connection during the TLS handshake: does it speak TLS?"
                )
        )
    }
}
