import Logging
import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// Joins storage to replication: one connection's view of a ``DocumentStore``.
package final class StoreReplica: ReplicaStore {
    let store: DocumentStore
    var collections: [CollectionHandle]
    private let checkpointIDs: [String]
    /// Under which number marks of what the remote has are kept; nil on the passive side, which keeps none.
    let remote: Int?
    let rules: [CollectionRules]
    /// What the peer may do; nil if nobody restricts it.
    let access: PeerAccess?
    private var writers: [BlobHandle: (digest: BlobDigest, writer: BlobWriter)] = [:]
    var read = RecentRecords()
    /// What the peer announced over this connection although it lost here. To be believed also when older marks are not.
    var disputed: [String: RevisionID] = [:]
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
        nowMilliseconds: @escaping () -> Int64
    ) {
        self.rules = rules
        access = nil
        self.store = store
        self.collections = collections
        self.checkpointIDs = checkpointIDs
        self.remote = remote
        self.nowMilliseconds = nowMilliseconds
    }

    /// For the passive side, which learns from its peer which collections to serve.
    package init(
        store: DocumentStore,
        access: PeerAccess? = nil,
        nowMilliseconds: @escaping () -> Int64
    ) {
        self.store = store
        self.access = access
        self.nowMilliseconds = nowMilliseconds
        (collections, checkpointIDs, remote, rules) = ([], [], nil, [])
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
            return .checkpoint(try store.readRows { try $0.localCheckpoint(checkpointIDs[index]) })
        case .saveCheckpoint(let index, let body):
            try store.write { try $0.saveLocalCheckpoint(checkpointIDs[index], body) }
            return .done
        case .getPeerCheckpoint(let id):
            let found = try store.readRows { try $0.peerCheckpoint(id) }
            return .peerCheckpoint(revision: found?.revision ?? 0, found?.body)
        case .savePeerCheckpoint(let id, let revision, let body):
            return .peerCheckpointSaved(
                revision: try store.write { try $0.savePeerCheckpoint(id, replacing: revision, body) }
            )
        case .bindCollections(let names, let ids): return try bind(names, ids)
        case .readChanges(let index, let query): return try readChanges(index, query)
        case .judgeChanges(let index, let changes): return try judge(changes, in: collections[index])
        case .judgeProposals(let index, let proposals): return try judge(proposals, in: collections[index])
        case .compare(let index, let id, let revision, let other):
            return .compared(try compare(id, revision, with: other, in: collections[index]))
        case .follow(let index, let id, let revision, let peer):
            try store.write {
                try $0.follow(id, in: collections[index], local: revision, remote: peer)
            }
            return .done
        case .readRevisions(let index, let requests):
            let found = try store.readRows { view in
                try requests.map { try read($0, in: collections[index], view) }
            }
            return .revisions(try granting(found, requests, in: collections[index]))
        case .readRevocations(let index): return try readRevocations(collections[index])
        case .forgetGrants(let index, let ids):
            try forgetGrants(ids, in: collections[index])
            return .done
        case .insert(let index, let revisions): return try insert(revisions, in: collections[index])
        case .markSynced(let index, let revisions):
            try mark(revisions, in: collections[index])
            return .done
        case .listConflicts(let index):
            return .documentIDs(try store.read { try $0.conflictedIDs(in: collections[index]) })
        case .admit(let index, let candidates):
            return .admitted(candidates.map { admits($0, isAccessRemoved: false, in: index) })
        case .removeAccess(let index, let ids): return try removeAccess(ids, in: index)
        case .expandDelta(let index, let id, let base, let delta):
            let body = try store.readRows { try $0.record(id, in: collections[index]) }?.tree().node(base)?
                .body
            guard let body else { return .expanded(.unknownBase) }
            return .expanded(RevisionMessage.expand(delta, base: body))
        case .holdBlobs(let digests):
            for digest in digests { store.blobs.pin(digest) }
            // Who may not have a blob proves by sending it that it is the peer's own.
            return .missingBlobs(digests.filter { !isHere($0) })
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
            return .done
        case .cancelBlob(let handle):
            writers.removeValue(forKey: handle)?.writer.cancel()
            return .done
        case .suspendBlob(let handle):
            writers.removeValue(forKey: handle)?.writer.suspend()
            return .done
        case .blobLength(let digest): return .blobLength(isHere(digest) ? store.blobs.length(digest) : nil)
        case .readBlob(let digest, let offset, let count):
            return .blobBytes(try store.blobs.read(digest, from: offset, count: count))
        case .proveBlob(let digest, let nonce):
            guard isHere(digest) else { return .proof(nil) }
            return .proof(try store.blobs.hash(digest, prefix: [UInt8(nonce.count)] + nonce))
        }
    }

    /// Whether there is a blob, as far as the peer may know.
    private func isHere(_ digest: BlobDigest) -> Bool {
        store.blobs.contains(digest) && access?.mayHave(digest) ?? true
    }

    private func begin(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws -> BlobStart {
        if isHere(digest) { return .here }
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

    // MARK: Revisions

    private func read(
        _ request: RevisionRequest,
        in collection: CollectionHandle,
        _ view: ReadTransaction
    ) throws -> OutgoingRevision {
        let kept = read.take(request, of: collection)
        guard let record = try kept ?? view.record(request.documentID, in: collection) else {
            return .missing
        }
        guard record.revision == request.revision else { return .obsolete(current: record.revision) }
        let tree = try record.encodedTree.map { _ in try record.tree() }
        guard !record.isDamaged(parent: tree?.node(record.revision)?.parent) else {
            LogDomain.replicator.log(
                .error,
                "\(collection.name)/\(record.id) is damaged and is not sent: run a check"
            )
            return .missing
        }
        guard let tree else {
            return .found(
                SendableRevision(
                    revision: record.revision,
                    history: [],
                    isDeleted: record.isDeleted,
                    body: record.body
                )
            )
        }
        let ancestors = tree.ancestors(of: record.revision)
        let isDescendant = request.known.isEmpty || request.known.contains { ancestors.contains($0) }
        var content = SendableRevision(
            revision: record.revision,
            history: RevisionHistory.toSend(
                ancestors,
                of: record.revision,
                known: request.known,
                limit: request.maxHistory
            ),
            isDeleted: record.isDeleted,
            body: record.body,
            deletedBranch: isDescendant
                ? [] : request.known.lazy.compactMap { tree.deletedBranch(over: $0) }.first ?? []
        )
        if request.wantsDelta, !record.isDeleted { content.deltaBase = deltaBase(request.known, in: tree) }
        return .found(content)
    }

    /// The first revision that the peer has and whose body is here (replication.md §10.1). Not one that deletes.
    private func deltaBase(_ known: [RevisionID], in tree: RevisionTree) -> SendableRevision.DeltaBase? {
        let nodes = known.lazy.compactMap { tree.node($0) }
        guard let node = nodes.first(where: { $0.body != nil }), !node.isDeleted, let body = node.body else {
            return nil
        }
        return SendableRevision.DeltaBase(revision: node.id, body: body)
    }

    private func insert(_ revisions: [IncomingRevision], in collection: CollectionHandle) throws
        -> StoreAnswer
    {
        let refusals = try refusals(of: revisions, in: collection)
        let results: [InsertResult] = try store.write { transaction in
            try zip(revisions, refusals).map { revision, refusal in
                if let refusal { return .failed(refusal) }
                var incoming = IncomingRecord(
                    documentID: revision.documentID,
                    history: revision.history,
                    isDeleted: revision.isDeleted,
                    body: revision.body,
                    allowConflict: remote != nil && !revision.noConflicts,
                    remote: remote
                )
                incoming.deletedBranch = revision.deletedBranch
                do {
                    switch try transaction.insert(incoming, in: collection) {
                    case .alreadyPresent: return .alreadyHere
                    case .inserted: return .inserted
                    case .insertedAsConflict: return .conflict
                    }
                } catch let refusal as RevisionTree.Refusal {
                    return refusal == .conflict ? .refusedConflict : .badHistory
                } catch let error as LoveseatError where error.code == .corruptRevisionData {
                    return .failed(error)
                }
            }
        }
        return .inserted(results)
    }
}
