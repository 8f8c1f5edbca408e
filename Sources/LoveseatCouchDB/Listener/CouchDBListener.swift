public import Foundation
import HummingbirdCore
import Logging
import LoveseatAssertions
public import LoveseatCore
import LoveseatCouchDBReplication
public import LoveseatIdentity
public import LoveseatModel
public import LoveseatNetwork
import LoveseatReplication
import LoveseatStorage
import NIOConcurrencyHelpers
import NIOCore

/// Serves collections of a database over CouchDB's HTTP protocol, to CouchDB, PouchDB, TouchDB, Couchbase Lite 1.x and any HTTP client.
///
/// It has a port of its own, or shares that of a `URLEndpointListener`: see `URLEndpointListenerConfiguration.sharesPortWith`.
///
/// A started listener is kept alive by its database until it is stopped, and stops when the database closes. It can be started again. It
/// is safe to use from any thread.
public final class CouchDBListener: Sendable {
    /// The configuration with which the listener was created.
    public let config: CouchDBListenerConfiguration
    private let life = ListenerLife<Service>()

    private struct Service: Sendable {
        let server: CouchDBServer
        let connections: OpenConnections
    }

    /// Creates a listener. It listens when it is started.
    public init(_ config: CouchDBListenerConfiguration) { self.config = config }

    /// The port on which the listener accepts connections; nil while it is not running.
    public var port: UInt16? { life.running?.port }

    /// The URLs of the server, without a database's name, one for each address of this host, with those for this host alone last; nil
    /// while it is not running.
    ///
    /// While the listener is advertised, a URL with its host name in the domain `local` follows.
    public var urls: [URL]? { life.urls }

    /// The name under which the listener is advertised; nil while it is not, and until it is known that no other service has the name.
    public var advertisedName: String? { life.advertising.name }

    /// A feed of whether and under which name the listener is advertised. It begins with the current state, and ends when the listener
    /// stops. A slow consumer misses intermediate states, but not the last one.
    public var advertisements: Feed<AdvertisementState> { life.advertising.states }

    /// The identity that the listener shows to clients; nil while it is not running, and without TLS.
    public var tlsIdentity: TLSIdentity? { life.running?.identity }

    /// The number of open connections.
    public var connectionCount: Int { life.running?.service.connections.count ?? 0 }

    /// Starts to accept connections. Does nothing if the listener is running, or if the task is cancelled while it waits for the end of
    /// ``stop()``.
    ///
    /// - Throws: `LoveseatError`: `invalidParameter` for a setting that cannot work; `crypto` for an identity that cannot be used or
    ///   stored; `EADDRINUSE` of the `posix` domain if the port is in use; `unknownHost` for an interface that does not exist; `notOpen`.
    public func start() async throws(LoveseatError) {
        do {
            try await life.alone {
                // It runs already.
                if life.running == nil { try await startAlone() }
            }
        } catch { throw LoveseatError(network: error) }
    }

    private func startAlone() async throws {
        try Self.check(config)
        let identity = try chooseIdentity()
        try config.database.session.adopt(self)
        do { try await listen(identity) } catch {
            config.database.session.release(self)
            throw error
        }
    }

    private static func check(_ config: CouchDBListenerConfiguration) throws(LoveseatError) {
        guard config.maximumRequestSize > 0, config.maximumDocumentSize > 0, config.idleTimeout > 0 else {
            throw LoveseatError(.invalidParameter, "sizes and times of a listener must be more than 0")
        }
        guard !config.readOnly || !config.writeOnly else {
            throw LoveseatError(.invalidParameter, "a listener cannot be both read-only and write-only")
        }
        for name in config.databases?.keys.sorted() ?? [] {
            do { try Databases.check(name) } catch { throw LoveseatError(.invalidParameter, error.reason) }
        }
        guard config.databases?.values.allSatisfy({ $0.database === config.database }) ?? true else {
            throw LoveseatError(.invalidParameter, "a listener serves collections of one database")
        }
        guard !(config.authenticator is ListenerPairingAuthenticator) else {
            throw LoveseatError(
                .invalidParameter,
                "clients of CouchDB's wire cannot be paired: use a password or certificates"
            )
        }
        try RequestPolicy.check(origins: config.origins)
        try RequestPolicy.check(hostNames: config.hostNames)
        let offersDigest = (config.authenticator as? ListenerPasswordAuthenticator)?.secret != nil
        guard
            !config.disableTLS || config.allowsBasicWithoutTLS || offersDigest
                || !(config.authenticator is ListenerPasswordAuthenticator)
        else {
            throw LoveseatError(
                .invalidParameter,
                "Digest needs an authenticator that knows the passwords: create it with init(realm:secret:)"
            )
        }
    }

