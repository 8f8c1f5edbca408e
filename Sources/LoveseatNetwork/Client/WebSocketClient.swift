private import Foundation
import Logging
import LoveseatBLIPReplication
package import LoveseatCore
import LoveseatModel
import LoveseatReplication
package import NIOCore
package import NIOHTTP1
import NIOPosix

/// Opens WebSockets to peers.
package struct WebSocketClient: Sendable {
    /// The timeout for TCP and HTTP together.
    private static let timeout = TimeAmount.seconds(15)
    private static let maximumRedirects = 10

    /// The options of the handshake.
    static let handshakeHeaders = [
        "Connection", "Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key", "Sec-WebSocket-Protocol",
    ]

    private let options: ConnectionOptions
    private let webSocket: WebSocketSettings
    private let pairing: ClientHandshake.Pairing?

    package init(options: ConnectionOptions) {
        self.init(
            options: options,
            webSocket: WebSocketSettings(isClient: true, heartbeat: options.heartbeat)
        )
    }

    package init(options: ConnectionOptions, webSocket: WebSocketSettings) {
        self.init(options: options, webSocket: webSocket, pairing: nil)
    }

    private init(options: ConnectionOptions, webSocket: WebSocketSettings, pairing: ClientHandshake.Pairing?)
    {
        self.options = options
        self.webSocket = webSocket
        self.pairing = pairing
    }

    /// Connects only to a listener that knows the pairing code.
    init(options: ConnectionOptions, pairing: ClientHandshake.Pairing) {
        self.options = options
        webSocket = WebSocketSettings(isClient: true, heartbeat: options.heartbeat)
        self.pairing = pairing
    }

    static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// Connects, following redirects.
    package func connect(to first: WebSocketAddress) async throws -> PeerConnection {
        var address = first
        // After a redirect to another host no secrets are sent, not even back to the first host.
        var sendsCredentials = true
        for _ in 0...Self.maximumRedirects {
            switch try await attempt(address, sendsCredentials: sendsCredentials) {
            case .connected(let connection):
                let form = connection.negotiated?.rawValue ?? ""
                LogDomain.network.log(
                    .debug,
                    "connected to \(address.hostHeader)\(address.path) with \(form)"
                )
                return connection
            case .redirected where pairing != nil:
                throw LoveseatError(
                    .invalidRedirect,
                    "the listener redirected the pairing, which is not allowed: use the address of the listener itself"
                )
            case .redirected(let location):
                LogDomain.network.log(.debug, "\(address.hostHeader) redirects to \(location)")
                let next = try address.redirected(to: location)
                guard next.isSecure || !address.isSecure else {
                    throw LoveseatError(
                        .invalidRedirect,
                        "the server redirected from TLS to \(next.authority) without encryption, which is not allowed"
                    )
                }
                sendsCredentials = sendsCredentials && next.host == address.host && next.port == address.port
                address = next
            }
        }
        throw LoveseatError(
            .tooManyRedirects,
            "more than \(Self.maximumRedirects) redirects, the last to \(address.host)"
        )
    }

    package enum Outcome: Sendable {
        case connected(PeerConnection)
        case redirected(String)
    }

    private func attempt(_ address: WebSocketAddress, sendsCredentials: Bool) async throws -> Outcome {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let outcome = loop.makePromise(of: Outcome.self)
        var options = options
        if !sendsCredentials {
            (options.authenticator, options.credentials, options.headers, options.cookies) = (
                nil, nil, [:], nil
            )
        }
        let head = request(address, options)
        let client = WebSocketClient(options: options, webSocket: webSocket, pairing: pairing)
        let (proxy, host) = (options.proxy, options.proxy?.host ?? address.host)
        let deadline = loop.scheduleTask(in: Self.timeout) {
            outcome.fail(LoveseatError(.timeout, "\(address.host):\(address.port) does not answer"))
        }
        let local = try options.networkInterface.map { name in
            do { return try ListenerAddresses.address(of: name, port: 0) } catch {
                throw LoveseatError(.unknownInterface, LoveseatError(network: error).message)
            }
        }
        let tls = address.isSecure ? ClientTLS(host: address.host, options: options) : nil
        let install: @Sendable (any Channel) throws -> Void = { channel in
            try client.install(on: channel, address, tls, head: head, outcome: outcome)
        }
        var bootstrap = ClientBootstrap(group: loop)
        if let local { bootstrap = bootstrap.bind(to: local) }
        let connecting = bootstrap.connectTimeout(Self.timeout)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let proxy else { return try install(channel) }
                    try Self.tunnel(
                        through: proxy,
                        on: channel,
                        to: address,
                        fail: { outcome.fail($0) },
                        then: install
                    )
                }
            }
            .connect(
                host: host,
                port: proxy.map { Int($0.port) } ?? address.port
            )
        connecting.whenFailure { error in
            let error = LoveseatError(network: error)
            outcome.fail(
                proxy == nil ? error : LoveseatError(error.code, "the proxy cannot be used: \(error.message)")
            )
        }
        outcome.futureResult.whenComplete { result in
            deadline.cancel()
            // A connection that succeeds after this is not used.
            if case .success(.connected) = result { return }
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        return try await withTaskCancellationHandler {
            try await outcome.futureResult.get()
        } onCancel: {
            outcome.fail(CancellationError())
        }
    }

    /// Adds the handlers for the peer to a channel's pipeline.
    package func install(
        on channel: any Channel,
        _ address: WebSocketAddress,
        _ tls: ClientTLS?,
        head: HTTPRequestHead,
        outcome: EventLoopPromise<Outcome>
    ) throws {
        if let tls { try channel.pipeline.syncOperations.addHandler(tls.makeHandler()) }
        let codec = ClientCodec()
        let handshake = ClientHandshake(
            address,
            head: head,
            options: options,
            credentials: RequestCredentials(options).name,
            webSocket: webSocket,
            tls: tls,
            pairing: pairing,
            outcome: outcome
        ) { codec.remove(from: $0) }
        try channel.pipeline.syncOperations.addHandlers(codec.handlers + [handshake])
    }

    /// Asks a proxy for a tunnel to the peer, and adds the handlers for the peer when it is open.
    static func tunnel(
        through proxy: ProxyConfiguration,
        on channel: any Channel,
        to address: WebSocketAddress,
        fail: @escaping @Sendable (any Error) -> Void,
        then install: @escaping (any Channel) throws -> Void
    ) throws {
        let codec = ClientCodec()
        let tunnel = ProxyTunnel(proxy, to: address, fail: { fail($0) }) { channel in
            codec.remove(from: channel).assumeIsolated().whenComplete { _ in
                do { try install(channel) } catch { fail(LoveseatError(network: error)) }
            }
        }
        try channel.pipeline.syncOperations.addHandlers(codec.handlers + [tunnel])
    }

    private func request(_ address: WebSocketAddress, _ options: ConnectionOptions) -> HTTPRequestHead {
        var headers = HTTPHeaders()
        headers.add(name: "Host", value: address.hostHeader)
        headers.add(name: "User-Agent", value: "Loveseat")
        let basic = options.credentials ?? options.authenticator as? BasicAuthenticator
        if let basic {
            headers.add(name: "Authorization", value: UpgradeHeaders.basic(basic.username, basic.password))
        }
        for (name, value) in options.headers.sorted(by: { $0.key < $1.key })
        where name.lowercased() != "cookie" {
            headers.replaceOrAdd(name: name, value: value)
        }
        let cookies = RequestCredentials(options).cookies(for: address, now: Self.now)
        if !cookies.isEmpty { headers.add(name: "Cookie", value: cookies.joined(separator: "; ")) }
        for name in Self.handshakeHeaders { headers.remove(name: name) }
        headers.add(name: "Connection", value: "Upgrade")
        headers.add(name: "Upgrade", value: "websocket")
        headers.add(name: "Sec-WebSocket-Version", value: "13")
        if options.offers.contains(.mobile4),
            options.offers.contains(where: ReplicationProtocol.trees.contains)
        {
            headers.add(name: UpgradeHeaders.treesField, value: UpgradeHeaders.treesToken)
        }
        headers.add(name: "Sec-WebSocket-Key", value: UpgradeHeaders.newKey())
        let offers = options.offers.map(\.rawValue).joined(separator: ",")
        headers.add(name: "Sec-WebSocket-Protocol", value: offers)
        return HTTPRequestHead(version: .http1_1, method: .GET, uri: address.target, headers: headers)
    }
}

/// A client's two HTTP handlers, which can be removed.
private struct ClientCodec {
    let encoder = HTTPRequestEncoder()
    let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .forwardBytes))

    var handlers: [any ChannelHandler] { [encoder, decoder] }

    /// Done when the decoder has returned from the read in which this is called, and what it had read is passed on.
    func remove(from channel: any Channel) -> EventLoopFuture<Void> {
        let pipeline = channel.pipeline.syncOperations
        return pipeline.removeHandler(encoder).and(pipeline.removeHandler(decoder)).map { _ in }
    }
}
