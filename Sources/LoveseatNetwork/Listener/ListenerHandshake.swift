import Logging
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import NIOCore
import NIOHTTP1

/// Answers the first request of a connection: with a WebSocket, or with a status, and never with nothing.
final class ListenerHandshake: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let judge: UpgradeJudge
    private let gatekeeper: Gatekeeper
    private let shown: ShownCertificates?
    private let webSocket: WebSocketSettings
    private let serve: @Sendable (PeerConnection) -> Void
    /// Takes the HTTP handlers out of the pipeline.
    private let endHTTP: () -> Void
    private var head: HTTPRequestHead?
    private var isAnswered = false

    init(
        judge: UpgradeJudge,
        gatekeeper: Gatekeeper,
        shown: ShownCertificates?,
        webSocket: WebSocketSettings,
        serve: @escaping @Sendable (PeerConnection) -> Void,
        endHTTP: @escaping () -> Void
    ) {
        self.judge = judge
        self.gatekeeper = gatekeeper
        self.shown = shown
        self.webSocket = webSocket
        self.serve = serve
        self.endHTTP = endHTTP
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body: break
        case .end:
            guard let head, !isAnswered else { return }
            isAnswered = true
            answer(head, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, !isAnswered else {
            if !isAnswered {
                LogDomain.listener.log(
                    .notice,
                    "refused \(context.remoteAddress?.description ?? "a client"): \(LoveseatError(network: error).message)"
                )
            }
            isAnswered = true
            return context.close(promise: nil)
        }
        isAnswered = true
        refuse(UpgradeJudge.Refusal(status: .badRequest, reason: "this is no HTTP request"), context)
    }

    /// Who it is comes first: before that nobody learns even what there is.
    private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let admission = context.eventLoop.makePromise(of: Result<PeerIdentity, UpgradeJudge.Refusal>.self)
        let certificates = shown?.all ?? []
        let address = PeerAddress(context.remoteAddress).text
        Task(executorPreference: HandshakeExecutor.shared) { [gatekeeper] in
            do throws(UpgradeJudge.Refusal) {
                let peer = try await gatekeeper.admit(
                    head.headers,
                    address: address,
                    certificates: certificates
                )
                admission.succeed(.success(peer))
            } catch { admission.succeed(.failure(error)) }
        }
        admission.futureResult.assumeIsolated().whenSuccess { result in
            guard context.channel.isActive else { return }
            do throws(UpgradeJudge.Refusal) {
                let peer = try result.get()
                self.upgrade(try self.judge.judge(head), peer, context)
            } catch { self.refuse(error, context) }
        }
    }

    private func upgrade(
        _ acceptance: UpgradeJudge.Acceptance,
        _ peer: PeerIdentity,
        _ context: ChannelHandlerContext
    ) {
        let headers: HTTPHeaders = [
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Accept": UpgradeHeaders.accept(key: acceptance.key),
            "Sec-WebSocket-Protocol": acceptance.negotiated.rawValue,
            "Server": "Loveseat",
        ]
        let response = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        let gatekeeper = gatekeeper
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenSuccess { gatekeeper.answered(peer) }
        do {
            let channel = try WebSocketChannel.install(on: context.channel, webSocket)
            endHTTP()
            _ = context.pipeline.syncOperations.removeHandler(self)
            serve(PeerConnection(channel: channel, negotiated: acceptance.negotiated, peer: peer))
        } catch { context.close(promise: nil) }
    }

    private func refuse(_ refusal: UpgradeJudge.Refusal, _ context: ChannelHandlerContext) {
        LogDomain.listener.log(
            .notice,
            "refused \(context.remoteAddress?.description ?? "a client"): \(refusal.reason) (HTTP \(refusal.status.code))"
        )
        let body = context.channel.allocator.buffer(string: refusal.reason + "\n")
        var headers = HTTPHeaders(refusal.headers.map { ($0[0], $0[1]) })
        headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
        headers.add(name: "Content-Length", value: "\(body.readableBytes)")
        headers.add(name: "Server", value: "Loveseat")
        if headers["Connection"].isEmpty { headers.add(name: "Connection", value: "close") }
        let response = HTTPResponseHead(version: .http1_1, status: refusal.status, headers: headers)
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
            loopBound.value.close(promise: nil)
        }
    }
}