    private func chooseIdentity() throws(LoveseatError) -> TLSIdentity? {
        guard !config.disableTLS else { return nil }
        if let identity = config.tlsIdentity { return identity }
        return try TLSIdentity.anonymousIdentity(in: config.identityStore ?? TLSIdentity.standardStore)
    }

    private func listen(_ identity: TLSIdentity?) async throws {
        let door = try Door(
            config.authenticator,
            identity: identity,
            patience: 15,
            minimumTLSVersion: config.minimumTLSVersion
        )
        let service = Service(
            server: try await makeServer(config, door, identity),
            connections: OpenConnections()
        )
        let channel = try await door.bind(
            interface: config.networkInterface,
            port: Int(config.port),
            install: installer(service)
        )
        do { try run(channel, service, identity) } catch {
            // It may be closed already, and the error that ended the start is the one to report.
            try? await channel.close().get()
            throw error
        }
    }

    private func makeServer(
        _ config: CouchDBListenerConfiguration,
        _ door: Door,
        _ identity: TLSIdentity?
    ) async throws -> CouchDBServer {
        let isSecure = identity != nil
        var requests = RequestPolicy(
            origins: config.origins,
            hostNames: config.hostNames,
            networkInterface: config.networkInterface,
            identity: identity,
            authenticates: config.authenticator != nil,
            allowsOwnPages: true
        )
        requests.changingNames = { [advertising = life.advertising] in advertising.host.map { [$0] } ?? [] }
        var settings = CouchDBServer.Settings(requests: requests)
        settings.policy = config.accessPolicy
        settings.incomingFilter = config.incomingFilter
        settings.isReadOnly = config.readOnly
        settings.isWriteOnly = config.writeOnly
        settings.maximumRequestSize = config.maximumRequestSize
        settings.heldBytes = config.heldBytes
        settings.maximumInlineAttachments = config.maximumInlineAttachments
        settings.maximumDocumentSize = config.maximumDocumentSize
        settings.allowsReplicationWith = config.allowsReplicationWith
        settings.prepareReplication = config.prepareReplication
        settings.isSecure = isSecure
        settings.allowsBasic = isSecure || config.allowsBasicWithoutTLS
        let store = try config.database.store
        // Peers that were away long must find where their histories meet ours.
        if store.revisionLimit < 1_000 {
            try await store.writeFromTask(within: nil) { try $0.setRevisionLimit(1_000) }
        }
        // The policy decides about a tombstone by the body that it deletes.
        if config.accessPolicy != nil { try store.keepDeletedBodies() }
        return try CouchDBServer(
            databases: Databases(
                database: config.database,
                fixed: config.databases.map { fixed in
                    Dictionary(uniqueKeysWithValues: fixed.map { (ExactText($0.key), $0.value) })
                },
                allowsCreation: config.allowsDatabaseCreation
            ),
            settings: settings,
            authenticator: door.authenticator,
            needsLogin: config.authenticator != nil,
            urls: { [weak self] in self?.urls ?? [] },
            admit: { door.admitted($0) }
        )
    }

    /// Returns a closure that puts the handlers of HTTP into the pipeline of a new connection.
    private func installer(_ service: Service) -> PipelineInstaller {
        // A year is as good as no end.
        let idle = TimeAmount.milliseconds(Int64(min(config.idleTimeout, 31_536_000) * 1_000))
        return { channel, shown in
            service.connections.add(channel)
            PacedWriter.keepLittleUnsent(by: channel)
            try channel.pipeline.syncOperations.addHandlers(ReadPace(), BodyRequester())
            let http = HTTP1Channel(
                responder: { request, writer, channel in
                    try await service.server.respond(request, writer, channel, shown)
                },
                configuration: .init(idleTimeout: idle)
            )
            let logger = Logger(label: "loveseat.couchdb") { _ in SwiftLogNoOpLogHandler() }
            http.setup(channel: channel, logger: logger).whenComplete { result in
                switch result {
                case .failure: channel.close(promise: nil)
                case .success(let value):
                    Task(executorPreference: BlockingThreads.requests) {
                        await http.handle(value: value, logger: logger)
                    }
                }
            }
        }
    }

