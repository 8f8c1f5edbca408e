import Logging
import LoveseatAssertions
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import NIOCore
import NIOHTTP1

/// Answers the first request of a connection with a WebSocket or with a status. A client that pairs
/// makes a second request, with its proof.
///
/// While the authenticator is asked, nothing is read, so that an unauthenticated client cannot fill the memory.
final class ListenerHandshake: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum Stage {
        /// A request is expected: the first one, or the proof of a client that pairs.
        case reading(ListenerPairingAuthenticator.Run?)
        /// `hasMore`: whether the client has sent more meanwhile, which is passed over.
        case asking(hasMore: Bool)
        case answered

        var isReading: Bool { if case .reading = self { true } else { false } }
        var isAnswered: Bool { if case .answered = self { true } else { false } }
    }

    /// The maximum size of a body, which is ignored, in bytes.
    private static let maximumBody = 64 << 10

    private let validator: UpgradeRequestValidator
    private let policy: RequestPolicy
    private let authenticator: ConnectionAuthenticator
    private let shown: ShownCertificates?
    private let webSocket: WebSocketSettings
    private let limit: ConnectionLimit
    private let serve: @Sendable (PeerConnection) -> Void
    /// Removes the HTTP handlers from the pipeline.
    private let endHTTP: () -> Void
    private var head: HTTPRequestHead?
    private var stage = Stage.reading(nil)
    private var heldRead = false
    private var bodyBytes = 0

    init(
        validator: UpgradeRequestValidator,
        policy: RequestPolicy,
        authenticator: ConnectionAuthenticator,
        shown: ShownCertificates?,
        webSocket: WebSocketSettings,
        limit: ConnectionLimit,
        serve: @escaping @Sendable (PeerConnection) -> Void,
        endHTTP: @escaping () -> Void
    ) {
        self.validator = validator
        self.policy = policy
        self.authenticator = authenticator
        self.shown = shown
        self.webSocket = webSocket
        self.limit = limit
        self.serve = serve
        self.endHTTP = endHTTP
    }

    func read(context: ChannelHandlerContext) {
        if stage.isReading { context.read() } else { heldRead = true }
    }

    private func resumeReading(_ context: ChannelHandlerContext) {
        if !heldRead { return }
        heldRead = false
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .reading(let run) = stage else {
            // A client may send more before it has its answer, and after it was refused.
            if case .asking = stage { stage = .asking(hasMore: true) }
            return
        }
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body(let bytes):
            bodyBytes += bytes.readableBytes
            if bodyBytes <= Self.maximumBody { return }
            stage = .answered
            refuse(
                HTTPRefusal(status: .payloadTooLarge, reason: "requests must not have a body"),
                context
            )
        case .end:
            guard let head else { return impossible("a request ends that has no head") }
            do throws(HTTPRefusal) { try policy.check(head) } catch {
                stage = .answered
                return refuse(error, context)
            }
            stage = .asking(hasMore: false)
            answer(head, run, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let isAnswered = stage.isAnswered
        stage = .answered
        guard error is HTTPParserError, !isAnswered else {
            if !isAnswered {
                LogDomain.listener.log(
                    .notice,
                    "refused \(context.remoteAddress?.description ?? "a client"): \(LoveseatError(network: error).message)"
                )
            }
            return context.close(promise: nil)
        }
        refuse(HTTPRefusal(status: .badRequest, reason: "this is not an HTTP request"), context)
    }

    /// Authenticates first: a client that is not admitted must not learn which databases exist. A pairing of a client that asks for
    /// another database does not use up the code.
    private func answer(
        _ head: HTTPRequestHead,
        _ run: ListenerPairingAuthenticator.Run?,
        _ context: ChannelHandlerContext
    ) {
        let answer = context.eventLoop.makePromise(
            of: Result<ConnectionAuthenticator.Answer, HTTPRefusal>.self
        )
        // Only a client that has proved itself learns the result.
        let acceptance = Result { () throws(HTTPRefusal) in try validator.validate(head) }
        let mayPair = if case .success(.webSocket) = acceptance { true } else { false }
        let shown = shown?.outcome
        let address = PeerAddress(context.remoteAddress).text
        Task(executorPreference: BlockingThreads.handshakes) { [authenticator] in
            do throws(HTTPRefusal) {
                answer.succeed(
                    .success(
                        try await authenticator.answer(
                            head.headers,
                            address: address,
                            shown: shown,
                            run: run,
                            mayPair: mayPair
                        )
                    )
                )
            } catch { answer.succeed(.failure(error)) }
        }
        answer.futureResult.assumeIsolated().whenSuccess { result in
            // The client may go away, or break the rules of HTTP, while the authenticator is asked.
            guard context.channel.isActive, !self.stage.isAnswered else {
                return self.reportPairing(try? result.get(), run)
            }
            do throws(HTTPRefusal) {
                switch try result.get() {
                case .challenged(let run): self.challenge(run, context)
                case .admitted(let peer):
                    self.stage = .answered
                    let acceptance = try acceptance.get()
                    if case .webSocket = acceptance { try self.limit.add(context.channel) }
                    self.admit(acceptance, peer, isPaired: run != nil, context)
                }
            } catch {
                self.stage = .answered
                self.refuse(error, context)
                self.reportPairing(try? result.get(), run)
            }
        }
    }

    /// Reports the pairing of a client that is trusted from now on, although it does not get a WebSocket.
    private func reportPairing(
        _ answer: ConnectionAuthenticator.Answer?,
        _ run: ListenerPairingAuthenticator.Run?
    ) {
        // Nobody else pairs, and a client whose proof is not right is not trusted.
        guard run != nil, case .admitted(let peer) = answer else { return }
        authenticator.answered(peer)
    }

    /// Sends the listener's proof, and waits for the client's on the same connection.
    private func challenge(_ run: ListenerPairingAuthenticator.Run, _ context: ChannelHandlerContext) {
        if case .asking(hasMore: true) = stage {
            // A part of the next request is lost, and the client would wait for its answer.
            stage = .answered
            let reason = "a client that pairs has to wait for the answer to its first request"
            return refuse(HTTPRefusal(status: .badRequest, reason: reason), context)
        }
        let headers: HTTPHeaders = [
            "WWW-Authenticate": run.challenge, "Content-Length": "0", "Server": "Loveseat",
        ]
        let response = HTTPResponseHead(version: .http1_1, status: .unauthorized, headers: headers)
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        head = nil
        stage = .reading(run)
        resumeReading(context)
    }

    private func admit(
        _ acceptance: UpgradeRequestValidator.Acceptance,
        _ peer: PeerIdentity,
        isPaired: Bool,
        _ context: ChannelHandlerContext
    ) {
        switch acceptance {
        case .database: respond(.ok, UpgradeRequestValidator.databaseText, HTTPHeaders(), context)
        case .webSocket(let request): upgrade(request, peer, isPaired: isPaired, context)
        }
    }

    private func upgrade(
        _ acceptance: UpgradeRequestValidator.WebSocketRequest,
        _ peer: PeerIdentity,
        isPaired: Bool,
        _ context: ChannelHandlerContext
    ) {
        var headers: HTTPHeaders = [
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Accept": UpgradeHeaders.accept(key: acceptance.key),
            "Sec-WebSocket-Protocol": acceptance.negotiated.rawValue,
            "Server": "Loveseat",
        ]
        if isPaired {
            headers.add(name: PairingHeader.nameField, value: DeviceName.encoded(DeviceName.ofThisHost))
        }
        let response = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        let authenticator = authenticator
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in authenticator.answered(peer) }
        do {
            let channel = try WebSocketChannel.install(on: context.channel, webSocket)
            endHTTP()
            resumeReading(context)
            _ = context.pipeline.syncOperations.removeHandler(self)
            serve(PeerConnection(channel: channel, negotiated: acceptance.negotiated, peer: peer))
        } catch { context.close(promise: nil) }
    }

    private func refuse(_ refusal: HTTPRefusal, _ context: ChannelHandlerContext) {
        LogDomain.listener.log(
            .notice,
            "refused \(context.remoteAddress?.description ?? "a client"): \(refusal.reason) (HTTP \(refusal.status.code))"
        )
        respond(
            refusal.status,
            refusal.reason,
            HTTPHeaders(refusal.headers.map { ($0[0], $0[1]) }),
            context
        )
    }

    /// Answers without a WebSocket, and closes the connection.
    private func respond(
        _ status: HTTPResponseStatus,
        _ text: String,
        _ headers: HTTPHeaders,
        _ context: ChannelHandlerContext
    ) {
        let body = context.channel.allocator.buffer(string: text + "\n")
        var headers = headers
        headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
        headers.add(name: "Content-Length", value: "\(body.readableBytes)")
        headers.add(name: "Server", value: "Loveseat")
        if headers["Connection"].isEmpty { headers.add(name: "Connection", value: "close") }
        let response = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
            loopBound.value.close(promise: nil)
        }
    }
}
