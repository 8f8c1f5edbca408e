import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// Joins storage to replication: one connection's view of a ``DocumentStore``.
package final class StoreReplica: ReplicaStore {
    private let store: DocumentStore
    private var collections: [CollectionHandle]
    private let checkpointIDs: [String]
    /// Under which number marks of what the remote has are kept; nil on the passive side, which keeps none.
    private let remote: Int?
    private let rules: [CollectionRules]
    private var writers: [BlobHandle: (digest: BlobDigest, writer: BlobWriter)] = [:]
    private var read = RecentRecords()
    /// What the peer announced over this connection although it lost here. To be believed also when older marks are not.
    private var disputed: [String: RevisionID] = [:]
    private static let mostDisputed = 10_000
    private let nowMilliseconds: () -> Int64

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
        self.store = store
        self.collections = collections
        self.checkpointIDs = checkpointIDs
        self.remote = remote
        self.nowMilliseconds = nowMilliseconds
    }

    /// For the passive side, which learns from its peer which collections to serve.
    package init(store: DocumentStore, nowMilliseconds: @escaping () -> Int64) {
        self.store = store
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
            return .revisions(
                try store.readRows { view in try requests.map { try read($0, in: collections[index], view) } }
            )
        case .insert(let index, let revisions): return try insert(revisions, in: collections[index])
        case .markSynced(let index, let revisions):
            guard let remote else { return .done }
            try store.write { transaction in
                for entry in revisions {
                    try transaction.markSynced(
                        entry.documentID,
                        revision: entry.revision,
                        remote: remote,
                        in: collections[index]
                    )
                }
            }
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
            return .missingBlobs(digests.filter { !store.blobs.contains($0) })
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
        case .blobLength(let digest): return .blobLength(store.blobs.length(digest))
        case .readBlob(let digest, let offset, let count):
            return .blobBytes(try store.blobs.read(digest, from: offset, count: count))
        case .proveBlob(let digest, let nonce):
            guard store.blobs.contains(digest) else { return .proof(nil) }
            return .proof(try store.blobs.hash(digest, prefix: [UInt8(nonce.count)] + nonce))
        }
    }

    private func begin(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws -> BlobStart {
        if store.blobs.contains(digest) { return .here }
        if writers.values.contains(where: { $0.digest == digest }) { return .underWay }
        let writer = try store.blobs.writer(receiving: digest, resumes: resumes)
        writers[handle] = (digest, writer)
        return .from(writer.length)
    }

    private func bind(_ names: [CollectionName], _ ids: [String]) throws -> StoreAnswer {
        let handles = names.map { store.collection($0) }
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

    // MARK: Changes

    /// Rows looked at in one request. A feed of which the app wants little must not keep the connection waiting.
    private static let rowsScanned = 1_000

    private func readChanges(_ index: Int, _ query: ChangeQuery) throws -> StoreAnswer {
        let collection = collections[index]
        var candidates: [(change: LocalChange, record: DocumentRecord)] = []
        var through = query.since
        var scanned = 0
        let now = nowMilliseconds()
        let trusted = query.isForPush && query.trustsMarks ? remote : nil
        let rule = query.isForPush ? rules.indices.contains(index) ? rules[index] : nil : nil
        var isAtEnd = false
        try store.read { transaction in
            try transaction.changes(in: collection, since: query.since, notSyncedWith: trusted) { record in
                through = record.sequence
                scanned += 1
                if let change = try change(of: record, query, trusted: trusted, rule: rule, now: now) {
                    candidates.append((change, record))
                }
                return candidates.count < query.limit && scanned < Self.rowsScanned
            }
            if candidates.count < query.limit, scanned < Self.rowsScanned {
                isAtEnd = true
                through = max(through, try transaction.lastSequence(collection))
            }
        }
        var found: [LocalChange] = []
        for (change, record) in candidates {
            // The app's code runs outside the transaction, since it may use the database.
            if let filter = rule?.pushFilter, !filter(FilterCandidate(record), false) { continue }
            read.keep(record, of: collection)
            found.append(change)
        }
        return .changes(found, through: through, hasMore: !isAtEnd)
    }

    private func change(
        of record: DocumentRecord,
        _ query: ChangeQuery,
        trusted: Int?,
        rule: CollectionRules?,
        now: Int64
    ) throws -> LocalChange? {
        if query.activeOnly, record.isDeleted { return nil }
        if let ids = query.documentIDs ?? rule?.documentIDs, !ids.contains(record.id) { return nil }
        if let expires = record.expires, expires <= now { return nil }
        if query.isForPush, record.hasConflicts { return nil }
        let ancestor =
            try trusted.flatMap { try record.remoteAncestor($0) }
            ?? (query.isForPush && !disputed.isEmpty ? known(record) : nil)
        if ancestor == record.revision { return nil }
        return LocalChange(
            sequence: record.sequence,
            documentID: record.id,
            revision: record.revision,
            isDeleted: record.isDeleted,
            bodySize: record.body.bytes.count,
            remoteAncestor: ancestor
        )
    }

    /// What the peer announced of a document over this connection although it lost here.
    private func known(_ record: DocumentRecord) throws -> RevisionID? {
        guard let revision = disputed[record.id], try record.tree().contains(revision) else { return nil }
        return revision
    }

    // MARK: Filters

    private func admits(_ candidate: FilterCandidate, isAccessRemoved: Bool, in index: Int) -> Bool {
        guard rules.indices.contains(index), let filter = rules[index].pullFilter else { return true }
        return filter(candidate, isAccessRemoved)
    }

    private func removeAccess(_ ids: [String], in index: Int) throws -> StoreAnswer {
        let revisions = try store.readRows { view in
            try ids.map { try view.record($0, in: collections[index])?.revision }
        }
        let verdicts = zip(ids, revisions).map { id, revision in
            let candidate = FilterCandidate(
                documentID: id,
                revision: revision ?? RevisionID(generation: 1, digest: []),
                isDeleted: false,
                body: .emptyObject
            )
            return admits(candidate, isAccessRemoved: true, in: index)
        }
        try store.write { transaction in
            for (id, isAdmitted) in zip(ids, verdicts) where isAdmitted {
                _ = try transaction.purge(id, in: collections[index])
            }
        }
        return .admitted(verdicts)
    }

    private func judge(_ changes: [AnnouncedChange], in collection: CollectionHandle) throws -> StoreAnswer {
        var marks: [DocumentRevision] = []
        let limit = ReplicationTuning().ancestorsNamed
        let verdicts: [ChangeVerdict] = try store.readRows { view in
            try changes.map { change in
                guard let record = try view.record(change.documentID, in: collection) else {
                    return .wanted(ancestors: [])
                }
                let tree = record.revision == change.revision ? nil : try record.tree()
                if tree?.contains(change.revision) ?? true {
                    let lostHere = tree.map { !$0.isKnownToFollow(change.revision) } ?? false
                    if lostHere, disputed.count < Self.mostDisputed {
                        disputed[change.documentID] = change.revision
                    }
                    if let remote, try lostHere || record.remoteAncestor(remote) != change.revision {
                        marks.append(
                            DocumentRevision(documentID: change.documentID, revision: change.revision)
                        )
                    }
                    return .alreadyHere
                }
                // The passive side takes no conflicts in (replication.md §12.1).
                if remote == nil, record.revision.generation >= change.revision.generation {
                    return .conflict
                }
                let ancestors = (tree?.nodes ?? []).map(\.id).filter {
                    $0.generation < change.revision.generation
                }
                return .wanted(ancestors: Array(ancestors.sorted(by: >).prefix(limit)))
            }
        }
        if !marks.isEmpty, let remote {
            try store.write { transaction in
                for mark in marks {
                    try transaction.markSynced(
                        mark.documentID,
                        revision: mark.revision,
                        remote: remote,
                        in: collection
                    )
                }
            }
        }
        return .changeVerdicts(verdicts)
    }

    private func judge(_ proposals: [ProposedChange], in collection: CollectionHandle) throws -> StoreAnswer {
        .proposalVerdicts(
            try store.readRows { view in
                try proposals.map { proposal in
                    guard let record = try view.record(proposal.documentID, in: collection) else {
                        return .wanted
                    }
                    if record.revision == proposal.revision { return .alreadyHere }
                    if record.revision == proposal.serverRevision { return .wanted }
                    if proposal.serverRevision == nil, record.isDeleted { return .wanted }
                    return .conflict(record.revision)
                }
            }
        )
    }

    private func compare(
        _ id: String,
        _ revision: RevisionID,
        with other: RevisionID?,
        in collection: CollectionHandle
    ) throws -> RevisionComparison {
        guard let record = try store.readRows({ try $0.record(id, in: collection) }) else {
            return RevisionComparison(
                isCurrent: false,
                supersedes: false,
                remoteAncestor: nil,
                hasConflict: false
            )
        }
        let tree = try record.tree()
        return RevisionComparison(
            isCurrent: record.revision == revision,
            supersedes: other.map { tree.supersedes(revision, $0) } ?? false,
            remoteAncestor: try remote.flatMap { try record.remoteAncestor($0) },
            hasConflict: record.hasConflicts
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
        guard record.encodedTree != nil else {
            return .found(
                SendableRevision(
                    revision: record.revision,
                    history: [],
                    isDeleted: record.isDeleted,
                    body: record.body
                )
            )
        }
        let tree = try record.tree()
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
        let results: [InsertResult] = try store.write { transaction in
            try revisions.map { revision in
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
