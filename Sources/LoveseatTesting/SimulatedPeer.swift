private import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatReplication
package import LoveseatStorage

/// One database of a simulation, which outlives its connections.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
package final class SimulatedPeer: @unchecked Sendable {
    package let index: Int
    package private(set) var store: DocumentStore
    private(set) var collections: [CollectionHandle]
    /// It speaks the protocol and nothing beyond it, and takes only what descends from its current revision.
    let isHub: Bool
    /// The mistake that is planted in the history.
    let fault: PlantedFault?
    var wall: SimulatedWallClock { system.wall }
    /// It once pulled into an empty collection, which leaves tombstones of documents it never had out (replication.md §6).
    var mayLackTombstones = false
    /// The data that has reached the disk, and the knowledge of this peer according to the oracle then; nil for a peer that never loses
    /// power.
    private(set) var durable: (store: StoreSnapshot, knowledge: EditOracle.Knowledge)?
    /// A state of the database: its version, and the last sequence of each collection.
    private struct SeenState {
        var version: UInt64?
        var sequences: [Int64: UInt64] = [:]
        /// How many transactions had to reach the disk.
        var durableWrites = 0
    }
    /// The state that ``drainChanges()`` has told of, and the one that ``newlyUnserved()`` has looked at.
    private var (noted, checked) = (SeenState(), SeenState())
    /// Called with the problem when a document cannot be read. A history goes on, and reports it, since a planted mistake may be the cause.
    var onDamage: (String) -> Void = { preconditionFailure($0) }
    /// The server for peers of another wire; gone when the process dies or its server restarts.
    package var service: (any Sendable)?
    /// Its databases if it is not a Loveseat; its store is then empty.
    package internal(set) var foreign: (any ForeignDatabases)?
    private let system: SimulatedSystem
    private var files: Files
    private struct Files {
        let blobFolder: String
        let options: DocumentStore.Options
        /// The database's identity, which a copied folder has too until it is opened.
        var privateUUID: [UInt8]

        func open() throws -> DocumentStore {
            try DocumentStore.inMemory(blobFolder: blobFolder, options: options)
        }
    }
    /// Serves peers that connect; nil while it does not listen.
    private(set) var server: ReplicationServer? = ReplicationServer()

    init(
        index: Int,
        collections names: [CollectionName],
        blobFolder: String,
        seed: UInt64,
        clock: VirtualClock,
        isHub: Bool = false,
        revisionDepth: Int = RevisionTree.maximumDepth,
        fault: PlantedFault? = nil,
        runsTasksInPlace: Bool = false
    ) throws {
        self.index = index
        self.isHub = isHub
        self.fault = fault
        var generator = SeededGenerator(seed: seed)
        let privateUUID = generator.bytes(16)
        var options = DocumentStore.Options()
        let uuid = generator.bytes(16)
        options.newUUID = { uuid }
        let system = SimulatedSystem(clock)
        self.system = system
        let wall = system.wall
        options.time = { wall.now / 1_000 }
        options.system.nanoseconds = {
            UInt64(clamping: wall.now).multipliedReportingOverflow(by: 1_000_000).partialValue
        }
        options.system.bootID = { "\(index)-\(system.starts)" }
        options.system.newSource = { system.newSource(of: seed) }
        options.ancestorBodiesKept = generator.pick([0, 1, 4])
        options.revisionDepth = revisionDepth
        options.runsTasksInPlace = runsTasksInPlace
        files = Files(blobFolder: blobFolder, options: options, privateUUID: privateUUID)
        store = try files.open()
        let store = store
        collections = try names.map { name in try store.write { try $0.createCollection(name) } }
    }

    /// Stops its server in good order, and listens again after so many milliseconds.
    func restartServer(after milliseconds: Int, _ clock: VirtualClock, _ runtime: ReplicationRuntime) {
        // Two restarts may overlap: it does not listen yet.
        guard let old = server else { return }
        (server, service) = (nil, nil)
        runtime.task { await old.stop() }
        clock.schedule(after: milliseconds) { [self] in server = ReplicationServer() }
    }

    /// Whether it accepts connections.
    package var listens: Bool { server != nil }

    /// Closes the database and opens it again: what still runs of the process that died gets errors from now on.
    ///
    /// `snapshot`: what is on the disk; nil for everything.
    ///
    /// `reserves`: what had reached the disk in any case, if the disk is the same.
    func reopen(_ snapshot: StoreSnapshot? = nil, keeping reserves: StoreReserves? = nil) throws {
        let content = try snapshot ?? store.snapshot()
        let opened = try files.open()
        try opened.restore(content, keeping: reserves)
        try store.close()
        (store, service, checked) = (opened, nil, SeenState())
        // The transactions of the process that died are none that reached the disk in the new one.
        noted.durableWrites = 0
        collections = collections.map { opened.collection($0.name) ?? $0 }
    }

    // MARK: Backups

    /// `isClosed`: whether the database is closed meanwhile.
    func backUp(_ oracle: EditOracle, isClosed: Bool = false) throws -> SimulatedBackup {
        var blobs: [BlobDigest: [UInt8]] = [:]
        for digest in try store.blobs.all() {
            let length = Int(store.blobs.length(digest) ?? 0)
            blobs[digest] = try store.blobs.read(digest, from: 0, count: length)
        }
        return SimulatedBackup(
            store: try store.snapshot(isClosed: isClosed),
            blobs: blobs,
            privateUUID: files.privateUUID,
            mayLackTombstones: mayLackTombstones,
            knowledge: oracle.knowledge(of: index)
        )
    }

    /// Goes on with the content of a backup, its own or another peer's. Its process must have died.
    ///
    /// `identity`: that of a folder that was copied; nil if the files of the database stayed.
    func restore(_ backup: SimulatedBackup, as identity: [UInt8]?, _ oracle: EditOracle) throws {
        try addBlobs(backup.blobs)
        mayLackTombstones = backup.mayLackTombstones
        noted = SeenState()
        try reopen(backup.store)
        files.privateUUID = backup.privateUUID
        if let identity, fault != .keepIdentityOfCopy {
            files.privateUUID = identity
            try store.renewIdentity()
        }
        oracle.forgot(index, allBut: backup.knowledge)
        if durable != nil { try sync(oracle) }
    }

    func addBlobs(_ blobs: [BlobDigest: [UInt8]]) throws {
        for (digest, content) in blobs where !store.blobs.contains(digest) {
            let writer = try store.blobs.writer()
            try writer.write(content)
            _ = try writer.finish(expected: digest)
        }
    }

    /// A mistake: removes a blob, whoever needs it.
    func removeBlob(_ digest: BlobDigest) {
        // It may be gone already.
        try? FileManager.default.removeItem(atPath: "\(files.blobFolder)/\(digest.hexadecimalText)")
    }

    /// Its wall clock is set.
    func setClock(_ offset: Int64) {
        if offset < wall.offset { wall.sequencesAtSetback = collections.map { store.lastSequence($0) } }
        wall.offset = offset
    }

    // MARK: Power

    /// Everything committed reaches the disk.
    func sync(_ oracle: EditOracle) throws {
        durable = (try store.snapshot(), oracle.knowledge(of: index))
    }

    /// As ``sync(_:)``, where the engine asked for it. A peer that never loses power needs none.
    func reachedDisk(_ oracle: EditOracle) {
        if durable == nil { return }
        do { try sync(oracle) } catch {
            preconditionFailure("a simulated database cannot be copied: \(error)")
        }
    }

    /// Every commit since the last ``sync(_:)`` is gone.
    func losePower(_ oracle: EditOracle) throws {
        // Its first sync failed, and was reported.
        guard let durable else { return }
        system.starts += 1
        if files.options.runsTasksInPlace {
            try reopen(durable.store, keeping: try store.reserves())
        } else {
            try store.restore(durable.store)
            collections = collections.map { store.collection($0.name) ?? $0 }
        }
        oracle.forgot(index, allBut: durable.knowledge)
    }

    /// Deletes a collection and makes it anew.
    ///
    /// `restarts`: a mistake: its sequences begin at 1 again.
    func remake(_ collection: Int, restarts: Bool) throws {
        let name = collections[collection].name
        collections[collection] = try store.write { transaction in
            try transaction.deleteCollection(name)
            if restarts { try transaction.setInfo("retired_sequence", "0") }
            return try transaction.createCollection(name)
        }
    }

    func checkpointID(_ collection: Int, with other: SimulatedPeer, _ plan: SimulatedConnection.Plan)
        -> String
    {
        var id = CheckpointID(
            privateUUID: files.privateUUID,
            collection: collections[collection].name,
            pulls: plan.pulls,
            pushes: plan.pushes,
            remote: plan.remoteName ?? "peer-\(other.index)"
        )
        id.documentIDs = plan.documentIDs ?? []
        id.channels = [plan.checkpointScope]
        id.filterVersion = plan.filterVersion
        return "cp-"
            + String(
                decoding: Hashing.sha1(id.hashInput).flatMap { Array(String($0, radix: 16).utf8) },
                as: UTF8.self
            )
    }

    /// Settles a conflict as an app's resolver would; returns why it could not.
    func resolve(
        _ notice: ConflictNotice,
        fails: Bool,
        by resolver: (ConflictCase) throws -> Resolution = DefaultConflictResolver.resolve
    ) -> LoveseatError? {
        guard !fails else { return LoveseatError(.conflict, "the resolver threw") }
        let resolution = ConflictResolution(
            store: store,
            collection: collections[notice.collection],
            documentID: notice.documentID,
            peer: notice.peer
        )
        do {
            try resolution.runNow(resolver)
            return nil
        } catch { return LoveseatError(storage: error) }
    }

    // MARK: State

    /// The documents that changed since the last call, by collection, and whether a transaction had to reach the disk.
    func drainChanges() throws -> (documents: [(collection: Int, id: String)], isDurable: Bool) {
        if let foreign {
            let changed = collections.enumerated().flatMap { index, collection in
                foreign.drainChanges(in: collection.name).map { (collection: index, id: $0) }
            }
            return (changed, false)
        }
        let version = store.changes.version
        var changed: [(collection: Int, id: String)] = []
        if noted.version != version {
            noted.version = version
            try store.read { transaction in
                for (index, collection) in collections.enumerated() {
                    let newest = transaction.newestSequence(collection)
                    let last = noted.sequences.updateValue(newest, forKey: collection.number) ?? 0
                    try transaction.changes(in: collection, since: last > newest ? 0 : last) { record in
                        changed.append((index, record.id))
                        return true
                    }
                }
            }
        }
        let writes = store.durableWriteCount
        defer { noted.durableWrites = writes }
        return (changed, writes != noted.durableWrites)
    }

    /// The leaves of a document as peers of CouchDB's wire see them, without the tombstones with which losing leaves are shown.
    func leaves(_ id: String, in collection: Int) throws -> [String] {
        if foreign != nil { return foreignLeaves(id, in: collection) }
        guard let record = try store.readRows({ try $0.record(id, in: collections[collection]) }) else {
            return []
        }
        return try DocumentBranches(of: record).leaves.filter { leaf in
            leaf.history.count < 2 || leaf.id != BodyDigest.closingTombstone(over: leaf.history[1])
        }.map { $0.id.text + ($0.isDeleted ? " deleted" : "") }
    }

    /// The contents of a document's revisions whose bodies are here.
    func contents(in collection: Int) throws -> [String: JSONText] {
        if foreign != nil { return foreignContents(in: collection) }
        var contents: [String: JSONText] = [:]
        try store.read { transaction in
            try transaction.changes(in: collections[collection], since: 0) { record in
                for node in try record.tree().nodes.values {
                    if let body = node.body { contents["\(record.id) \(node.id)"] = body.canonical }
                }
                return true
            }
        }
        return contents
    }

    /// A document's tree; nil if there is none.
    func tree(_ id: String, in collection: Int) -> RevisionTree? {
        if let foreign { return foreign.tree(id, in: collections[collection].name) }
        do { return try store.readRows { try $0.record(id, in: collections[collection])?.tree() } } catch {
            onDamage("peer \(index) cannot read \(collection)/\(id): \(error)")
            return nil
        }
    }

    /// The state of a document on which two peers must agree.
    struct DocumentState: Hashable, CustomStringConvertible {
        let revision: RevisionID
        let isDeleted: Bool
        let body: JSONText
        let hasConflict: Bool
        /// The digest of everything else that is known of it.
        let knowledge: String

        var description: String {
            "\(revision)\(isDeleted ? " deleted" : "")\(hasConflict ? " CONFLICT" : "") \(knowledge) \(body.description.prefix(80))"
        }
    }

    /// The leaves that peers of CouchDB's wire would be told of, and could not be given.
    func unserved() throws -> [String] {
        checked = SeenState()
        return try newlyUnserved()
    }

    /// ``unserved()``, of the documents that changed since the last call.
    func newlyUnserved() throws -> [String] {
        guard checked.version != store.changes.version else { return [] }
        checked.version = store.changes.version
        var unserved: [String] = []
        try store.read { transaction in
            for collection in collections {
                let newest = transaction.newestSequence(collection)
                let last = checked.sequences.updateValue(newest, forKey: collection.number) ?? 0
                // After a power loss or a backup, all is new.
                try transaction.changes(in: collection, since: last > newest ? 0 : last) { record in
                    let branches = try DocumentBranches(of: record)
                    for leaf in branches.leaves
                    where leaf.body == nil || branches.revision(leaf.id)?.body == nil
                        || leaf.history.first != leaf.id
                    {
                        unserved.append("peer \(index) lists \(record.id) \(leaf.id), and cannot serve it")
                    }
                    return true
                }
            }
        }
        return unserved
    }

    func state(of collection: Int) throws -> [String: DocumentState] {
        if foreign != nil { return foreignState(of: collection) }
        var state: [String: DocumentState] = [:]
        try store.read { transaction in
            try transaction.changes(in: collections[collection], since: 0) { record in
                state[record.id] = DocumentState(
                    revision: record.revision,
                    isDeleted: record.isDeleted,
                    body: record.body,
                    hasConflict: record.hasConflicts,
                    knowledge: record.comparableDigest
                )
                return true
            }
        }
        return state
    }
}
