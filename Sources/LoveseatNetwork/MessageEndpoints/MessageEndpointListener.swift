import LoveseatBLIPReplication
public import LoveseatCore
import LoveseatModel
import LoveseatReplication
import NIOConcurrencyHelpers

/// The settings of a ``MessageEndpointListener``.
public struct MessageEndpointListenerConfiguration: Sendable {
    /// The collections to serve, all of one database. Peers cannot see others.
    public let collections: [Collection]
    /// Whether the transports preserve messages or are streams of bytes. Both sides need the same.
    public let protocolType: ProtocolType
    /// Whether peers may only pull. The default is false.
    public var readOnly = false
    /// Whether peers may only push, and save their checkpoints. The default is false. A peer that pulls gets `httpForbidden`.
    public var writeOnly = false
    /// Whether only the difference is sent to a peer that has an earlier revision, if the peer supports it. The default is false.
    public var enableDeltaSync = false
    /// Decides what each peer may read and write. Nil, the default, gives full access. The app names a peer when it
    /// accepts its connection.
    public var accessPolicy: AccessPolicy?

    /// Creates a configuration that serves collections over transports of one kind.
    public init(collections: [Collection], protocolType: ProtocolType) {
        self.collections = collections
        self.protocolType = protocolType
    }
}

/// A change of a connection of a ``MessageEndpointListener``.
public struct MessageEndpointListenerChange: Sendable {
    /// The connection's number, as returned by ``MessageEndpointListener/accept(_:as:)``.
    public let number: Int
    /// The connection's state, progress and error.
    public let status: Replicator.Status
}

/// Serves collections over the app's own transports: the app accepts connections and passes them to this listener.
///
/// Peers are other Loveseats, and apps of Couchbase Lite 2 to 4. A transport negotiates no form of the protocol, so the listener speaks to each peer
/// in the form of the first message that shows one.
///
/// It is safe to use from any thread. Connections end when the database closes.
public final class MessageEndpointListener: Sendable {
    /// The configuration with which the listener was created.
    public let config: MessageEndpointListenerConfiguration
    private let state = NIOLockedValueBox(State())

    /// A connection that the app passed on, until its end.
    private final class Accepted: DatabaseService {
        let transport: any MessageTransport
        let task = NIOLockedValueBox<Task<Void, Never>?>(nil)
        let status = NIOLockedValueBox(Replicator.Status.connecting)

        init(_ transport: any MessageTransport) { self.transport = transport }

        func endWithDatabase() async {
            await transport.close()
            await task.withLockedValue { $0 }?.value
        }
    }

    private struct State {
        var nextNumber = 0
        var entries: [Int: Accepted] = [:]
        var feeds = FeedSet<MessageEndpointListenerChange>()
    }

    private let peers: PassiveReplicator?

    /// Creates a listener. If there are no collections, or they belong to two databases, connections stop with
    /// `invalidParameter`.
    public init(_ config: MessageEndpointListenerConfiguration) {
        self.config = config
        let database = config.collections.first?.database
        let isOfOne = config.collections.allSatisfy { $0.database === database }
        peers = database.flatMap { database in
            isOfOne
                ? PassiveReplicator(
                    database: database,
                    collections: config.collections,
                    isReadOnly: config.readOnly,
                    isWriteOnly: config.writeOnly,
                    usesDeltas: config.enableDeltaSync,
                    compressionLevel: ReplicatorConfiguration.defaultCompressionLevel,
                    policy: config.accessPolicy
                ) : nil
        }
    }

    deinit { for feed in state.withLockedValue({ $0.feeds.all }) { feed.finish() } }

    /// A feed of what happens to connections from now on. It ends when the database closes, or when nothing refers to
    /// the listener any more. ``closeAll()`` does not end it, because the listener continues to accept connections.
    public var changes: Feed<MessageEndpointListenerChange> {
        let buffer = FeedBuffer<MessageEndpointListenerChange>(
            limit: 64 << 10,
            cost: { _ in 256 },
            merge: { $0 = $1 }
        )
        state.withLockedValue { $0.feeds.insert(buffer) }
        let database = config.collections.first?.database
        let end = database?.session.endWhenClosed { buffer.finish() }
        return Feed(buffer) { [weak self, weak database] in
            self?.state.withLockedValue { $0.feeds.remove(buffer) }
            if let end { database?.session.forgetFeed(end) }
        }
    }

