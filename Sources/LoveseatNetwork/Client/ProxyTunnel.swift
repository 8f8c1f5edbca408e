import LoveseatCore
import LoveseatModel
import NIOCore
import NIOHTTP1

/// Asks an HTTP proxy for a tunnel to the peer.
final class ProxyTunnel: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let proxy: ProxyConfiguration
    private let target: String
    private let fail: (LoveseatError) -> Void
    /// Replaces the HTTP handlers by those for the peer.
    private let open: (any Channel) -> Void
    private var isOpen = false

    init(
        _ proxy: ProxyConfiguration,
        to address: WebSocketAddress,
        fail: @escaping (LoveseatError) -> Void,
        open: @escaping (any Channel) -> Void
    ) {
        self.proxy = proxy
        target = address.authority
        self.fail = fail
        self.open = open
    }

    func channelActive(context: ChannelHandlerContext) {
        var headers: HTTPHeaders = ["Host": target, "User-Agent": "Loveseat"]
        if let credentials = proxy.authenticator {
            headers.add(
                name: "Proxy-Authorization",
                value: UpgradeHeaders.basic(credentials.username, credentials.password)
            )
        }
        let head = HTTPRequestHead(version: .http1_1, method: .CONNECT, uri: target, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            let status = Int(head.status.code)
            isOpen = (200..<300).contains(status)
            if !isOpen { refuse(status, head.status.reasonPhrase, context) }
        case .body: break
        case .end: if isOpen { finish(context) }
        }
    }

    private func refuse(_ status: Int, _ reason: String, _ context: ChannelHandlerContext) {
        let advice = status == 407 ? ": give the proxy's user name and password" : ""
        fail(
            LoveseatError(
                .init(10_000 + status),
                "the proxy \(proxy.host):\(proxy.port) refused to connect to \(target): \(reason) (HTTP \(status))\(advice)"
            )
        )
        context.close(promise: nil)
    }

    private func finish(_ context: ChannelHandlerContext) {
        let channel = context.channel
        _ = context.pipeline.syncOperations.removeHandler(self)
        open(channel)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(
            error as? HTTPParserError == .invalidEOFState
                ? LoveseatError(
                    .webSocketAbnormalClose,
                    "the connection ended inside the answer of the proxy \(proxy.host):\(proxy.port)"
                )
                : error is HTTPParserError
                    ? LoveseatError(
                        .webSocketProtocolError,
                        "\(proxy.host):\(proxy.port) is not an HTTP proxy: \(error)"
                    )
                    : LoveseatError(network: error)
        )
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(
            LoveseatError(
                .webSocketAbnormalClose,
                "the proxy \(proxy.host):\(proxy.port) closed the connection without an answer"
            )
        )
        context.fireChannelInactive()
    }
}
