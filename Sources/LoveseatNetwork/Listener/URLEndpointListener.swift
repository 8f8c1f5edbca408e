public import Foundation
import Logging
public import LoveseatCore
public import LoveseatIdentity
public import LoveseatModel
import LoveseatReplication
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// The passive peer: serves collections to any number of replicators over WebSockets (replication.md §21).
///
/// A started listener lives until it stops or its database closes. It can be started again. Safe to use from any thread.
public final class URLEndpointListener: Sendable {
    /// How many peers there are.
    public struct ConnectionStatus: Hashable, Sendable {
        /// Open connections.
        public let connectionCount: UInt64
        /// Those that transfer something at the moment.
        public let activeConnectionCount: UInt64
    }

    private static let mostHalfOpen = 256

    /// What it was made with.
    public let config: URLEndpointListenerConfiguration
    private let board = PeerBoard()
    private let running = NIOLockedValueBox<Running?>(nil)
    /// Held while it starts or stops: one after the other, in the order of the calls.
    private let lifecycle = AsyncLock()

    private struct Running: Sendable {
        let channel: any Channel
        let peers: PassivePeers
        let port: UInt16
        let urls: [URL]
        let identity: TLSIdentity?
    }

    /// Makes a listener, which listens when it is started.
    public init(_ config: URLEndpointListenerConfiguration) { self.config = config }

    /// Makes a listener, which listens when it is started.
    public convenience init(config: URLEndpointListenerConfiguration) { self.init(config) }

    /// The port it listens on; nil unless it is running.
    public var port: UInt16? { running.withLockedValue { $0?.port } }

    /// The URLs it can be reached at, one for each address of the host, those of the host itself last; nil unless it is
    /// running.
    public var urls: [URL]? { running.withLockedValue { $0?.urls } }

    /// The identity it shows to clients; nil unless it is running with TLS.
    public var tlsIdentity: TLSIdentity? { running.withLockedValue { $0?.identity } }

    /// How many peers there are now.
    public var status: ConnectionStatus {
        let counts = running.withLockedValue { $0?.peers.counts } ?? (0, 0)
        return ConnectionStatus(connectionCount: UInt64(counts.0), activeConnectionCount: UInt64(counts.1))
    }

    /// Starts to listen; does nothing if it does already. Calls of this and ``stop()`` take effect one after the other.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for no collections or those of two databases, or for an
    ///   authenticator that needs TLS where it is disabled; `crypto` for an identity that cannot be used or kept;
    ///   `EADDRINUSE` of the `posix` domain if the port is taken, `unknownHost` for an interface that
    ///   does not exist, `notOpen`. `invalidParameter` also for a database name that is empty or has a slash.
    public func start() async throws(LoveseatError) {
        await lifecycle.acquire()
        defer { lifecycle.release() }
        try await startAlone()
    }

