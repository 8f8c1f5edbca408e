import LoveseatAssertions
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The documents of one collection, as a pull compares and stores them.
final class PulledDocuments: PullStore {
    /// Revisions that are named to the remote so that it leaves out their attachments.
    private static let maximumKnown = 50

    private let store: DocumentStore
    private let handle: CollectionHandle
    private let rules: CollectionRules

    init(_ store: DocumentStore, _ handle: CollectionHandle, _ rules: CollectionRules) {
        (self.store, self.handle, self.rules) = (store, handle, rules)
    }

    func missing(of listed: [(id: String, revisions: [RevisionID])]) throws -> [WantedLeaf] {
        try store.readManyRows { view in
            var wanted: [WantedLeaf] = []
            for (id, revisions) in listed {
                guard let record = try view.record(id, in: handle) else {
                    wanted += revisions.map {
                        WantedLeaf(leaf: DocumentLeaf(documentID: id, revision: $0), known: [])
                    }
                    continue
                }
                let branches = try DocumentBranches(
                    of: view.whole(record, ifNamedIn: revisions, in: handle)
                )
                let known = branches.leaves.prefix(Self.maximumKnown).map(\.id)
                for revision in revisions where !branches.contains(revision) {
                    let leaf = DocumentLeaf(documentID: id, revision: revision)
                    wanted.append(WantedLeaf(leaf: leaf, known: known))
                }
            }
            return wanted
        }
    }

    func current(_ ids: [String]) throws -> [CurrentRevision] {
        try store.readRows { view in
            try ids.compactMap { id in
                guard let record = try view.record(id, in: handle) else { return nil }
                return CurrentRevision(
                    documentID: record.id,
                    revision: record.revision,
                    sequence: record.sequence,
                    isLine: try record.encodedTree == nil || record.tree().isLine
                )
            }
        }
    }

    func insert(_ fetched: [FetchedRevision]) throws -> [PulledResult] {
        // The app's filter may use the database.
        let admitted = fetched.map { fetched in
            guard let filter = rules.pullFilter else { return true }
            let document = fetched.document
            return filter(
                FilterCandidate(
                    documentID: document.id,
                    revision: document.history.first.map { .revision($0) } ?? .unknown,
                    isDeleted: document.isDeleted,
                    body: document.body
                ),
                false
            )
        }
        let accepted = zip(fetched, admitted).filter(\.1).map(\.0.document)
        return try store.write(call: "replication") { transaction in
            var results = try DocumentSaving.saveReplicated(accepted, in: handle, transaction)[...]
            let inConflict = rules.asksResolver ? try conflicts(of: accepted, transaction) : []
            return try zip(fetched, admitted).map { fetched, isAdmitted in
                guard isAdmitted else { return .filtered }
                guard let result = results.popFirst() else {
                    impossible("a revision that was to be saved has no result")
                    return .failed(LoveseatError(.unexpectedError, "it is asked for again in the next run"))
                }
                return try Self.outcome(result, hasConflict: inConflict.contains(fetched.document.id))
            }
        }
    }

    /// Those documents that have conflicts now.
    private func conflicts(of documents: [PreparedDocument], _ transaction: StoreWriteTransaction) throws
        -> DocumentSet
    {
        DocumentSet(
            try DocumentSet(documents.map(\.id)).sorted.filter { id in
                guard let record = try transaction.record(id, in: handle) else { return false }
                return try !DocumentBranches(of: record).conflicts.isEmpty
            }
        )
    }

    private static func outcome(_ result: Result<RevisionID, any Error>, hasConflict: Bool) throws
        -> PulledResult
    {
        do {
            _ = try result.get()
            return .stored(hasConflict: hasConflict)
        } catch let error as CouchDBError {
            if error.status == 412 { return .lacksAttachments }
            return .failed(LoveseatError(.remoteError, "it cannot be stored here: \(error.reason)"))
        } catch let refusal as RevisionTree.InsertRefusal {
            return .failed(LoveseatError(.remoteError, "its history cannot be stored here: \(refusal)"))
        } catch let error as LoveseatError where error.code == .corruptRevisionData { return .failed(error) }
    }
}

extension BlobPins: BlobHolder {
    func hold(_ digest: BlobDigest) -> Bool {
        add(digest)
        return blobs.contains(digest)
    }
}
