import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The result of applying a configuration to a database: the names and numbers under which the state of the peer is stored.
struct ReplicationSetup {
    let store: DocumentStore
    let handles: [CollectionHandle]
    let rules: [CollectionRules]
    let checkpointIDs: [String]
    /// The number under which marks for the peer are kept.
    let remote: Int
    /// The record of the peer from earlier runs.
    let known: KnownRemote?
    /// The user name with which the peer is used now.
    let user: RemoteUser
    /// The number of times that the user has changed, this time included. Another user may not have the documents that this one pulled, so
    /// checkpoints of other users count for pushes only.
    let userChanges: Int
    let config: ReplicatorConfiguration
    /// A number that does not belong to any peer.
    private static let noRemote = -1

    /// `registersPeer`: whether the peer gets a number if it has none yet; that writes.
    ///
    /// - Throws: `notOpen` if the database is closed or a collection deleted; an error of the disk.
    init(_ config: ReplicatorConfiguration, registersPeer: Bool = true) throws(LoveseatError) {
        let (store, endpoint, remoteName) = try Self.peer(of: config)
        for entry in config.collections { _ = try entry.collection.openStore() }
        let (known, uuid) = try DocumentStore.wrapping {
            try store.readSettings { (try $0.knownRemote(remoteName), try $0.info("private_uuid") ?? "") }
        }
        let remote = try DocumentStore.wrapping {
            try known?.number
                ?? (registersPeer
                    ? store.write(call: "replication") { try $0.checkpointTables.remoteNumber(remoteName) }
                    : Self.noRemote)
        }
        self.config = config
        self.store = store
        self.remote = remote
        self.known = known
        let user = (config.authenticator as? any PeerAuthenticator)?.user ?? .nobody
        self.user = user
        let isChange = known?.user.map { !$0.isExactly(user.text) } ?? false
        userChanges = (known?.userChanges ?? 0) + (isChange ? 1 : 0)
        handles = config.collections.map(\.collection.handle)
        rules = config.collections.map { entry in
            var rules = entry.rules
            rules.purgesUnpushedEdits = config.purgesUnpushedEdits
            return rules
        }
        checkpointIDs = config.collections.map { entry in
            var id = CheckpointID(
                privateUUID: Array(uuid.utf8),
                collection: entry.collection.handle.name,
                pulls: config.replicatorType != .push,
                pushes: config.replicatorType != .pull,
                remote: remoteName
            )
            id.channels = entry.channels ?? []
            id.documentIDs = entry.documentIDs ?? []
            id.filterVersion = [entry.filterVersion, endpoint.selection].compactMap { $0 }.joinedUnlessEmpty
            let isDefault = entry.collection.handle.name == .default
            let hash = isDefault ? Hashing.sha1(id.hashInput) : Hashing.sha256(id.hashInput)
            return "cp-" + Base64.encode(hash)
        }
    }

    /// The database, the endpoint, and the name under which the peer is recorded.
    private static func peer(of config: ReplicatorConfiguration) throws(LoveseatError) -> (
        store: DocumentStore, endpoint: any PeerEndpoint, name: String
    ) {
        guard let database = config.collections.first?.collection.database,
            let endpoint = config.target as? any PeerEndpoint
        else {
            throw LoveseatError(
                .invalidParameter,
                "the configuration has no collections, or an endpoint that cannot be used"
            )
        }
        let store = try database.store
        return (store, endpoint, try recordedName(of: endpoint.remoteName, store))
    }

    /// The notes about the peer whose keys begin with a prefix, by the rest of the key. `prefix`: returns the prefix for the peer's number.
    static func notes(_ config: ReplicatorConfiguration, prefix: (_ remote: Int) -> String)
        throws(LoveseatError) -> DocumentMap<JSONText>
    {
        let (store, _, name) = try peer(of: config)
        return try DocumentStore.wrapping {
            try store.readSettings { view in
                // A peer that was never connected has no number.
                guard let known = try view.knownRemote(name) else { return [:] }
                return try view.localCheckpoints(prefix: prefix(known.number))
            }
        }
    }

    private static func recordedName(of name: String, _ store: DocumentStore) throws(LoveseatError) -> String
    {
        try DocumentStore.wrapping { try store.readSettings { try $0.info(nameKey + name) } ?? name }
    }

    /// Records the name under which a peer is known from now on.
    static func record(_ name: String, of remoteName: String, _ store: DocumentStore) throws(LoveseatError) {
        if try recordedName(of: remoteName, store).isExactly(name) { return }
        try DocumentStore.wrapping {
            try store.write(call: "replication") { try $0.setInfo(nameKey + remoteName, name) }
        }
    }

    private static let nameKey = "peer_name/"

    var plan: ActivePlan {
        let bindings = config.collections.indices.map { index in
            let entry = config.collections[index]
            var binding = ActivePlan.Binding(name: handles[index].name, checkpointID: checkpointIDs[index])
            binding.isEmpty = store.lastSequence(handles[index]) == 0
            binding.channels = entry.channels ?? []
            if let ids = entry.documentIDs, !ids.isEmpty { binding.documentIDs = ids }
            binding.filtersPull = entry.pullFilter != nil
            return binding
        }
        var plan = ActivePlan(
            collections: bindings,
            pushes: config.replicatorType != .pull,
            pulls: config.replicatorType != .push,
            isContinuous: config.continuous
        )
        plan.autoPurges = config.enableAutoPurge
        return plan
    }

    var replicas: DatabaseReplicas {
        DatabaseReplicas(
            store: store,
            collections: handles,
            checkpointIDs: checkpointIDs,
            remote: remote,
            rules: rules,
            userChanges: userChanges,
            nowMilliseconds: { ExpirationTimer.now }
        )
    }
}

extension [String] {
    fileprivate var joinedUnlessEmpty: String? { isEmpty ? nil : joined(separator: "\n") }
}
