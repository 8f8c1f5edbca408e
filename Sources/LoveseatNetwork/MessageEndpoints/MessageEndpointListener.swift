public import LoveseatCore
import LoveseatModel
import LoveseatReplication
import NIOConcurrencyHelpers

/// How a ``MessageEndpointListener`` serves collections.
public struct MessageEndpointListenerConfiguration: Sendable {
    /// The collections to serve, of one database; no others can be seen.
    public let collections: [Collection]
    /// What the transports keep of what is sent.
    public let protocolType: ProtocolType
    /// Whether peers may only pull.
    public var readOnly = false
    /// Whether only the difference travels where a peer has an earlier revision, if the peer knows how.
    public var enableDeltaSync = false
    /// What each peer may read and write; nil for everything. Who a peer is, the app says when it accepts it.
    public var accessPolicy: AccessPolicy?

    /// Serves collections over transports of one kind.
    public init(collections: [Collection], protocolType: ProtocolType) {
        self.collections = collections
        self.protocolType = protocolType
    }
}

/// Something that happened to a connection of a ``MessageEndpointListener``.
public struct MessageEndpointListenerChange: Sendable {
    /// The connection; nil if the app gave a transport instead.
    public let connection: (any MessageEndpointConnection)?
    /// The number that ``MessageEndpointListener/accept(_:)`` returned, or that the connection has.
    public let number: Int
    /// What it is doing now.
    public let status: Replicator.Status
}

/// The passive peer over the app's transports (replication.md §22): the app accepts connections, and gives them to it.
///
/// Safe to use from any thread.
public final class MessageEndpointListener: Sendable {
    /// What it was made with.
    public let config: MessageEndpointListenerConfiguration
    private let state = NIOLockedValueBox(State())

    /// One connection, from when the app gives it to its end.
    private final class Accepted: DatabaseService {
        let connection: (any MessageEndpointConnection)?
        let transport: any MessageTransport
        let task = NIOLockedValueBox<Task<Void, Never>?>(nil)
        let status = NIOLockedValueBox(Replicator.Status.connecting)

        init(_ transport: any MessageTransport, _ connection: (any MessageEndpointConnection)?) {
            self.transport = transport
            self.connection = connection
        }

        func endWithDatabase() async {
            await transport.close()
            await task.withLockedValue { $0 }?.value
        }
    }

    private struct State {
        var nextNumber = 0
        var entries: [Int: Accepted] = [:]
        var feeds: [Int: FeedBuffer<MessageEndpointListenerChange>] = [:]
    }

    private let peers: PassivePeers?

    /// Makes a listener.
    public init(_ config: MessageEndpointListenerConfiguration) {
        self.config = config
        let database = config.collections.first?.database
        let isOfOne = config.collections.allSatisfy { $0.database === database }
        peers = database.flatMap { database in
            isOfOne
                ? PassivePeers(
                    database: database,
                    collections: config.collections,
                    isReadOnly: config.readOnly,
                    usesDeltas: config.enableDeltaSync,
                    compressionLevel: ReplicatorConfiguration.defaultCompressionLevel,
                    policy: config.accessPolicy
                ) : nil
        }
    }

    /// Makes a listener.
    public convenience init(config: MessageEndpointListenerConfiguration) { self.init(config) }

    /// The connections that are open now, without those of which the app gave the transport.
    public var connections: [any MessageEndpointConnection] {
        state.withLockedValue { state in
            state.entries.sorted { $0.key < $1.key }.compactMap(\.value.connection)
        }
    }

    /// What happens to connections from now on.
    public var changes: Feed<MessageEndpointListenerChange> {
        let buffer = FeedBuffer<MessageEndpointListenerChange>(
            limit: 64 << 10,
            cost: { _ in 256 },
            merge: { $0 = $1 }
        )
        let number = state.withLockedValue { state in
            state.nextNumber += 1
            state.feeds[state.nextNumber] = buffer
            return state.nextNumber
        }
        return Feed(buffer) { [weak self] in
            self?.state.withLockedValue { _ = $0.feeds.removeValue(forKey: number) }
        }
    }

