import LoveseatAssertions
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import NIOCore
import NIOHTTP1

/// Asks a server for a WebSocket, and validates its response.
final class ClientHandshake: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private static let maximumBody = 4_096

    /// The client's side of a pairing, and the certificate that the listener shows.
    typealias Pairing = (initiator: PairingInitiator, seen: SeenCertificate)

    private let address: WebSocketAddress
    private let head: HTTPRequestHead
    private let options: ConnectionOptions
    /// The name of the request's credentials, under which cookies are kept; nil if it has none.
    private let credentials: String?
    private let webSocket: WebSocketSettings
    private let tls: ClientTLS?
    private let pairing: Pairing?
    private let outcome: EventLoopPromise<WebSocketClient.Outcome>
    /// Removes the HTTP handlers from the pipeline.
    private let endHTTP: (any Channel) -> EventLoopFuture<Void>
    private var response: HTTPResponseHead?
    private var body: [UInt8] = []
    /// Bytes that followed the server's response, for the WebSocket; nil before.
    private var early: [NIOAny]?

    init(
        _ address: WebSocketAddress,
        head: HTTPRequestHead,
        options: ConnectionOptions,
        credentials: String? = nil,
        webSocket: WebSocketSettings,
        tls: ClientTLS?,
        pairing: Pairing? = nil,
        outcome: EventLoopPromise<WebSocketClient.Outcome>,
        endHTTP: @escaping (any Channel) -> EventLoopFuture<Void>
    ) {
        self.address = address
        self.head = head
        self.options = options
        self.credentials = credentials
        self.webSocket = webSocket
        self.tls = tls
        self.pairing = pairing
        self.outcome = outcome
        self.endHTTP = endHTTP
    }

    func handlerAdded(context: ChannelHandlerContext) {
        // Behind a proxy the connection is there already.
        if context.channel.isActive { ask(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        ask(context)
        context.fireChannelActive()
    }

    private func ask(_ context: ChannelHandlerContext) {
        guard let pairing else { return send(head, context) }
        var opening = head
        // Nothing is read from a connection after a request to upgrade it.
        for name in WebSocketClient.handshakeHeaders { opening.headers.remove(name: name) }
        opening.headers.replaceOrAdd(name: "Authorization", value: pairing.initiator.opening)
        send(opening, context)
    }

    private func send(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard early == nil else {
            early?.append(data)
            return
        }
        switch unwrapInboundIn(data) {
        case .head(let head):
            response = head
            keepCookies(head.headers)
        case .body(let bytes):
            if body.count < Self.maximumBody { body += bytes.readableBytesView.prefix(Self.maximumBody) }
        case .end:
            guard let response else { return impossible("a response ends that has not begun") }
            self.response = nil
            if let pairing, !pairing.initiator.isListenerProved {
                prove(pairing, response, context)
            } else if response.status == .switchingProtocols {
                upgrade(response, context)
            } else {
                refuse(response)
            }
        }
    }

    /// Verifies the listener's proof, and sends ours. A listener that accepts without a proof is refused.
    private func prove(
        _ pairing: Pairing,
        _ response: HTTPResponseHead,
        _ context: ChannelHandlerContext
    ) {
        guard response.status == .unauthorized || response.status == .switchingProtocols else {
            return refuse(response)
        }
        let challenge = response.headers.first(name: "WWW-Authenticate") ?? ""
        let listener = pairing.seen.certificate?.fingerprint ?? ""
        do throws(LoveseatError) {
            var request = head
            request.headers.replaceOrAdd(
                name: "Authorization",
                value: try pairing.initiator.answer(challenge, listener: listener)
            )
            body = []
            send(request, context)
        } catch {
            outcome.fail(error)
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        outcome.fail(explain(error))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let response { refuse(response) }
        outcome.fail(
            tls?.failure
                ?? LoveseatError(
                    .webSocketAbnormalClose,
                    "the server closed the connection without an answer"
                )
        )
        context.fireChannelInactive()
    }

    private func explain(_ error: any Error) -> LoveseatError {
        if let failure = tls?.failure { return failure }
        guard let error = error as? HTTPParserError else { return LoveseatError(network: error) }
        if error == .invalidEOFState {
            return LoveseatError(.webSocketAbnormalClose, "the connection ended inside the server's answer")
        }
        let advice = tls == nil ? ": if it speaks TLS, use a wss:// URL" : ""
        return LoveseatError(.webSocketProtocolError, "the server's answer is not HTTP (\(error))\(advice)")
    }

    private func keepCookies(_ headers: HTTPHeaders) {
        // A request without credentials keeps no cookies, nor does one after a redirect to another host.
        guard let credentials, let storage = options.cookies else { return }
        let cookies = headers["Set-Cookie"].compactMap {
            Cookie(
                header: $0,
                host: address.host,
                path: address.path,
                now: WebSocketClient.now,
                acceptsParentDomain: storage.acceptsParentDomain,
                credentials: credentials
            )
        }
        if !cookies.isEmpty { storage.add(cookies) }
    }

    /// HTTP's decoder also sees what is written, so the WebSocket begins when the decoder was removed.
    private func upgrade(_ response: HTTPResponseHead, _ context: ChannelHandlerContext) {
        do throws(LoveseatError) {
            let negotiated = try check(response.headers)
            pairing?.initiator.noteListenerName(response.headers.first(name: PairingHeader.nameField))
            early = []
            endHTTP(context.channel).assumeIsolated().whenComplete { _ in self.begin(negotiated, context) }
        } catch {
            outcome.fail(error)
            context.close(promise: nil)
        }
    }

    private func begin(_ negotiated: ReplicationProtocol, _ context: ChannelHandlerContext) {
        do {
            let channel = try WebSocketChannel.install(on: context.channel, webSocket)
            outcome.succeed(.connected(PeerConnection(channel: channel, negotiated: negotiated)))
            for data in early ?? [] { context.fireChannelRead(data) }
            context.fireChannelReadComplete()
            _ = context.pipeline.syncOperations.removeHandler(self)
        } catch {
            outcome.fail(LoveseatError(network: error))
            context.close(promise: nil)
        }
    }

    private func check(_ headers: HTTPHeaders) throws(LoveseatError) -> ReplicationProtocol {
        let key = head.headers.first(name: "Sec-WebSocket-Key") ?? ""
        guard UpgradeHeaders.hasToken("upgrade", in: headers, "Connection"),
            UpgradeHeaders.hasToken("websocket", in: headers, "Upgrade"),
            headers.first(name: "Sec-WebSocket-Accept") == UpgradeHeaders.accept(key: key)
        else { throw LoveseatError(.webSocketProtocolError, "the server's WebSocket handshake is not valid") }
        guard let name = headers.first(name: "Sec-WebSocket-Protocol") else {
            throw LoveseatError(.webSocketProtocolError, "the server did not choose a replication protocol")
        }
        guard let negotiated = ReplicationProtocol(rawValue: name), options.offers.contains(negotiated) else {
            throw LoveseatError(
                .httpForbidden,
                "the server chose the protocol \(name), which was not offered"
            )
        }
        return negotiated
    }

    private func refuse(_ response: HTTPResponseHead) {
        let status = Int(response.status.code)
        let location = response.headers.first(name: "Location")
        if [301, 302, 307, 308].contains(status), let location {
            return outcome.succeed(.redirected(location))
        }
        guard !(200..<300).contains(status) else {
            return outcome.fail(
                LoveseatError(
                    .webSocketProtocolError,
                    "the server answered, but did not open a WebSocket: check the URL"
                )
            )
        }
        if status == 401 { options.cookies?.remove(address.host, address.path) }
        // A gateway gives the same response for all four, so the message names all.
        let advice =
            status == 401 ? ": no such database, wrong user or password, or a disabled user" : ""
        var error = LoveseatError(
            .init(10_000 + status),
            "the server refused the connection: \(reason(response)) (HTTP \(status))\(advice)"
        )
        error.retryAfter = response.headers.first(name: "Retry-After")
            .flatMap { CookieDate.delay($0, now: WebSocketClient.now) }
        outcome.fail(error)
    }

    /// The server's reason: JSON's `reason`, plain text, or the phrase of the status.
    private func reason(_ response: HTTPResponseHead) -> String {
        let type = response.headers.first(name: "Content-Type") ?? ""
        if type.hasPrefix("application/json"),
            let json = try? JSONElement(parsing: body), let reason = json["reason"]?.string
        {
            return reason
        }
        if type.hasPrefix("text/plain"), !body.isEmpty {
            return String(decoding: body, as: UTF8.self).trimmingWhitespace
        }
        return response.status.reasonPhrase
    }
}

extension String {
    fileprivate var trimmingWhitespace: String {
        var text = self[...]
        while text.last?.isWhitespace == true { text = text.dropLast() }
        return String(text)
    }
}
