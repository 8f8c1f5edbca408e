import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// Joins storage to replication: one connection's view of a ``DocumentStore``.
package final class ConnectionStore: RevisionStore {
    private static let pushedNamesKept = 1_000_000

    let store: DocumentStore
    var collections: [CollectionHandle]
    private let checkpointIDs: [String]
    /// The number under which marks for the remote are kept; nil on the passive side, which keeps none.
    let remote: Int?
    package let rules: [CollectionRules]
    /// How often the remote's user has changed.
    private let userChanges: Int
    /// The access of the peer; nil if it is not restricted.
    let access: PeerAccess?
    /// Returns why the app refuses a revision that the peer pushes; nil if the app filters none.
    let incomingFilter: ((FilterCandidate) -> LoveseatError?)?
    var writers: [BlobHandle: (digest: BlobDigest, writer: BlobWriter)] = [:]
    var shared: SharedBlobs
    var read = RecentRecords()
    /// Which marks count, by collection.
    var ledgers: [MarkLedger]
    /// The documents that this session pushed, by collection: lists of the peer may be older than that.
    private(set) var pushedNow: [Int: NameSet] = [:]
    /// Documents of which a hub now has an older revision than before, by collection. It may keep the newer one on a deleted branch, and
    /// accept it again without making it current.
    var fallenBack: [Int: NameSet] = [:]
    /// Revisions that the peer announced in this session before it was known to have them, by collection.
    private var echoed: [Int: NameSet] = [:]
    /// The number of times that the peer had taken documents away before a checkpoint: before the last one that was saved, and before the
    /// one that is on its way to the peer.
    private struct Covered {
        var stored: Int
        var begun: Int
    }
    private var takingsCovered: [Int: Covered] = [:]
    /// The collections with conflicts when the connection began, by their numbers; nil before that was asked.
    var inConflict: Set<Int64>?
    /// The documents that could not be stored when they were pulled, by collection.
    var failures: [Int: DocumentSet] = [:]
    package let nowMilliseconds: () -> Int64

    /// Creates the store of an active side.
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
        ledgers = collections.map { _ in MarkLedger() }
        self.checkpointIDs = checkpointIDs
        self.remote = remote
        self.nowMilliseconds = nowMilliseconds
        store.noteConnection(isOpen: true)
    }

    deinit { store.noteConnection(isOpen: false) }

    package var connections: Int { max(1, store.connectionCount) }

    /// Creates the store of a passive side, whose peer says which collections to serve.
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
        (collections, ledgers, checkpointIDs, remote, rules, userChanges) = ([], [], [], nil, [], 0)
        store.noteConnection(isOpen: true)
    }

    /// Calls a closure, and converts errors of the database into those of a session.
    func asking<Answer>(_ body: () throws -> Answer) throws(LoveseatError) -> Answer {
        do { return try body() } catch {
            if let gone = collections.first(where: { !store.contains($0) }) {
                throw LoveseatError(.notOpen, "collection \(gone.name) was deleted")
            }
            throw LoveseatError(storage: error)
        }
    }

    // MARK: Checkpoints and marks

    package func checkpoint(of index: Int) throws(LoveseatError) -> StoredCheckpoint {
        try asking {
            var stored = StoredCheckpoint()
            guard let remote else { return stored }
            let id = checkpointIDs[index]
            return try store.readRows { view in
                let marks = try view.marks(of: remote, in: collections[index])
                let found = try view.localCheckpointAndUser(id)
                if marks != nil || found != nil { ledgers[index].foundOlder() }
                if let marks {
                    stored.marks =
                        marks.checkpoint == id
                        ? .ours(isCovered: marks.isCovered) : .others(isCovered: marks.isCovered)
                }
                stored.body =
                    found?.userChanges == userChanges
                    ? found?.body : found.map { Self.withoutPulls($0.body) }
                let takings = try view.localCheckpoint(takingsKey(remote, index)).map(Self.number)
                // Version 0.2.0 recorded for each checkpoint only that there were any.
                let note = try view.localCheckpoint(coveredKey(index))
                let covered = note.map(Self.number) ?? 0
                stored.wasTakenFrom = takings != nil || note != nil
                stored.wasTakenFromSince = takings ?? 0 > covered
                takingsCovered[index] = Covered(stored: covered, begun: covered)
                return stored
            }
        }
    }

    /// The key of the number of times that a peer took documents of a collection away. Only one replication is told of that, and the state
    /// of the others becomes outdated, too. The collection is identified by its name, as for the peer and for checkpoints, so the count
    /// continues if it is created anew.
    private func takingsKey(_ remote: Int, _ index: Int) -> String {
        "taken/\(remote)/\(collections[index].name.fullName)"
    }

    /// The key of the number of those that came before a checkpoint was sent to the peer.
    private func coveredKey(_ index: Int) -> String { "taken/\(checkpointIDs[index])" }

    private static func number(_ note: JSONText) -> Int { JSONElement(note)["number"]?.int ?? 0 }

    private static func note(_ number: Int) -> JSONText {
        JSONText(canonical: ["number": JSONValue(number)])
    }

    /// Records, with the purge, that the peer takes documents away. `purges`: whether any of them was here.
    func noteTaking(purges: Bool, in index: Int, _ transaction: StoreWriteTransaction) throws {
        // A passive side has no checkpoint that would have to cover it.
        guard let remote else { return }
        let key = takingsKey(remote, index)
        let before = try transaction.localCheckpoint(key).map(Self.number)
        if !purges, before != nil { return }
        try transaction.saveLocalCheckpoint(key, Self.note((before ?? 0) + (purges ? 1 : 0)))
    }

    /// A checkpoint without its pull: this user may not have the documents that another user pulled.
    private static func withoutPulls(_ checkpoint: JSONText) -> JSONText {
        var value = JSONElement(checkpoint).value
        value["remote"] = nil
        return JSONText(canonical: value)
    }

    package func saveCheckpoint(_ body: JSONText, of index: Int, coversMarks: Bool) throws(LoveseatError) {
        guard let remote else { return impossible("a passive peer saves no checkpoint of its own") }
        let id = checkpointIDs[index]
        try asking {
            try store.write(call: "replication") { transaction in
                try transaction.saveLocalCheckpoint(id, body, userChanges: userChanges)
                if let covered = takingsCovered[index], covered.begun > covered.stored {
                    try transaction.saveLocalCheckpoint(coveredKey(index), Self.note(covered.begun))
                    takingsCovered[index]?.stored = covered.begun
                }
                let completed = Checkpoint(JSONElement(body)).completed.completeUpTo
                guard coversMarks, ledgers[index].hasOfferedDoubted(upTo: completed) else {
                    return try transaction.doubtMarks(of: remote, in: collections[index])
                }
                if ledgers[index].isCovered {
                    try transaction.coverMarks(of: remote, in: collections[index], by: id)
                }
            }
        }
    }

    package func retractCheckpoint(_ body: JSONText, of index: Int) throws(LoveseatError) {
        try asking {
            try store.write(call: "replication", durably: true) { transaction in
                try transaction.saveLocalCheckpoint(checkpointIDs[index], body, userChanges: userChanges)
                if let remote { try transaction.doubtMarks(of: remote, in: collections[index]) }
            }
        }
    }

    package func beginCheckpoint(of index: Int) {
        ledgers[index].checkpointBegan()
        guard let remote else { return impossible("a passive peer begins no checkpoint of its own") }
        // If the number cannot be read, the checkpoint covers fewer removals, and more is compared again.
        let takings = try? store.readRows {
            try $0.localCheckpoint(takingsKey(remote, index)).map(Self.number)
        }
        if let takings = takings ?? nil { takingsCovered[index]?.begun = takings }
    }

    package func believeMarks(_ marks: MarkTrust, in index: Int) {
        ledgers[index].believe(marks, at: store.lastSequence(collections[index]))
    }

    package func markSynced(_ revisions: [SyncedRevision], in index: Int) throws(LoveseatError) {
        try asking { try mark(revisions.map { RevisionMark($0) }, in: index) }
        notePushed(revisions, in: index)
    }

    package func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint? {
        try asking {
            try store.readRows { try $0.peerCheckpoint(id) }.map {
                PeerCheckpoint(revision: $0.revision, body: $0.body)
            }
        }
    }

    package func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int)
        throws(LoveseatError) -> Int?
    {
        try asking {
            try store.write(call: "replication") { transaction in
                // A checkpoint of a collection that was deleted meanwhile is not valid for the next one of its name.
                if let gone = collections.first(where: { !transaction.contains($0) }) {
                    throw LoveseatError(.notOpen, "collection \(gone.name) was deleted")
                }
                return try transaction.savePeerCheckpoint(id, replacing: revision, body)
            }
        }
    }

    /// Removes marks in doubt from documents that this session does not offer, since they wait for a resolver. Their result is offered as
    /// if the remote had nothing. Otherwise the session's checkpoint would cover marks that were not verified.
    func forgetMarks(_ ids: [String], in index: Int) throws {
        // A passive side keeps no marks, and of an active one they are rarely in doubt.
        guard let remote, !ids.isEmpty else { return }
        try store.write(call: "replication") { transaction in
            for id in ids { try transaction.forgetMark(id, remote: remote, in: collections[index]) }
        }
    }

    /// Writes marks for the remote, and that no checkpoint covers them yet.
    func marking<T>(_ index: Int, _ body: (StoreWriteTransaction) throws -> T) throws -> T {
        let result = try store.write(call: "replication") { transaction in
            if let remote {
                try transaction.noteMarks(of: remote, in: collections[index], by: checkpointIDs[index])
            }
            return try body(transaction)
        }
        ledgers[index].marksMade()
        return result
    }

    private func notePushed(_ revisions: [SyncedRevision], in index: Int) {
        if remote == nil { return }
        for revision in revisions
        where !(echoed[index]?.contains(Self.name(revision.documentID, revision.revision)) ?? false) {
            pushedNow[index, default: NameSet(bytes: Self.pushedNamesKept)].insert(revision.documentID)
        }
    }

    /// Remembers that the peer announced the revision that is current here: its later announcements are newer.
    ///
    /// `isMarked`: whether the peer was known to have it. If not, its answer to the push may be on its way.
    func noteEcho(of change: AnnouncedChange, isMarked: Bool, in index: Int) {
        pushedNow[index]?.remove(change.documentID)
        if isMarked { return }
        let echo = Self.name(change.documentID, change.revision)
        echoed[index, default: NameSet(bytes: Self.pushedNamesKept)].insert(echo)
    }

    /// Remembers that the peer sent a newer revision than the one that this session pushed.
    func noteNews(of documentID: String, in index: Int) {
        // This is called for every document: changing a dictionary's value allocates, reading does not.
        if pushedNow[index]?.contains(documentID) == true { pushedNow[index]?.remove(documentID) }
    }

    private static func name(_ documentID: String, _ revision: RevisionID) -> String {
        "\(revision.text) \(documentID)"
    }

    // MARK: Collections

    package func bind(_ names: [CollectionName], checkpoints ids: [String]) throws(LoveseatError)
        -> [BoundCollection]
    {
        let handles = names.map { name in
            access?.ruling(in: name).mayReadCollection ?? true ? store.collection(name) : nil
        }
        collections = handles.compactMap { $0 }
        ledgers = collections.map { _ in MarkLedger() }
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

    package func lastSequence(in index: Int) -> UInt64 { store.lastSequence(collections[index]) }
}