    // MARK: Connections

    /// Serves a connection until either side ends it. It is opened first.
    ///
    /// `peer`: who it is, for the access policy.
    public func accept(connection: any MessageEndpointConnection, as peer: PeerIdentity = PeerIdentity()) {
        let transport = CallbackTransport(connection)
        serve(transport, connection, peer) { try await transport.open() }
    }

    /// Serves a transport until either side ends it, and returns a number for it.
    ///
    /// `peer`: who it is, for the access policy.
    @discardableResult
    public func accept(_ transport: any MessageTransport, as peer: PeerIdentity = PeerIdentity()) -> Int {
        serve(transport, nil, peer) {}
    }

    /// Tells the listener that its access policy answers otherwise now, as ``URLEndpointListener/accessChanged()`` does.
    public func accessChanged() async { await peers?.accessChanged() }

    /// Ends a connection.
    public func close(connection: any MessageEndpointConnection) {
        let transports = state.withLockedValue { state in
            state.entries.values.filter { $0.connection === connection }.map(\.transport)
        }
        for transport in transports { Task { await transport.close() } }
    }

    /// Ends the transport that was accepted with this number, and returns when it is gone.
    public func close(_ number: Int) async {
        await state.withLockedValue { $0.entries[number] }?.endWithDatabase()
    }

    /// Ends every connection, and returns when they are gone.
    public func closeAll() async {
        for number in state.withLockedValue({ Array($0.entries.keys) }) { await close(number) }
    }

    @discardableResult
    private func serve(
        _ transport: any MessageTransport,
        _ connection: (any MessageEndpointConnection)?,
        _ peer: PeerIdentity,
        open: @escaping @Sendable () async throws -> Void
    ) -> Int {
        let accepted = Accepted(transport, connection)
        let number = state.withLockedValue { state in
            state.nextNumber += 1
            state.entries[state.nextNumber] = accepted
            return state.nextNumber
        }
        note(.connecting, of: number)
        accepted.task.withLockedValue { task in
            task = Task.detached { [self] in
                let error = await run(accepted, number, peer, open: open)
                note(accepted.status.withLockedValue { $0.stopped(error) }, of: number)
                state.withLockedValue { _ = $0.entries.removeValue(forKey: number) }
                config.collections.first?.database.release(accepted)
            }
        }
        return number
    }

    private func run(
        _ accepted: Accepted,
        _ number: Int,
        _ peer: PeerIdentity,
        open: @Sendable () async throws -> Void
    ) async -> LoveseatError? {
        do {
            guard let peers, let database = config.collections.first?.database else {
                throw LoveseatError(
                    .invalidParameter,
                    "a listener serves at least one collection, all of one database"
                )
            }
            try database.adopt(accepted)
            try await open()
            let channel = try await TransportChannel.make(
                accepted.transport,
                config.protocolType,
                isActive: false,
                heartbeat: ReplicatorConfiguration.defaultHeartbeat
            )
            return await peers.serve(PeerConnection(channel: channel, negotiated: .mobile3, peer: peer)) {
                [weak self] report in
                guard case .activity(let isBusy, let progress) = report else { return }
                self?.note(Replicator.Status(isBusy: isBusy, progress), of: number)
            }
        } catch {
            await accepted.transport.close()
            return LoveseatError(transport: error)
        }
    }

    private func note(_ status: Replicator.Status, of number: Int) {
        state.withLockedValue { state in
            guard let entry = state.entries[number] else { return }
            entry.status.withLockedValue { $0 = status }
            let change = MessageEndpointListenerChange(
                connection: entry.connection,
                number: number,
                status: status
            )
            for feed in state.feeds.values { feed.push(change) }
        }
    }
}