    private func run(_ channel: any Channel, _ service: Service, _ identity: TLSIdentity?) throws {
        let port = UInt16(channel.localAddress?.port ?? 0)
        let urls = try Self.urls(config.networkInterface, port, isSecure: identity != nil)
        try life.advertising.begin(config.advertise) {
            AdvertisedListener(
                // Of several databases, the alphabetically first one.
                databaseName: config.databases?.keys.min() ?? config.database.name,
                ownName: config.database.name,
                databaseID: try config.database.publicID,
                port: port,
                fingerprint: identity?.certs.first?.fingerprint,
                protocols: protocols,
                networkInterface: config.networkInterface
            )
        }
        LogDomain.listener.log(.info, "\(config.database.name): listening for CouchDB's wire on port \(port)")
        let running = ListenerLife.Running(
            channel: channel,
            service: service,
            port: port,
            urls: urls,
            identity: identity
        )
        // A listener that is gone has stopped.
        life.begin(running) { [weak self] in await self?.stopAlone(ifAccepting: $0) }
    }

    private static func urls(_ networkInterface: String?, _ port: UInt16, isSecure: Bool) throws -> [URL] {
        try ListenerAddresses.urls(
            networkInterface: networkInterface,
            port: port,
            schemes: ("http", "https"),
            isSecure: isSecure,
            databaseName: ""
        )
    }

    /// Call this after the access policy's answers change. Feeds that are open follow the new answers; documents that a client gains
    /// arrive when those change next. Does nothing without an access policy.
    public func accessChanged() { life.running?.service.server.caches.visibleCounts.forget() }

    /// Stops accepting connections, ends the replications that clients started, and closes open connections.
    ///
    /// Does nothing if the listener is not running. If the task is cancelled while it waits, the call returns and the listener goes on
    /// stopping. A task that was cancelled before waits.
    public func stop() async { await finishing(on: BlockingThreads.shared) { await self.stopAlone() } }

    /// `closed`: the port that was closed, by the system or by a stop; the listener may have been started again since.
    private func stopAlone(ifAccepting closed: (any Channel)? = nil) async {
        await life.stop(ifAccepting: closed) { stopped in
            await stopped.service.server.jobs.stop()
            await stopped.service.connections.closeAll()
            config.database.session.release(self)
        }
    }
}

extension CouchDBListener: PortGuest {
    package var protocols: [String] { ["c"] }

    package func open(_ port: SharedPort) async throws -> PipelineInstaller {
        try await life.alone { try await openAlone(port) }
    }

    private func openAlone(_ port: SharedPort) async throws -> PipelineInstaller {
        guard life.running == nil else {
            throw LoveseatError(
                .invalidParameter,
                "the listener for CouchDB's wire is running already: it has one port"
            )
        }
        var shared = config
        shared.networkInterface = port.configuration.networkInterface
        shared.disableTLS = port.identity == nil
        shared.authenticator = port.configuration.authenticator
        shared.hostNames = port.configuration.hostNames
        try Self.check(shared)
        try config.database.session.adopt(self)
        do {
            let service = Service(
                server: try await makeServer(shared, port.door, port.identity),
                connections: OpenConnections()
            )
            life.begin(
                ListenerLife.Running(
                    channel: nil,
                    service: service,
                    port: 0,
                    urls: [],
                    identity: port.identity
                )
            )
            return { [weak self, install = installer(service)] channel, shown in
                // It may have been stopped by itself.
                guard self?.life.running?.service.server === service.server else {
                    return channel.close(promise: nil)
                }
                try install(channel, shown)
            }
        } catch {
            config.database.session.release(self)
            throw error
        }
    }

    package func began(at port: UInt16, on networkInterface: String?) throws {
        let isSecure = tlsIdentity != nil
        let urls = try Self.urls(networkInterface, port, isSecure: isSecure)
        life.note(port: port, urls: urls)
    }

    package func end() async { await stop() }
}

extension CouchDBListener: DatabaseService {
    package func endWithDatabase() async { await stop() }

    package var replicationTasks: [ReplicationTask] {
        guard let server = life.running?.service.server else { return [] }
        return server.jobs.tasks + server.clients.tasks
    }
}

/// The open connections of a listener.
final class OpenConnections: Sendable {
    private let channels = NIOLockedValueBox<[ObjectIdentifier: any Channel]>([:])

    var count: Int { channels.withLockedValue { $0.count } }

    func add(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        channels.withLockedValue { $0[id] = channel }
        channel.closeFuture.whenComplete { [weak self] _ in
            self?.channels.withLockedValue { _ = $0.removeValue(forKey: id) }
        }
    }

    func closeAll() async {
        let open = channels.withLockedValue { Array($0.values) }
        for channel in open { channel.close(promise: nil) }
        // A connection that ended by an error has ended, too.
        for channel in open { try? await channel.closeFuture.get() }
    }
}
