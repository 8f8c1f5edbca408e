import Foundation
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOPosix
import NIOWebSocket

extension FuzzTargets {
    /// Bytes that a client sends to a listener on a new connection: every input gets an answer.
    public static func http(_ bytes: [UInt8]) {
        // Empty lines before a request are ignored. The process may have no descriptors left for the sockets.
        guard bytes.contains(where: { $0 != 0x0D && $0 != 0x0A }), let (near, far) = socketPair() else {
            return
        }
        defer { close(far) }
        let adopted = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try listener.install(on: channel) }
            }
            .withConnectedSocket(near)
        do { _ = try adopted.wait() } catch {
            preconditionFailure("a listener cannot be installed: \(error)")
        }
        _ = bytes.withUnsafeBytes { write(far, $0.baseAddress, $0.count) }
        shutdown(far, CInt(SHUT_WR))
        var polled = pollfd(fd: far, events: Int16(POLLIN), revents: 0)
        var ready: CInt
        // The fuzzer's own timer interrupts.
        repeat { ready = poll(&polled, 1, 10_000) } while ready < 0 && errno == EINTR
        precondition(ready == 1, "a listener does not answer")
    }

    private static let listener = ListenerPipeline(
        databaseName: "db",
        policy: RequestPolicy(hosts: .ownNames([]), isSecure: false),
        authenticator: ConnectionAuthenticator(
            ListenerPasswordAuthenticator { name, password in name == "a" && password == "b" },
            fingerprint: nil
        ),
        webSocket: WebSocketSettings(isClient: false, heartbeat: 300)
    ) { connection, _ in
        Task { await connection.channel.close(code: 1000, reason: "") }
    }

    private static func socketPair() -> (CInt, CInt)? {
        var pair: [CInt] = [0, 0]
        #if canImport(Darwin)
        let type = SOCK_STREAM
        #else
        let type = CInt(SOCK_STREAM.rawValue)
        #endif
        return socketpair(AF_UNIX, type, 0, &pair) == 0 ? (pair[0], pair[1]) : nil
    }

    /// A server's answer to the request for a WebSocket: it opens one, or there is an error.
    public static func response(_ bytes: [UInt8]) {
        let channel = EmbeddedChannel()
        let outcome = channel.eventLoop.makePromise(of: WebSocketClient.Outcome.self)
        let head = HTTPRequestHead(
            version: .http1_1,
            method: .GET,
            uri: "/db/_blipsync",
            headers: ["Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="]
        )
        var options = ConnectionOptions()
        options.cookies = CookieStorage(acceptsParentDomain: true, load: { CookieJar() }, add: { _ in })
        let address = WebSocketAddress(host: "h", port: 1, isSecure: false, target: "/db/_blipsync")
        var ending: Result<WebSocketClient.Outcome, any Error>?
        outcome.futureResult.assumeIsolated().whenComplete { ending = $0 }
        do {
            try WebSocketClient(options: options)
                .install(on: channel, address, nil, head: head, outcome: outcome)
            try channel.connect(to: SocketAddress(unixDomainSocketPath: "x")).wait()
        } catch { preconditionFailure("the handshake cannot begin: \(error)") }
        // A bad answer makes the channel throw, and has to end the handshake all the same.
        _ = try? channel.writeInbound(ByteBuffer(bytes: bytes))
        channel.embeddedEventLoop.run()
        _ = try? channel.finish(acceptAlreadyClosed: true)
        guard let ending else { preconditionFailure("the server's answer leads nowhere") }
        if case .success(.redirected(let location)) = ending {
            // A server may redirect to any text, which is refused.
            _ = try? address.redirected(to: location)
        }
    }

    /// Frames of a WebSocket, to a server if the first byte is even, otherwise to a client. It makes no difference in what
    /// pieces they arrive.
    public static func webSocket(_ bytes: [UInt8]) {
        // Fuzzers begin with no bytes at all.
        guard let first = bytes.first else { return }
        let isClient = first % 2 == 1
        let whole = WebSocketTranscript([bytes.dropFirst()], isClient: isClient)
        let single = WebSocketTranscript(bytes.indices.dropFirst().map { bytes[$0...$0] }, isClient: isClient)
        precondition(whole == single, "what is received depends on how it is cut:\n\(whole)\n\(single)")
    }
}

/// The results of one end of a WebSocket for the bytes that it receives.
private struct WebSocketTranscript: Equatable {
    private static let largestMessage = 600

    var messages: [[UInt8]] = []
    var texts: [[UInt8]] = []
    var end: LoveseatError?
    /// The bytes that it sends; empty for a client, which masks them at random.
    var sent: [UInt8] = []

    init(_ pieces: [ArraySlice<UInt8>], isClient: Bool) {
        var settings = WebSocketSettings(isClient: isClient, heartbeat: 300)
        settings.maximumMessageSize = Self.largestMessage
        let mailbox = Mailbox(limit: .max) {}
        let texts = Mailbox(limit: .max) {}
        let handler = WebSocketHandler(mailbox: mailbox, texts: texts, settings: settings)
        let decoder = ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: settings.maximumMessageSize))
        let channel = EmbeddedChannel(handlers: [decoder, handler])
        do { try channel.connect(to: SocketAddress(unixDomainSocketPath: "x")).wait() } catch {
            preconditionFailure("a channel cannot be made: \(error)")
        }
        // Frames may break the protocol: then the channel throws, and `end` keeps the reason.
        for piece in pieces where channel.isActive { _ = try? channel.writeInbound(ByteBuffer(bytes: piece)) }
        while let data = try? channel.readOutbound(as: ByteBuffer.self) { sent += data.readableBytesView }
        if isClient { sent = [] }
        _ = try? channel.finish(acceptAlreadyClosed: true)
        self.texts = (try? texts.dequeueMessages()) ?? []
        do throws(LoveseatError) {
            messages = try mailbox.dequeueMessages() ?? []
            _ = try mailbox.dequeueMessages()
        } catch { end = error }
        precondition((messages + self.texts).allSatisfy { $0.count <= Self.largestMessage }, "a long message")
    }
}
