public import Foundation
import Logging
import LoveseatAssertions
import LoveseatBLIPReplication
public import LoveseatCore
public import LoveseatIdentity
public import LoveseatModel
package import LoveseatReplication
import NIOConcurrencyHelpers
import NIOCore

/// Serves collections of a database to any number of replicators, over WebSockets.
///
/// A started listener is kept alive by its database until it is stopped, and stops when the database closes. It can be started again. It
/// is safe to use from any thread.
public final class URLEndpointListener: Sendable {
    /// The number of a listener's connections.
    public struct ConnectionStatus: Hashable, Sendable {
        /// The number of open connections.
        public let connectionCount: UInt64
        /// The number of connections that transfer documents at the moment.
        public let activeConnectionCount: UInt64
    }

    /// The configuration with which the listener was created.
    public let config: URLEndpointListenerConfiguration
    private let registry = PeerRegistry()
    private let life = ListenerLife<PassiveReplicator>()

    /// Creates a listener. It listens when it is started.
    public init(_ config: URLEndpointListenerConfiguration) { self.config = config }

    /// The port on which the listener accepts connections; nil while it is not running.
    public var port: UInt16? { life.running?.port }

    /// The URLs at which peers can reach the listener, one for each address of this host, with those for this host alone last; nil
    /// while it is not running.
    ///
    /// While the listener is advertised, a URL with its host name in the domain `local` follows. Only hosts that resolve such names can
    /// use it.
    public var urls: [URL]? { life.urls }

    /// The name under which the listener is advertised; nil while it is not, and until it is known that no other service has the name.
    ///
    /// It differs from the name in ``URLEndpointListenerConfiguration/advertise`` if that is in use, by a number at its end.
    public var advertisedName: String? { life.advertising.name }

    /// A feed of whether and under which name the listener is advertised. It begins with the current state, and ends when the listener
    /// stops. A slow consumer misses intermediate states, but not the last one.
    public var advertisements: Feed<AdvertisementState> { life.advertising.states }

    /// The identity that the listener shows to clients; nil while it is not running, and without TLS.
    public var tlsIdentity: TLSIdentity? { life.running?.identity }

    /// The current number of connections.
    public var status: ConnectionStatus {
        let counts = life.running?.service.counts ?? (0, 0)
        return ConnectionStatus(connectionCount: UInt64(counts.0), activeConnectionCount: UInt64(counts.1))
    }

    /// Starts to accept connections. Does nothing if the listener is running.
    ///
    /// Calls of this and ``stop()`` take effect one after the other, in the order of the calls. If the task is cancelled while it waits for
    /// a call before, the listener is not started.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for a setting that cannot work (no collections, collections of two databases, a
    ///   database name that is empty or has a slash, an authenticator that needs TLS while it is disabled, a listener that cannot share the
    ///   port); `crypto` for an identity that cannot be used or stored; `EADDRINUSE` of the `posix` domain if the port is in use;
    ///   `unknownHost` for an interface that does not exist; `notOpen`.
    public func start() async throws(LoveseatError) {
        do {
            try await life.alone {
                // It runs already.
                if life.running == nil { try await startAlone() }
            }
        } catch { throw LoveseatError(network: error) }
    }

