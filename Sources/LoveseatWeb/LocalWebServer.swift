public import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// Serves pages to browsers that have a token, which is in the address that ``start(port:hosts:identity:)`` returns.
///
/// Requests follow the rule of `RequestPolicy`: they name one of the server's hosts, and come from no page but its own.
public final class LocalWebServer: Sendable {
    /// Answers a request. An error that it throws is answered with status 500.
    public typealias Route = @Sendable (WebRequest) async throws -> WebReply

    /// How a server behaves.
    public struct Options: Sendable {
        /// The program's name, as in "use the address that this program has printed".
        public var program: String
        /// The name of the cookie, without the port.
        public var cookieName: String
        /// The maximum size of a POST's body, in bytes. The default is 1 MiB.
        public var maximumBody = 1 << 20
        /// Whether programs may give the token in the header `Authorization`. The default is false.
        public var allowsPrograms = false
        /// How long ``LocalWebServer/stop()`` waits for replies that are being sent. The default is not at all.
        public var patience = Duration.zero
        /// Makes the reply for a request that is refused, of a status and a sentence. The default is plain text.
        public var refusal: @Sendable (Int, String) -> WebReply = { .text(.init(code: $0), $1) }

        /// Creates options.
        public init(program: String, cookieName: String) {
            self.program = program
            self.cookieName = cookieName
        }
    }

    struct State {
        var port = 0
        /// The hosts of the server's addresses.
        var hosts: [String] = []
        var tls: ListenerTLS?
        var listening: [any Channel] = []
        var connections: [ObjectIdentifier: any Channel] = [:]
        var isStopped = false
        /// The requests that are being answered.
        var requests = 0
        /// Finished when there are none.
        var idle: AsyncStream<Void>.Continuation?
    }

    private static let tokenBytes = 16
    private static let maximumConnections = 64

    /// The token: 32 hexadecimal digits.
    public let token: String
    let options: Options
    let route: Route
    let state = Mutex(State())

    /// Creates a server, which does not listen yet.
    public init(_ options: Options, route: @escaping Route) {
        token = (0..<Self.tokenBytes).map { _ in UInt8.random(in: .min ... .max) }.hexadecimalText
        self.options = options
        self.route = route
    }

    /// Starts to listen at hosts, which are as in URLs, and returns the address of the page with its token: that of the first host.
    ///
    /// - Parameters:
    ///   - port: The port; 0 for a free one.
    ///   - hosts: The addresses of this computer. The default is 127.0.0.1, which has the name localhost, too.
    ///   - identity: The identity for HTTPS; nil for HTTP.
    /// - Throws: `IOError` of NIO if the port is in use for example, `LoveseatError` if the identity cannot be used.
    /// - Returns: The URL of the page.
    public func start(port: Int, hosts: [String] = ["127.0.0.1"], identity: TLSIdentity? = nil) async throws
        -> String
    {
        let tls = try identity.map { try ListenerTLS(identity: $0) }
        state.withLock { state in
            state.tls = tls
            // Its certificate does not have that name.
            state.hosts = tls == nil ? hosts + ["localhost"] : hosts
        }
        var bound = port
        do {
            for host in hosts {
                // All of them have the port that the first one got.
                let channel = try await bind(host, bound)
                bound = channel.localAddress?.port ?? bound
                state.withLock { ($0.port, $0.listening) = (bound, $0.listening + [channel]) }
            }
        } catch {
            for channel in state.withLock({ $0.listening }) { channel.close(promise: nil) }
            throw error
        }
        let scheme = tls == nil ? "http" : "https"
        return "\(scheme)://\(hosts.first ?? "localhost"):\(bound)/?k=\(token)"
    }

    private func bind(_ host: String, _ port: Int) async throws -> any Channel {
        let address = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.accept(channel) }
            }
            .bind(host: address, port: port).get()
    }

    /// Stops listening, waits a little for replies that are being sent, and closes the connections.
    public func stop() async {
        let listening = state.withLock { state in
            state.isStopped = true
            defer { state.listening = [] }
            return state.listening
        }
        // Channels may have closed by themselves.
        for channel in listening { try? await channel.close().get() }
        if options.patience > .zero { await finishReplies() }
        let connections = state.withLock { Array($0.connections.values) }
        for channel in connections { channel.close(promise: nil) }
        for channel in connections { try? await channel.closeFuture.get() }
    }

    private func finishReplies() async {
        let (idle, end) = AsyncStream<Void>.makeStream()
        let isIdle = state.withLock { state in
            state.idle = end
            return state.requests == 0
        }
        if isIdle { end.finish() }
        let timer = Task {
            // It is cancelled when all replies have been sent.
            try? await Task.sleep(for: options.patience)
            end.finish()
        }
        for await _ in idle {}
        timer.cancel()
    }

    private func begin() { state.withLock { $0.requests += 1 } }

    private func end() {
        let idle = state.withLock { state in
            state.requests -= 1
            return state.requests == 0 ? state.idle : nil
        }
        idle?.finish()
    }

    private func accept(_ channel: any Channel) throws {
        let id = ObjectIdentifier(channel)
        let (isAccepted, tls) = state.withLock { state in
            guard !state.isStopped, state.connections.count < Self.maximumConnections else {
                return (false, state.tls)
            }
            state.connections[id] = channel
            return (true, state.tls)
        }
        guard isAccepted else { return channel.close(promise: nil) }
        channel.closeFuture.whenComplete { [weak self] _ in
            self?.state.withLock { _ = $0.connections.removeValue(forKey: id) }
        }
        if let tls { try channel.pipeline.syncOperations.addHandlers(try tls.makeHandlers()) }
        let connection = try WebConnection(channel)
        let task = Task { await self.serve(connection) }
        channel.closeFuture.whenComplete { _ in task.cancel() }
    }

    private func serve(_ connection: WebConnection) async {
        // A browser may disconnect at any moment.
        try? await connection.channel.executeThenClose { inbound, outbound in
            var requests = WebConnection.Requests(inbound.makeAsyncIterator(), outbound)
            while let head = try await requests.next() {
                begin()
                defer { end() }
                let keepsConnection = try await reply(to: head, &requests).send(
                    to: outbound,
                    isHead: head.method == .HEAD,
                    keepsConnection: head.isKeepAlive
                )
                guard try await requests.finish(), keepsConnection else { break }
            }
        }
    }
}
