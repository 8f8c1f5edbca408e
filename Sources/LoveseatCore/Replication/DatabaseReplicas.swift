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
    private var earlier = ReadAhead<EarlierSessions>()
    private var unpulled = ReadAhead<[String]>()
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
            try store.readSettings { view in
                try zip(handles, ids).map { handle, id in
                    guard handle != nil else { return BoundCollection(exists: false) }
                    let checkpoint = try view.peerCheckpoint(id)
                    return BoundCollection(
                        exists: true,
                        revision: checkpoint?.revision ?? 0,
                        checkpoint: checkpoint?.body
                    )
                }
            }
        }
    }

    package func beginVersions() throws(LoveseatError) -> SourceID {
        try asking { try store.beginVersions() }
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

    /// The state that earlier sessions have left about the collection at a position.
    func earlierSessions(_ index: Int) throws -> EarlierSessions {
        guard let remote else { return EarlierSessions() }
        return try earlier.answer(index, of: collections.count) { indices in
            try store.readSettings { view in
                try EarlierSessions.read(
                    view,
                    indices.map { collections[$0] },
                    checkpointIDs: indices.map { checkpointIDs[$0] },
                    remote: remote
                )
            }
        } ?? EarlierSessions()
    }

    /// The documents of a collection that could not be stored when they were pulled, in order.
    func failures(_ index: Int) throws -> [String] {
        guard let remote else { return [] }
        return try unpulled.answer(index, of: collections.count) { indices in
            let prefix =
                indices.count == 1
                ? DocumentFailure.prefix(.pull, in: collections[indices[0]], remote: remote)
                : DocumentFailure.prefix(.pull, remote: remote)
            let keys = try store.readSettings { try $0.localCheckpoints(prefix: prefix) }.keys.map(\.text)
            if indices.count == 1 { return [keys.sorted()] }
            let ids = Dictionary(grouping: keys.compactMap(DocumentFailure.place)) { $0.collection }
            return indices.map { (ids[collections[$0].number] ?? []).map(\.documentID).sorted() }
        } ?? []
    }
}
