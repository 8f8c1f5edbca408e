import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// Joins storage to replication: one connection's view of a ``DocumentStore``.
package final class StoreReplica: ReplicaStore {
    /// How many bytes of names of documents that were marked in a session are kept. More are offered once in vain.
    private static let namesKept = 8_000_000
    private static let pushedNamesKept = 1_000_000

    let store: DocumentStore
    var collections: [CollectionHandle]
    private let checkpointIDs: [String]
    /// Under which number marks of what the remote has are kept; nil on the passive side, which keeps none.
    let remote: Int?
    let rules: [CollectionRules]
    /// How often the remote's user has changed.
    private let userChanges: Int
    /// What the peer may do; nil if nobody restricts it.
    let access: PeerAccess?
    private var writers: [BlobHandle: (digest: BlobDigest, writer: BlobWriter)] = [:]
    var shared: SharedBlobs
    var read = RecentRecords()
    /// Which marks count, by collection, and the last sequence of when that was said.
    private var trust: [Int: (marks: MarkTrust, from: UInt64)] = [:]
    /// The collections with marks from before this session, which may be in doubt.
    private var hasOlderMarks: Set<Int> = []
    /// What this session marked while older marks are in doubt, by collection.
    private var markedNow: [Int: NameSet] = [:]
    /// What this session pushed, by collection: lists of the peer may be older than that.
    private(set) var pushedNow: [Int: NameSet] = [:]
    /// How many transactions made marks, by collection, and how many had when the last checkpoint went to the peer.
    private var marksMade: [Int: Int] = [:]
    private var marksCovered: [Int: Int] = [:]
    /// The documents that could not be stored when they were pulled, by collection.
    var failures: [Int: Set<String>] = [:]
    let nowMilliseconds: () -> Int64

    /// For the active side.
    ///
    /// `rules`: what the app wants of each collection.
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
        access = nil
        shared = SharedBlobs(ProvenBlobs(), peer: "")
        self.store = store
        self.collections = collections
        self.checkpointIDs = checkpointIDs
        self.remote = remote
        self.nowMilliseconds = nowMilliseconds
    }

    /// For the passive side, which learns from its peer which collections to serve.
    ///
    /// `proven`: what this peer and others have sent over other connections.
    package init(
        store: DocumentStore,
        peer: PeerIdentity = PeerIdentity(),
        access: PeerAccess? = nil,
        proven: ProvenBlobs = ProvenBlobs(),
        nowMilliseconds: @escaping () -> Int64
    ) {
        self.store = store
        self.access = access
        shared = SharedBlobs(proven, peer: peer.recordName)
        self.nowMilliseconds = nowMilliseconds
        (collections, checkpointIDs, remote, rules, userChanges) = ([], [], nil, [], 0)
    }

    package func perform(_ request: StoreRequest) -> StoreAnswer {
        do { return try answer(request) } catch {
            if let gone = collections.first(where: { !store.contains($0) }) {
                return .failed(LoveseatError(.notOpen, "collection \(gone.name) was deleted"))
            }
            return .failed(LoveseatError(storage: error))
        }
    }

    private func answer(_ request: StoreRequest) throws -> StoreAnswer {
        switch request {
        case .loadCheckpoint(let index):
            return try loadCheckpoint(index)
        case .saveCheckpoint(let index, let body, let coversMarks):
            try saveCheckpoint(index, body, coversMarks: coversMarks)
            return .done
        case .beginCheckpoint(let index):
            marksCovered[index] = marksMade[index, default: 0]
            return .done
        case .believeMarks(let index, let trust):
            self.trust[index] = (trust, store.lastSequence(collections[index]))
            return .done
        case .getPeerCheckpoint(let id):
            let found = try store.readRows { try $0.peerCheckpoint(id) }
            return .peerCheckpoint(revision: found?.revision ?? 0, found?.body)
        case .savePeerCheckpoint(let id, let revision, let body):
            return .peerCheckpointSaved(
                revision: try store.write(call: "replication") {
                    try $0.savePeerCheckpoint(id, replacing: revision, body)
                }
            )
        case .bindCollections(let names, let ids): return try bind(names, ids)
        case .readChanges(let index, let query): return try readChanges(index, query)
        case .judgeChanges(let index, let changes, let peer):
            return try judge(changes, from: peer, in: index)
        case .judgeProposals(let index, let proposals, let peer):
            return try judge(proposals, from: peer, in: collections[index])
        case .meet(let index, let change, let state):
            return .met(try meet(change, state, in: index))
        case .adoptCopy(let index, let id, let copy, let parent):
            guard let remote else { return .done }
            try marking(index) {
                try $0.adoptCopy(copy, of: id, parent: parent, remote: remote, in: collections[index])
            }
            return .done
        case .hear(let index, let id, let knowledge, let current, let takesContent):
            let told = admitted(knowledge, of: id, in: index, takesContent: takesContent)
            return .heard(try hear(told, current: current, of: id, in: index, pulls: takesContent))
        case .readRevisions(let index, let requests):
            let found = try store.readManyRows { view in
                try requests.map { try read($0, in: index, view) }
            }
            let sendable = try copyingForHub(found, requests, in: collections[index])
            let told = withholding(sendable, requests, in: index)
            let granted = try granting(told, requests, in: collections[index])
            share(granted, in: index)
            return .revisions(granted)
        case .readRevocations(let index): return try readRevocations(collections[index])
        case .forgetGrants(let index, let ids):
            try forgetGrants(ids, in: collections[index])
            return .done
        case .listFailures(let index): return .failures(try listFailures(index))
        case .noteFailure(let index, let failed, let error):
            try noteFailure(failed, error, in: index)
            return .done
        case .insert(let index, let revisions): return try insert(revisions, in: index)
        case .markSynced(let index, let revisions):
            try mark(revisions.map { ($0, nil) }, in: index)
            notePushed(revisions, in: index)
            return .done
        case .listConflicts(let index, let sequence):
            let found = try store.read { try $0.conflictedIDs(in: collections[index], after: sequence) }
            return .conflicts(found.ids, next: found.next)
        case .lastSequence(let index): return .lastSequence(store.lastSequence(collections[index]))
        case .admit(let index, let candidates):
            return .admitted(candidates.map { admits($0, isAccessRemoved: false, in: index) })
        case .removeAccess(let index, let ids): return try removeAccess(ids, in: index)
        case .expandDelta(let index, let id, let base, let delta):
            guard let body = try readableBody(of: base, id, in: collections[index]) else {
                return .expanded(.unknownBase)
            }
            return .expanded(RevisionMessage.expand(delta, base: body))
        case .holdBlobs(let index, let id, let digests):
            for digest in digests { store.blobs.pin(digest) }
            return .missingBlobs(try missing(digests, of: id, in: index))
        case .releaseBlobs(let digests):
            for digest in digests { store.blobs.unpin(digest) }
            return .done
        case .beginBlob(let handle, let digest, let resumes):
            return .blobBegun(try begin(handle, digest, resumes: resumes))
        case .writeBlob(let handle, let bytes):
            try writers[handle]?.writer.write(bytes)
            return .done
        case .finishBlob(let handle, let expected):
            guard let (_, writer) = writers.removeValue(forKey: handle) else {
                throw LoveseatError(.ioError, "the blob was given up")
            }
            _ = try writer.finish(expected: expected)
            shared.receive(expected)
            return .done
        case .cancelBlob(let handle):
            writers.removeValue(forKey: handle)?.writer.cancel()
            return .done
        case .suspendBlob(let handle):
            writers.removeValue(forKey: handle)?.writer.suspend()
            return .done
        case .blobLength(let index, let id, let digest):
            return .blobLength(try mayHave(digest, of: id, in: index) ? store.blobs.length(digest) : nil)
        case .readBlob(let digest, let offset, let count):
            return .blobBytes(try store.blobs.read(digest, from: offset, count: count))
        case .proveBlob(let index, let digest, let nonce):
            guard try mayHave(digest, of: nil, in: index), store.blobs.contains(digest) else {
                return .proof(nil)
            }
            return .proof(try store.blobs.hash(digest, prefix: [UInt8(nonce.count)] + nonce))
        }
    }

    // MARK: Checkpoints and marks

    private func loadCheckpoint(_ index: Int) throws -> StoreAnswer {
        guard let remote else { return .checkpoint(nil, marks: .unknown) }
        let id = checkpointIDs[index]
        return try store.readRows { view in
            let marks = try view.marks(of: remote, in: collections[index]).map { marks -> MarkState in
                marks.checkpoint == id
                    ? .ours(isCovered: marks.isCovered) : .others(isCovered: marks.isCovered)
            }
            let found = try view.localCheckpointAndUser(id)
            if marks != nil || found != nil { hasOlderMarks.insert(index) }
            return .checkpoint(
                found?.userChanges == userChanges ? found?.body : found.map { Self.withoutPulls($0.body) },
                marks: marks ?? .unknown
            )
        }
    }

    /// What another user pulled is not what this one may have.
    private static func withoutPulls(_ checkpoint: JSONText) -> JSONText {
        var value = JSONElement(checkpoint).value
        value["remote"] = nil
        return JSONText(canonical: value)
    }

    private func saveCheckpoint(_ index: Int, _ body: JSONText, coversMarks: Bool) throws {
        guard let remote else { return }
        let id = checkpointIDs[index]
        try store.write(call: "replication") { transaction in
            try transaction.saveLocalCheckpoint(id, body, userChanges: userChanges)
            guard coversMarks, hasOfferedDoubted(index, body) else {
                return try transaction.doubtMarks(of: remote, in: collections[index])
            }
            guard marksCovered[index] == marksMade[index, default: 0] else { return }
            try transaction.coverMarks(of: remote, in: collections[index], by: id)
        }
    }

    /// Whether all that was in doubt when the session began has been offered anew by now.
    private func hasOfferedDoubted(_ index: Int, _ checkpoint: JSONText) -> Bool {
        guard let trust = trust[index], !trust.marks.leavesOutMarked else { return true }
        return Checkpoint(JSONElement(checkpoint)).completed.completeUpTo ?? 0 >= trust.from
    }

    /// Whether what the remote is marked to have of documents that were here when the session began need not be offered.
    func leavesOutMarked(_ index: Int) -> Bool { trust[index]?.marks.leavesOutMarked ?? true }

    /// The revision that the remote has, as far as that counts for a push.
    ///
    /// With older marks in doubt, those count that this session made, and what an edit of this session was made on. A document
    /// can come back to a revision with an older mark, as when a resolver takes the remote's: such a mark proves nothing.
    func remoteAncestor(of record: DocumentRecord, in index: Int) throws -> RevisionID? {
        guard let remote, let mark = try record.remoteAncestor(remote) else { return nil }
        guard let trust = trust[index], !trust.marks.leavesOutMarked else { return mark }
        if isDoubted(record, in: index) { return nil }
        let isOld =
            mark == record.revision && hasOlderMarks.contains(index)
            && !(markedNow[index]?.contains(record.id) ?? false)
        return isOld ? nil : mark
    }

    /// Whether a document was here when a session began whose marks are in doubt.
    func isDoubted(_ record: DocumentRecord, in index: Int) -> Bool {
        guard let trust = trust[index], !trust.marks.leavesOutMarked else { return false }
        return record.sequence <= trust.from
    }

    /// Gives up marks in doubt of documents that this session does not offer, since they wait for a resolver. What becomes of
    /// them is offered as if the remote had nothing; else the session's checkpoint would vouch for marks that nobody tried.
    func forgetMarks(_ ids: [String], in index: Int) throws {
        guard let remote, !ids.isEmpty else { return }
        try store.write(call: "replication") { transaction in
            for id in ids { try transaction.forgetMark(id, remote: remote, in: collections[index]) }
        }
    }

    /// The local sequences of the documents whose marks count when the remote says something else; nil for all.
    func followed(_ index: Int) -> SequenceSet? {
        guard let trust = trust[index], var followed = trust.marks.followed else { return nil }
        if trust.from < .max { followed.insert(trust.from + 1 ... .max) }
        return followed
    }

    /// Writes what marks documents as known to the remote, and that no checkpoint covers that yet.
    func marking<T>(_ index: Int, _ body: (StoreWriteTransaction) throws -> T) throws -> T {
        let result = try store.write(call: "replication") { transaction in
            if let remote {
                try transaction.noteMarks(of: remote, in: collections[index], by: checkpointIDs[index])
            }
            return try body(transaction)
        }
        marksMade[index, default: 0] += 1
        return result
    }

    private func notePushed(_ revisions: [DocumentRevision], in index: Int) {
        guard remote != nil else { return }
        for revision in revisions {
            pushedNow[index, default: NameSet(bytes: Self.pushedNamesKept)].insert(revision.documentID)
        }
    }

    /// Remembers which documents this session has marked, while older marks are in doubt.
    func noteMarked(_ ids: some Sequence<String>, in index: Int) {
        guard hasOlderMarks.contains(index), trust[index]?.marks.leavesOutMarked == false else { return }
        for id in ids { markedNow[index, default: NameSet(bytes: Self.namesKept)].insert(id) }
    }

    private func begin(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws -> BlobStart {
        if store.blobs.contains(digest), trustsPeer || shared.contains(digest) { return .here }
        if writers.values.contains(where: { $0.digest == digest }) { return .underWay }
        let writer = try store.blobs.writer(receiving: digest, resumes: resumes)
        writers[handle] = (digest, writer)
        return .from(writer.length)
    }

    private func bind(_ names: [CollectionName], _ ids: [String]) throws -> StoreAnswer {
        let handles = names.map { name in
            access.map { $0.access(to: name) > .none } ?? true ? store.collection(name) : nil
        }
        collections = handles.compactMap { $0 }
        return .bound(
            try zip(handles, ids).map { handle, id in
                guard handle != nil else { return BoundCollection(exists: false) }
                let checkpoint = try store.readRows { try $0.peerCheckpoint(id) }
                return BoundCollection(
                    exists: true,
                    revision: checkpoint?.revision ?? 0,
                    checkpoint: checkpoint?.body
                )
            }
        )
    }
}

/// Names, as many as fit.
struct NameSet {
    private var names: Set<String> = []
    private var bytesLeft: Int
    private var isFull = false

    init(bytes: Int) { bytesLeft = bytes }

    func contains(_ name: String) -> Bool { names.contains(name) }

    /// Whether a name is there, or did not fit.
    func mayContain(_ name: String) -> Bool { isFull || names.contains(name) }

    mutating func insert(_ name: String) {
        // A string in a set takes some 24 bytes beside its own.
        let cost = name.utf8.count + 24
        guard cost <= bytesLeft else { return isFull = true }
        if names.insert(name).inserted { bytesLeft -= cost }
    }
}
