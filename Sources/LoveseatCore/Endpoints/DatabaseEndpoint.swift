package import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Another database of this process (replication.md §21a). It serves the collections that it has.
public struct DatabaseEndpoint: PeerEndpoint {
    /// The other database.
    public let database: Database

    /// Makes an endpoint of a database.
    public init(database: Database) { self.database = database }

    package var remoteName: String { "file://\(database.path ?? "")" }

    package func validate() throws(LoveseatError) { _ = try database.opened }

    package func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
        let handles = try database.store.collections
        let collections = handles.map { Collection(database: database, handle: $0) }
        let (near, far) = LoopbackChannel.pair()
        let peers = PassivePeers(
            database: database,
            collections: collections,
            isReadOnly: false,
            usesDeltas: false,
            compressionLevel: 0
        )
        let service = LocalService(peers: peers, database: database)
        try database.adopt(service)
        service.run(PeerConnection(channel: far, negotiated: .mobile3))
        return PeerConnection(channel: near, negotiated: .mobile3)
    }
}

/// The passive side of one local replication, which ends with its database.
private final class LocalService: DatabaseService {
    private let peers: PassivePeers
    private let database: Database

    init(peers: PassivePeers, database: Database) {
        self.peers = peers
        self.database = database
    }

    func run(_ connection: PeerConnection) {
        Task.detached { [self] in
            await peers.serve(connection)
            database.release(self)
        }
    }

    func endWithDatabase() async { await peers.stop() }
}
