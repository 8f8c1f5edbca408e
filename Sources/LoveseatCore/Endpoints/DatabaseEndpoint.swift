import LoveseatBLIPReplication
package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// Another database in this process, to replicate with.
///
/// The other database serves all of its collections, for reading and writing, and nothing has to be started for it. Collections have
/// to exist on both sides under the same names.
public struct DatabaseEndpoint: BLIPEndpoint {
    /// The database to replicate with.
    public let database: Database

    /// Creates an endpoint for a database, which has to stay open while it is replicated with.
    public init(database: Database) { self.database = database }

    package var remoteName: String { "file://\(database.path ?? "")" }

    package func validate() throws(LoveseatError) { _ = try database.opened }

    /// Neither deltas nor compression save anything within a process.
    package func replicate(with request: ReplicationRequest) async throws -> any Replication {
        var request = request
        (request.allowsDeltas, request.compressionLevel) = (false, 0)
        return try await replicate(over: connect(request.options), request)
    }

    package func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
        let handles = try database.store.collections
        let collections = handles.map { Collection(database: database, handle: $0) }
        let (near, far) = LoopbackChannel.pair()
        let peers = PassiveReplicator(
            database: database,
            collections: collections,
            isReadOnly: false,
            usesDeltas: false,
            compressionLevel: 0
        )
        let service = LocalService(peers: peers, database: database)
        try database.session.adopt(service)
        service.run(PeerConnection(channel: far, negotiated: .mobile3))
        return PeerConnection(channel: near, negotiated: .mobile3)
    }
}

/// The passive side of one local replication, which ends with its database.
private final class LocalService: DatabaseService {
    private let peers: PassiveReplicator
    private let database: Database

    init(peers: PassiveReplicator, database: Database) {
        self.peers = peers
        self.database = database
    }

    func run(_ connection: PeerConnection) {
        Task.detached(executorPreference: BlockingThreads.shared) { [self] in
            await peers.serve(connection)
            database.session.release(self)
        }
    }

    func endWithDatabase() async { await peers.stop() }
}