    // MARK: Connections

    /// Serves a transport until either side ends it. Returns at once.
    ///
    /// - Parameters:
    ///   - transport: An open connection to the peer.
    ///   - peer: The peer's identity, for the access policy. Loveseat does not verify it.
    /// - Returns: A number for ``close(_:)``, which is also in ``MessageEndpointListenerChange/number``.
    @discardableResult
    public func accept(_ transport: any MessageTransport, as peer: PeerIdentity = PeerIdentity()) -> Int {
        let accepted = Accepted(transport)
        let number = state.withLockedValue { state in
            state.nextNumber += 1
            state.entries[state.nextNumber] = accepted
            return state.nextNumber
        }
        publish(.connecting, of: number)
        accepted.task.withLockedValue { task in
            task = Task.detached(executorPreference: BlockingThreads.shared) { [self] in
                let error = await run(accepted, number, peer)
                publish(accepted.status.withLockedValue { $0.stopped(error) }, of: number)
                state.withLockedValue { _ = $0.entries.removeValue(forKey: number) }
                config.collections.first?.database.session.release(accepted)
            }
        }
        return number
    }

    /// Call this after the access policy's answers change; see ``URLEndpointListener/accessChanged()``.
    public func accessChanged() async {
        // Without collections, or with those of two databases, no connection is served.
        guard let peers else { return }
        await finishing(on: BlockingThreads.shared) { await peers.accessChanged() }
    }

    /// Ends the connection with a number, and waits until it has ended. Does nothing if there is none.
    ///
    /// If the task is cancelled while it waits, the call returns and the connection goes on ending.
    public func close(_ number: Int) async {
        // The connection may have ended by itself.
        guard let entry = state.withLockedValue({ $0.entries[number] }) else { return }
        await finishing(on: BlockingThreads.shared) { await entry.endWithDatabase() }
    }

    /// Ends every connection, and waits until they have ended, or until the task is cancelled.
    public func closeAll() async {
        let entries = state.withLockedValue { Array($0.entries.values) }
        await finishing(on: BlockingThreads.shared) {
            await withDiscardingTaskGroup { group in
                for entry in entries { group.addTask { await entry.endWithDatabase() } }
            }
        }
    }

    private func run(_ accepted: Accepted, _ number: Int, _ peer: PeerIdentity) async -> LoveseatError? {
        do {
            guard let peers, let database = config.collections.first?.database else {
                throw LoveseatError(
                    .invalidParameter,
                    "a listener serves at least one collection, all of one database"
                )
            }
            try database.session.adopt(accepted)
            let channel = try await TransportChannel.make(
                accepted.transport,
                config.protocolType,
                isActive: false,
                heartbeat: ReplicatorConfiguration.defaultHeartbeat
            )
            let documents = PeerDocumentLog("\(database.name): connection \(number)")
            return await peers.serve(PeerConnection(channel: channel, negotiated: nil, peer: peer)) {
                [weak self] report in
                documents.note(report)
                // Documents and blobs have no feeds here, and the reason why the session ends comes with the end.
                guard case .activity(let isBusy, let progress) = report else { return }
                self?.publish(Replicator.Status(isBusy: isBusy, progress), of: number)
            }
        } catch {
            await accepted.transport.close()
            return LoveseatError(transport: error)
        }
    }

    private func publish(_ status: Replicator.Status, of number: Int) {
        state.withLockedValue { state in
            // A report may come after the end of its connection.
            guard let entry = state.entries[number] else { return }
            entry.status.withLockedValue { $0 = status }
            let change = MessageEndpointListenerChange(number: number, status: status)
            for feed in state.feeds.all { feed.push(change) }
        }
    }
}
