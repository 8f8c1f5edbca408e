package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// A database as one connection uses it: makes a ``CollectionReplica`` of each collection, and holds the state that these share.
package final class DatabaseReplicas: ReplicaSource {
    let store: DocumentStore
    private(set) var collections: [CollectionHandle]
    let checkpointIDs: [String]
    /// The number under which marks for the remote are kept; nil on the passive side, which keeps none.
    let remote: Int?
    package let rules: [CollectionRules]
    /// How often the remote's user has changed.
    let userChanges: Int
    /// The access of the peer; nil if it is not restricted.
    let access: PeerAccess?
    /// Returns why the app refuses a revision that the peer pushes; nil if the app filters none.
    let incomingFilter: ((FilterCandidate) -> LoveseatError?)?
    var writers: [BlobHandle: (digest: BlobDigest, writer: BlobWriter)] = [:]
    var shared: SharedBlobs
    var recent = RecentRecords()
    /// The collections with conflicts when the connection began, by their numbers; nil before that was asked.
    private var inConflict: Set<Int64>?
    package let nowMilliseconds: () -> Int64

    /// Creates the replicas of an active side.
    ///
    /// `rules`: the app's settings for each collection.
    package init(
        store: DocumentStore,
        collections: [CollectionHandle],
        checkpointIDs: [String],
        remote: Int,
        rules: [CollectionRules] = [],
        userChanges: Int = 0,
        nowMilliseconds: @escaping () -> Int64
    ) {
        self.rules = rules
        self.userChanges = userChanges
        (access, incomingFilter) = (nil, nil)
        shared = SharedBlobs(ProvenBlobs(), peer: "")
        self.store = store
        self.collections = collections
        self.checkpointIDs = checkpointIDs
        self.remote = remote
        self.nowMilliseconds = nowMilliseconds
        store.noteConnection(isOpen: true)
    }

    /// Creates the replicas of a passive side, whose peer says which collections to serve.
    ///
    /// `proven`: the blobs that this peer and others have sent over other connections.
    package init(
        store: DocumentStore,
        peer: PeerIdentity = PeerIdentity(),
        access: PeerAccess? = nil,
        incomingFilter: ((FilterCandidate) -> LoveseatError?)? = nil,
        proven: ProvenBlobs = ProvenBlobs(),
        nowMilliseconds: @escaping () -> Int64
    ) {
        self.store = store
        self.access = access
        self.incomingFilter = incomingFilter
        shared = SharedBlobs(proven, peer: peer.recordName)
        self.nowMilliseconds = nowMilliseconds
        (collections, checkpointIDs, remote, rules, userChanges) = ([], [], nil, [], 0)
        store.noteConnection(isOpen: true)
    }

    deinit { store.noteConnection(isOpen: false) }

    package func bind(_ names: [CollectionName], checkpoints ids: [String]) throws(LoveseatError)
        -> [BoundCollection]
    {
        let handles = names.map { name in
            access?.ruling(in: name).mayReadCollection ?? true ? store.collection(name) : nil
        }
        collections = handles.compactMap { $0 }
        return try asking {
            try zip(handles, ids).map { handle, id in
                guard handle != nil else { return BoundCollection(exists: false) }
                let checkpoint = try store.readRows { try $0.peerCheckpoint(id) }
                return BoundCollection(
                    exists: true,
                    revision: checkpoint?.revision ?? 0,
                    checkpoint: checkpoint?.body
                )
            }
        }
    }

    package func makeReplicas() -> [any Replica] { collections.indices.map { replica(of: $0) } }

    /// Makes the replica of a collection, without state from earlier ones.
    package func replica(of index: Int) -> CollectionReplica { CollectionReplica(index, of: self) }

    /// Calls a closure, and converts errors of the database into those of a session.
    func asking<Answer>(_ body: () throws -> Answer) throws(LoveseatError) -> Answer {
        do { return try body() } catch {
            if let gone = collections.first(where: { !store.contains($0) }) {
                throw LoveseatError(.notOpen, "collection \(gone.name) was deleted")
            }
            throw LoveseatError(storage: error)
        }
    }

    /// Whether a collection may have documents in conflict. Of many collections most have none, which one look at all of them shows.
    func mayHaveConflicts(_ collection: CollectionHandle) throws -> Bool {
        if collections.count <= 1 { return true }
        let numbers =
            try inConflict ?? store.readManyRows { try $0.numbers(of: collections, with: .conflict) }
        inConflict = numbers
        return numbers.contains(collection.number)
    }
}