    private func startAlone() async throws(LoveseatError) {
        guard running.withLockedValue({ $0 == nil }) else { return }
        try ReplicatorConfiguration.checkCompression(config.compressionLevel)
        guard config.heartbeat > 0, config.heartbeat.isFinite else {
            throw LoveseatError(
                .invalidParameter,
                "heartbeat is more than 0 seconds, not \(config.heartbeat)"
            )
        }
        guard let database = config.collections.first?.database,
            config.collections.allSatisfy({ $0.database === database })
        else {
            throw LoveseatError(
                .invalidParameter,
                "a listener serves at least one collection, all of one database"
            )
        }
        let name = config.databaseName ?? database.name
        guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")) else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(name)\" cannot be part of a URL: use a name without a slash"
            )
        }
        if let proposal = URLEndpointListenerConfiguration.compatibleName(for: name) {
            LogDomain.listener.log(
                .warning,
                "Couchbase Lite cannot connect to a database named \"\(name)\": serve it as \"\(proposal)\", for example"
            )
        }
        let identity = try chooseIdentity()
        let peers = PassivePeers(
            database: database,
            collections: config.collections,
            isReadOnly: config.readOnly,
            usesDeltas: config.enableDeltaSync,
            compressionLevel: config.compressionLevel,
            policy: config.accessPolicy
        )
        try database.adopt(self)
        do {
            let channel = try await bind(peers, identity, databaseName: name)
            do { try run(channel, peers, identity, databaseName: name) } catch {
                try? await channel.close().get()
                throw error
            }
        } catch {
            database.release(self)
            throw LoveseatError(network: error)
        }
    }

    private func run(
        _ channel: any Channel,
        _ peers: PassivePeers,
        _ identity: TLSIdentity?,
        databaseName: String
    ) throws {
        let port = UInt16(channel.localAddress?.port ?? 0)
        let urls = try ListenerAddresses.urls(
            networkInterface: config.networkInterface,
            port: port,
            isSecure: !config.disableTLS,
            databaseName: databaseName
        )
        LogDomain.listener.log(.info, "\(databaseName): listening on port \(port)")
        running.withLockedValue {
            $0 = Running(channel: channel, peers: peers, port: port, urls: urls, identity: identity)
        }
    }

    /// Tells the listener that its access policy answers otherwise now. Every answer is asked for anew anyhow; this takes
    /// documents away from the peers that are connected. What they may have now they get when it changes next.
    public func accessChanged() async { await running.withLockedValue { $0?.peers }?.accessChanged() }

    /// What happens to each peer from now on: when it connects, transfers something, waits, and is gone.
    public var peerChanges: Feed<ListenerPeer> { board.changes }

    /// Stops listening, says goodbye to every peer (they see WebSocket code 1001), and waits for them to go.
    public func stop() async {
        await lifecycle.acquire()
        defer { lifecycle.release() }
        let stopped = running.withLockedValue { running in
            defer { running = nil }
            return running
        }
        guard let stopped else { return }
        try? await stopped.channel.close().get()
        await stopped.peers.stop()
        LogDomain.listener.log(.info, "stopped listening on port \(stopped.port)")
        config.collections.first?.database.release(self)
    }

    private func chooseIdentity() throws(LoveseatError) -> TLSIdentity? {
        guard config.disableTLS else {
            if let identity = config.tlsIdentity { return identity }
            return try TLSIdentity.anonymousIdentity(in: config.identityStore ?? TLSIdentity.standardStore)
        }
        if config.authenticator?.requestsClientCertificates == true {
            throw LoveseatError(
                .invalidParameter,
                "certificates are shown in TLS handshakes: do not disable TLS with an authenticator that asks for them"
            )
        }
        return nil
    }

    private func bind(
        _ peers: PassivePeers,
        _ identity: TLSIdentity?,
        databaseName: String
    ) async throws -> any Channel {
        let fingerprint = identity?.certs.first?.fingerprint
        let halfOpen = HalfOpenConnections(
            limit: Self.mostHalfOpen,
            patience: .milliseconds(Int64(config.handshakeSeconds * 1_000))
        )
        let board = board
        var pipeline = ListenerPipeline(
            databaseName: databaseName,
            authenticator: config.authenticator,
            fingerprint: fingerprint,
            webSocket: WebSocketSettings(isClient: false, heartbeat: config.heartbeat)
        ) { connection, channel in
            halfOpen.remove(channel)
            let peer = channel.remoteAddress?.description ?? "a peer"
            Task.detached {
                LogDomain.listener.log(.info, "\(databaseName): \(peer) connected")
                let entry = board.add(connection.peer)
                let error = await peers.serve(connection) { entry.note($0) }
                entry.end(error)
                LogDomain.listener.log(.info, "\(databaseName): \(peer) is gone")
            }
        }
        pipeline.tls = try identity.map { try ListenerTLS(identity: $0, authenticator: config.authenticator) }
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                // Without file descriptors left, accepting again at once would only keep the processor busy.
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptPause())
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { [pipeline] channel in
                halfOpen.add(channel)
                return channel.eventLoop.makeCompletedFuture { try pipeline.install(on: channel) }
            }
        let port = Int(config.port ?? 0)
        if let interface = config.networkInterface {
            let address = try ListenerAddresses.address(of: interface, port: port)
            return try await bootstrap.bind(to: address).get()
        }
        do { return try await bootstrap.bind(host: "::", port: port).get() } catch let error as IOError
            where error.errnoCode == EAFNOSUPPORT || error.errnoCode == EADDRNOTAVAIL
        {
            return try await bootstrap.bind(host: "0.0.0.0", port: port).get()
        }
    }
}

extension URLEndpointListener: DatabaseService {
    package func endWithDatabase() async { await stop() }
}
