import Logging
import LoveseatBLIPReplication
package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// The passive side of any number of connections to a database.
package final class PassiveReplicator: Sendable {
    private let database: Database
    private let collections: [Collection]
    private let isReadOnly: Bool
    private let isWriteOnly: Bool
    private let usesDeltas: Bool
    private let compressionLevel: Int
    private let policy: AccessPolicy?
    private let incomingFilter: IncomingFilter?
    private let proven = ProvenBlobs()
    private let runtime: ReplicationRuntime
    private let server = ReplicationServer()

    package init(
        database: Database,
        collections: [Collection],
        isReadOnly: Bool,
        isWriteOnly: Bool = false,
        usesDeltas: Bool,
        compressionLevel: Int,
        policy: AccessPolicy? = nil,
        incomingFilter: IncomingFilter? = nil,
        runtime: ReplicationRuntime = .system
    ) {
        self.runtime = runtime
        self.compressionLevel = compressionLevel
        self.policy = policy
        self.incomingFilter = incomingFilter
        self.database = database
        self.collections = collections
        self.isReadOnly = isReadOnly
        self.isWriteOnly = isWriteOnly
        self.usesDeltas = usesDeltas
        if policy != nil { Self.keepDeletedBodies(in: database) }
    }

    /// Makes the database keep the bodies by which a policy decides about tombstones.
    private static func keepDeletedBodies(in database: Database) {
        do throws(LoveseatError) {
            let store = try database.store
            try DocumentStore.wrapping { try store.keepDeletedBodies() }
        } catch {
            // A database that cannot be written loses no bodies, and one that is closed serves no peers.
            if error.code == .notWriteable || error.code == .notOpen { return }
            LogDomain.listener.log(
                .warning,
                "\(database.name): the access policy sees no content of documents that are deleted from now on: \(error.message) (\(error.code))"
            )
        }
    }

    /// The number of connected peers, and of those that transfer something.
    package var counts: (connected: Int, active: Int) {
        server.counts
    }

    /// Serves one peer until its connection ends; returns why if that is an error. `began` is called with the replication before that begins.
    @discardableResult
    package func serve(
        _ connection: PeerConnection,
        report: @escaping @Sendable (ReplicationReport) -> Void = { _ in },
        began: @escaping @Sendable (any Replication) -> Void = { _ in }
    ) async -> LoveseatError? {
        let store: DocumentStore
        do throws(LoveseatError) { store = try database.store } catch {
            await connection.channel.close(code: 1001, reason: error.message)
            return error
        }
        var plan = PassivePlan(collections: collections.map(\.handle.name))
        plan.isReadOnly = isReadOnly
        plan.isWriteOnly = isWriteOnly
        plan.usesDeltas = usesDeltas
        plan.restrictsAccess = policy != nil
        plan.filtersIncoming = incomingFilter != nil
        return await server.serve(connection) { note in
            var hooks = ReplicationHooks()
            hooks.report = { [name = database.name] event in
                if case .blob(let blob) = event { blob.logFailure(in: .listener, of: name) }
                report(event)
                note(event)
            }
            let access = policy.map { PeerAccess(peer: connection.peer, policy: $0) }
            let filter = incomingFilter.map { filter in
                { (candidate: FilterCandidate) in
                    filter(connection.peer, Document(candidate), candidate.isDeleted ? .deleted : [])
                }
            }
            let driver = ReplicationDriver(
                session: ReplicationSession(
                    passive: plan,
                    replicas: DatabaseReplicas(
                        store: store,
                        peer: connection.peer,
                        access: access,
                        incomingFilter: filter,
                        proven: proven,
                        nowMilliseconds: runtime.unixTime
                    )
                ),
                store: store,
                observed: collections.map(\.handle),
                connection: connection,
                runtime: runtime,
                compressionLevel: compressionLevel,
                hooks: hooks
            )
            began(driver)
            return driver
        }
    }

    /// Called when the policy's answers have changed. Connected peers are informed of documents that they lose.
    package func accessChanged() async { await server.accessChanged() }

    /// Closes every connection, accepts no more, and returns when none is left.
    package func stop() async { await server.stop() }
}
