import LoveseatModel
import LoveseatReplication

/// Stores fetched revisions, and records those that could not be fetched.
extension PullMachine {
    /// `isRepeated`: they were fetched again with all of their attachments.
    mutating func save(_ fetched: [FetchedRevision], isRepeated: Bool = false) throws {
        for removed in fetched where removed.document.isRemoved {
            reports.append(.finished(1))
            try withdraw(removed.document.id, removed.document.history.first)
        }
        let fetched = fetched.filter { !$0.document.isRemoved }
        if fetched.isEmpty { return }
        var stored: DocumentMap<[RevisionID]> = [:]
        var conflicts: DocumentSet = []
        for (fetched, result) in zip(fetched, try store.insert(fetched)) {
            let (document, leaf) = (fetched.document, fetched.leaf)
            switch result {
            case .stored(let hasConflict):
                reports.append(.finished(1, bytes: document.body.bytes.count, documents: 1))
                // If another of its revisions has failed, only that failure is reported.
                if !unsettled.contains(document.id) { report(document.id, isDeleted: document.isDeleted) }
                stored[ExactText(document.id), default: []].append(leaf.revision)
                if hasConflict { conflicts.insert(document.id) }
            case .filtered:
                reports.append(.finished(1))
                report(document.id, isDeleted: document.isDeleted, .rejectedByPullFilter)
            case .lacksAttachments where isRepeated:
                try fail(leaf, LoveseatError(.remoteError, "the peer does not send all attachments"))
            case .lacksAttachments:
                queue.prepend([.single(WantedLeaf(leaf: leaf, known: []), isRepeated: true)])
            case .failed(let error): try fail(leaf, error)
            }
        }
        let ids = stored.keys.sorted().map(\.text)
        try replica.forgetFailures(ids.filter { !unsettled.contains($0) })
        // Of several branches some may not be there.
        let marked = try store.current(ids).filter { current in
            current.isLine && stored[ExactText(current.documentID)]?.contains(current.revision) == true
        }.map { SyncedRevision(documentID: $0.documentID, revision: $0.revision, sequence: $0.sequence) }
        if !marked.isEmpty { try replica.markSynced(marked) }
        for id in conflicts.sorted {
            var notice = ConflictNotice(collection: setup.collection, documentID: id, peer: .loveseat)
            notice.pulled = stored[ExactText(id)]
            reports.append(.resolve(notice))
        }
    }

    mutating func fail(_ leaf: DocumentLeaf, _ error: LoveseatError) throws {
        reports.append(.finished(1))
        report(leaf.documentID, isDeleted: false, error)
        try keep(leaf, error)
    }

    /// The remote lists a revision that it does not have. It may have got a newer one since, or one of its machines lags behind: this is
    /// found out at the end of the list.
    mutating func noteMissing(_ leaf: DocumentLeaf) throws {
        reports.append(.finished(1))
        missing.insert(leaf.documentID)
        try keep(leaf, LoveseatError(.httpNotFound, "the peer does not have it"))
    }

    private mutating func keep(_ leaf: DocumentLeaf, _ error: LoveseatError) throws {
        unsettled.insert(leaf.documentID)
        let failed = DocumentRevision(documentID: leaf.documentID, revision: .revision(leaf.revision))
        try replica.noteFailure(failed, error)
    }

    /// A gateway shows the document to this peer no more.
    mutating func withdraw(_ id: String, _ revision: RevisionID?) throws {
        // It lists also what this peer never had.
        guard setup.documentIDs?.contains(id) ?? true, try !store.current([id]).isEmpty else { return }
        var error: LoveseatError?
        if setup.autoPurges {
            let removal = AccessRemoval(documentID: id, revision: revision.map { .revision($0) })
            for verdict in try replica.removeAccess([removal]) {
                error = LoveseatError(keeping: id, verdict)
            }
        }
        report(id, isDeleted: false, isAccessRemoved: true, error)
    }

    mutating func report(_ rows: [UnreadableChange]) {
        for row in rows {
            let error = LoveseatError(
                .remoteError,
                "this row of the peer's list of changes cannot be read (\(row.reason)): it is read again in the next run"
            )
            report(row.name, isDeleted: false, error)
        }
    }

    mutating func report(
        _ id: String,
        isDeleted: Bool,
        isAccessRemoved: Bool = false,
        _ error: LoveseatError? = nil
    ) {
        reports.append(
            .document(
                .pulled(
                    id,
                    in: setup.collection,
                    isDeleted: isDeleted,
                    isAccessRemoved: isAccessRemoved,
                    error
                )
            )
        )
    }
}
