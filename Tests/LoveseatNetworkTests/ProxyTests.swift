import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

/// Replicators behind an HTTP proxy (blip.md §1.7).
struct ProxyTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
        try near.defaultCollection().save(Document(id: "here"))
    }

    private func serve(disablesTLS: Bool) async throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.disableTLS = disablesTLS
        configuration.identityStore = FileIdentityStore(
            folder: URL(filePath: scratch.path).appending(path: "identities")
        )
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func sync(_ url: URL?, _ proxy: ProxyConfiguration?) async throws -> LoveseatError? {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(url))
        )
        configuration.maxAttempts = 1
        configuration.acceptOnlySelfSignedServerCertificate = true
        configuration.proxy = proxy
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    @Test(arguments: [true, false])
    func `a proxy that asks for a password carries the connection`(_ disablesTLS: Bool) async throws {
        let listener = try await serve(disablesTLS: disablesTLS)
        let proxy = try await ConnectProxy(password: "s3cret")
        var configuration = ProxyConfiguration(host: "127.0.0.1", port: UInt16(proxy.port))
        let refused = try await sync(listener.urls?.first, configuration)
        #expect(refused?.code == .httpProxyAuthRequired)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "s3cret")
        #expect(try await sync(listener.urls?.first, configuration) == nil)
        #expect(try far.defaultCollection().document(id: "here") != nil)
        #expect(proxy.tunnels.withLockedValue { $0 } == ["127.0.0.1:\(listener.port ?? 0)"])
        await listener.stop()
    }

    @Test func `a proxy that is none, is gone, or refuses has an error of its own`() async throws {
        let target = URL(string: "ws://127.0.0.1:9/far")
        let nonsense = try await ScriptedServer { _, _ in "SSH-2.0-x\r\n\r\n" }
        let forbidding = try await ScriptedServer { _, _ in "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno" }
        func error(_ port: Int) async throws -> LoveseatError? {
            try await sync(target, ProxyConfiguration(host: "127.0.0.1", port: UInt16(port)))
        }
        #expect(try await error(nonsense.port)?.code == .webSocketProtocolError)
        let forbidden = try await error(forbidding.port)
        #expect(forbidden?.code == .httpForbidden)
        #expect(forbidden?.message.contains("proxy") == true)
        let gone = try await error(1)
        #expect(gone?.code == .init(Int(ECONNREFUSED), domain: .posix))
        #expect(gone?.message.hasPrefix("the proxy cannot be used: cannot connect to 127.0.0.1:1") == true)
        #expect(try await sync(target, ProxyConfiguration(host: "", port: 1))?.code == .invalidParameter)
    }

    @Test func `a proxy's URL is read, or refused`() {
        let full = ProxyConfiguration(url: "http://ana:p%40ss@proxy.example:3128")
        #expect(full?.host == "proxy.example")
        #expect(full?.port == 3_128)
        #expect(full?.authenticator?.username == "ana")
        #expect(full?.authenticator?.password == "p@ss")
        #expect(ProxyConfiguration(url: "proxy.example:8080")?.port == 8_080)
        for wrong in ["socks5://x:1", "http://", "", "http://x:99999"] {
            #expect(ProxyConfiguration(url: wrong) == nil, "\(wrong)")
        }
    }
}

/// A proxy that knows CONNECT, and asks for a password.
private final class ConnectProxy: Sendable {
    let tunnels = NIOLockedValueBox<[String]>([])
    let port: Int
    private let channel: any NIOCore.Channel

    init(password: String) async throws {
        let tunnels = tunnels
        let expected = "Basic " + Data("ana:\(password)".utf8).base64EncodedString()
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        Tunnel(expected: expected, tunnels: tunnels)
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    deinit { channel.close(promise: nil) }

    /// Reads the request, then passes bytes on.
    private final class Tunnel: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let expected: String
        private let tunnels: NIOLockedValueBox<[String]>
        private var request = ""
        private var peer: (any NIOCore.Channel)?

        init(expected: String, tunnels: NIOLockedValueBox<[String]>) {
            self.expected = expected
            self.tunnels = tunnels
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if let peer { return peer.writeAndFlush(unwrapInboundIn(data), promise: nil) }
            request += String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
            guard request.hasSuffix("\r\n\r\n") else { return }
            let lines = request.split(separator: "\r\n").map(String.init)
            let words = lines[0].split(separator: " ").map(String.init)
            guard words[0] == "CONNECT", lines.contains("Proxy-Authorization: \(expected)") else {
                let answer = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
                return context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
            }
            let target = words[1].split(separator: ":")
            let client = context.channel
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            ClientBootstrap(group: context.eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Back(to: client))
                    }
                }
                .connect(host: String(target[0]), port: Int(target[1]) ?? 0)
                .whenSuccess { server in
                    let (tunnel, context) = bound.value
                    tunnel.peer = server
                    tunnel.tunnels.withLockedValue { $0.append(words[1]) }
                    context.writeAndFlush(
                        tunnel.wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 200 Connected\r\n\r\n")),
                        promise: nil
                    )
                }
        }

        func channelInactive(context: ChannelHandlerContext) { peer?.close(promise: nil) }
    }

    private final class Back: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let client: any NIOCore.Channel
        init(to client: any NIOCore.Channel) { self.client = client }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            client.writeAndFlush(unwrapInboundIn(data), promise: nil)
        }
        func channelInactive(context: ChannelHandlerContext) { client.close(promise: nil) }
    }
}