    private func startAlone() async throws(LoveseatError) {
        try ReplicatorConfiguration.checkCompression(config.compressionLevel)
        try RequestPolicy.check(origins: config.origins)
        try RequestPolicy.check(hostNames: config.hostNames)
        guard config.heartbeat > 0, config.heartbeat.isFinite else {
            throw LoveseatError(
                .invalidParameter,
                "heartbeat is \(config.heartbeat) seconds: use more than 0"
            )
        }
        guard config.maximumConnections ?? 1 > 0 else {
            throw LoveseatError(.invalidParameter, "maximumConnections must be more than 0")
        }
        guard !config.readOnly || !config.writeOnly else {
            throw LoveseatError(.invalidParameter, "a listener cannot be both read-only and write-only")
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
        let peers = PassiveReplicator(
            database: database,
            collections: config.collections,
            isReadOnly: config.readOnly,
            isWriteOnly: config.writeOnly,
            usesDeltas: config.enableDeltaSync,
            compressionLevel: config.compressionLevel,
            policy: config.accessPolicy,
            incomingFilter: config.incomingFilter
        )
        let guest = try guest()
        try database.session.adopt(self)
        do {
            let channel = try await bind(peers, identity, databaseName: name, guest)
            do {
                try guest?.began(
                    at: UInt16(channel.localAddress?.port ?? 0),
                    on: config.networkInterface
                )
                try run(channel, peers, identity, database, databaseName: name)
            } catch {
                // The port may be closed already; the first error says why the listener does not start.
                try? await channel.close().get()
                await guest?.end()
                throw error
            }
        } catch {
            database.session.release(self)
            throw LoveseatError(network: error)
        }
    }

    private func guest() throws(LoveseatError) -> (any PortGuest)? {
        guard let other = config.sharesPortWith else { return nil }
        if let guest = other as? any PortGuest { return guest }
        throw LoveseatError(
            .invalidParameter,
            "\(type(of: other)) cannot share a port: use CouchDBListener"
        )
    }

    private func run(
        _ channel: any Channel,
        _ peers: PassiveReplicator,
        _ identity: TLSIdentity?,
        _ database: Database,
        databaseName: String
    ) throws {
        let port = UInt16(channel.localAddress?.port ?? 0)
        let urls = try ListenerAddresses.urls(
            networkInterface: config.networkInterface,
            port: port,
            isSecure: !config.disableTLS,
            databaseName: databaseName
        )
        try life.advertising.begin(config.advertise) {
            AdvertisedListener(
                databaseName: databaseName,
                ownName: database.name,
                databaseID: try database.publicID,
                port: port,
                fingerprint: identity?.certs.first?.fingerprint,
                protocols: ["b2", "b3"] + (try guest()?.protocols ?? []),
                networkInterface: config.networkInterface
            )
        }
        LogDomain.listener.log(.info, "\(databaseName): listening on port \(port)")
        let running = ListenerLife.Running(
            channel: channel,
            service: peers,
            port: port,
            urls: urls,
            identity: identity
        )
        // A listener that is gone has stopped.
        life.begin(running) { [weak self] in await self?.stopAlone(ifAccepting: $0) }
    }

    /// Call this after the access policy's answers change.
    ///
    /// Connected peers lose the documents that they may no longer read; documents that they gain arrive when those change next. Peers that
    /// connect later need no call. Returns when the connected peers have been informed, or when the task is cancelled. Does nothing without
    /// an access policy.
    public func accessChanged() async {
        // A listener that does not run has no connected peers.
        guard let peers = life.running?.service else { return }
        await finishing(on: BlockingThreads.shared) { await peers.accessChanged() }
    }

    /// The peers that are connected now, in the order in which they connected; ``peerChanges`` follows them.
    public var peers: [ListenerPeer] { registry.connected }

    /// A feed of what happens to each peer from now on: it connects, transfers documents, becomes idle, disconnects.
    ///
    /// It ends when the listener stops, after the last event of each peer. Ask for it before ``start()`` to get all events. A slow
    /// consumer misses intermediate states.
    public var peerChanges: Feed<ListenerPeer> { registry.changes }

    /// A feed of the pieces of blobs that are received from peers and sent to them, from now on. It ends when the listener stops.
    ///
    /// There is one event for each piece of up to 256 kB. A consumer that falls behind misses events.
    public var blobTransfers: Feed<BlobTransfer> { registry.blobTransfers }

    /// A feed of the documents that are refused, or cannot be replicated with a peer for another reason, from now on. It ends when the listener
    /// stops.
    ///
    /// A peer may try again what is refused. A consumer that falls behind misses failures.
    public var failures: Feed<ListenerFailure> { registry.failures }

    /// The documents that are on their way over a peer's connection, or wait for their turn; nil if it has ended.
    ///
    /// `number`: ``ListenerPeer/number``.
    package func pending(of number: Int, listing limit: Int, unread: Int) async -> PendingTransfers? {
        await registry.replication(of: number)?.pending(listing: limit, unread: unread)
    }

    /// Stops accepting connections, closes those that are open (peers see `webSocketGoingAway`), and waits until they have ended.
    ///
    /// Does nothing if the listener is not running. If the task is cancelled while it waits, the call returns and the listener goes on
    /// stopping. A task that was cancelled before waits.
    public func stop() async { await finishing(on: BlockingThreads.shared) { await self.stopAlone() } }

    /// `closed`: the port that was closed, by the system or by a stop; the listener may have been started again since.
    private func stopAlone(ifAccepting closed: (any Channel)? = nil) async {
        await life.stop(ifAccepting: closed) { stopped in
            await (config.sharesPortWith as? any PortGuest)?.end()
            await stopped.service.stop()
            registry.finish()
            config.collections.first?.database.session.release(self)
        }
    }

    private func chooseIdentity() throws(LoveseatError) -> TLSIdentity? {
        guard config.disableTLS else {
            if let identity = config.tlsIdentity { return identity }
            return try TLSIdentity.anonymousIdentity(in: config.identityStore ?? TLSIdentity.standardStore)
        }
        return nil
    }

    private func bind(
        _ peers: PassiveReplicator,
        _ identity: TLSIdentity?,
        databaseName: String,
        _ guest: (any PortGuest)?
    ) async throws -> any Channel {
        let door = try Door(config.authenticator, identity: identity, patience: config.handshakeSeconds)
        let registry = registry
        var policy = RequestPolicy(
            origins: config.origins,
            hostNames: config.hostNames,
            networkInterface: config.networkInterface,
            identity: identity,
            authenticates: config.authenticator != nil,
            allowsOwnPages: false
        )
        policy.changingNames = { [advertising = life.advertising] in advertising.host.map { [$0] } ?? [] }
        let pipeline = ListenerPipeline(
            databaseName: databaseName,
            policy: policy,
            authenticator: door.authenticator,
            webSocket: WebSocketSettings(isClient: false, heartbeat: config.heartbeat),
            limit: ConnectionLimit(config.maximumConnections)
        ) { connection, channel in
            door.admitted(channel)
            let peer = channel.remoteAddress?.description ?? "a peer"
            Task.detached(executorPreference: BlockingThreads.shared) {
                await Self.serve(connection, "\(databaseName): \(peer)", peers, registry)
            }
        }
        let port = Int(config.port ?? 0)
        guard let guest else {
            return try await door.bind(interface: config.networkInterface, port: port) {
                try pipeline.install(on: $0, shown: $1)
            }
        }
        let installGuest = try await guest.open(
            SharedPort(door: door, identity: identity, configuration: config)
        )
        do {
            return try await door.bind(interface: config.networkInterface, port: port) { channel, shown in
                let sorter = RequestSorter { isWebSocket in
                    if isWebSocket {
                        try pipeline.install(on: channel, shown: shown)
                    } else {
                        try installGuest(channel, shown)
                    }
                }
                try channel.pipeline.syncOperations.addHandler(sorter)
            }
        } catch {
            await guest.end()
            throw error
        }
    }

    /// Serves an admitted client until its connection ends. `name`: the database and the client, for people.
    private static func serve(
        _ connection: PeerConnection,
        _ name: String,
        _ peers: PassiveReplicator,
        _ registry: PeerRegistry
    ) async {
        let form = connection.negotiated.map { " with \($0.rawValue)" } ?? ""
        LogDomain.listener.log(.info, "\(name) connected\(form)")
        let entry = registry.add(connection.peer)
        let documents = PeerDocumentLog(name)
        let error = await peers.serve(
            connection,
            report: { report in
                documents.note(report)
                switch report {
                case .blob(let event): registry.transferred(BlobTransfer(event))
                case .document(let event): registry.replicated(event, over: entry.number)
                case .activity, .checkpointNotSaved, .propertiesLeftOut, .failure: entry.update(report)
                }
            },
            began: { registry.began($0, over: entry.number) }
        )
        entry.end(error)
        LogDomain.listener.log(.info, "\(name) is gone")
    }
}

extension URLEndpointListener: DatabaseService {
    package func endWithDatabase() async { await stop() }

    /// A peer decides in which direction it replicates: documents that it sends and gets are both counted.
    package var replicationTasks: [ReplicationTask] {
        guard let port, let name = config.databaseName ?? config.collections.first?.database.name else {
            return []
        }
        return registry.connected.map { peer in
            var task = ReplicationTask(
                id: "peer-\(port)-\(peer.number)",
                source: "peer \(peer.identity.name ?? peer.identity.address)",
                target: name,
                isContinuous: true
            )
            task.user = peer.identity.name
            task.documentsRead = peer.documentsSent
            task.documentsWritten = peer.documentsReceived
            return task
        }
    }
}
