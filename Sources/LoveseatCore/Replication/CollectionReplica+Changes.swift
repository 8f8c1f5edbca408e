import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// A revision that a remote is known to have.
struct RevisionMark {
    let documentID: String
    let revision: RevisionID
    /// The sequence at which it became current here, if it was pushed.
    var sequence: UInt64?
    /// The kind of peer that announced it; nil for a pushed revision.
    var announcedBy: RevisionTree.PeerKind?
    /// The announcement may have been about an older state, and not about the remote's current one.
    var mayBeOld = false

    /// A pushed revision.
    init(_ pushed: SyncedRevision) {
        (documentID, revision, sequence) = (pushed.documentID, pushed.revision, pushed.sequence)
    }

    /// An announced change. `revision`: the announced one, as it is here.
    init(_ change: AnnouncedChange, _ revision: RevisionID, announcedBy peer: RevisionTree.PeerKind) {
        (documentID, self.revision, announcedBy) = (change.documentID, revision, peer)
        mayBeOld = change.mayBeOld
    }
}

/// Decides which changes are offered to the peer, which of its changes are wanted, and which ones the app's filters let through.
extension CollectionReplica {
    /// The maximum number of rows that one request reads. A feed of which the app wants little must not keep the connection waiting.
    private static let rowsScanned = 1_000
    /// The maximum bytes of bodies that one request reads: for all connections together, and the least for one of many.
    private static let bytesScanned = (of: 64 << 20, least: 256 << 10)
    /// The number of rows after which a scan's rows are freed from the connection's cache.
    private static let longScan = 100

    package func changes(_ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        try source.asking { try page(query) }
    }

    private func page(_ query: ChangeQuery) throws -> ChangePage {
        // Of many collections most have nothing new.
        if access == nil, store.contains(collection), store.lastSequence(collection) <= query.since {
            return ChangePage([], through: query.since, hasMore: false)
        }
        var candidates: [(change: LocalChange, record: DocumentRecord)] = []
        var through = query.since
        var scanned = 0
        let now = source.nowMilliseconds()
        let left = query.isForPush && ledger.leavesOutMarked ? remote : nil
        let rule = query.isForPush ? self.rule : nil
        var (isAtEnd, isCut, bytes) = (false, false, 0)
        let bytesScanned = max(Self.bytesScanned.least, Self.bytesScanned.of / connections)
        var doubted: [String] = []
        var losses: [(change: LocalChange, record: DocumentRecord)] = []
        try store.read { transaction in
            try transaction.changes(in: collection, since: query.since, notSyncedWith: left) { record in
                through = record.sequence
                scanned += 1
                if query.isForPush, record.hasConflicts, ledger.isDoubted(record.sequence) {
                    doubted.append(record.id)
                }
                if let change = try change(of: record, query, rule: rule, now: now) {
                    candidates.append((change, record))
                }
                bytes += record.body.bytes.count
                isCut =
                    candidates.count >= query.limit || scanned >= Self.rowsScanned || bytes >= bytesScanned
                return !isCut
            }
            if scanned >= Self.longScan { transaction.forgetPages() }
            if !isCut {
                isAtEnd = true
                through = max(through, try transaction.lastSequence(collection))
            }
            if query.tellsLosses, let peer = self.access?.name {
                losses = try transaction.losses(query, in: collection, of: peer, &through, isAtEnd: &isAtEnd)
            }
        }
        try forgetMarks(doubted)
        let access = accessNow
        var found: [LocalChange] = []
        for (candidate, record) in candidates {
            // The app's code runs outside the transaction, since it may use the database.
            if let filter = rule?.pushFilter, !filter(FilterCandidate(record), false) { continue }
            guard try access?.mayRead(record) ?? true else { continue }
            source.recent.keep(record, of: collection, among: connections)
            found.append(candidate)
        }
        for (change, record) in losses where try access?.mayRead(record) == false { found.append(change) }
        if !losses.isEmpty { found.sort { $0.sequence < $1.sequence } }
        return ChangePage(found.filter { $0.sequence <= through }, through: through, hasMore: !isAtEnd)
    }

    private func change(
        of record: DocumentRecord,
        _ query: ChangeQuery,
        rule: CollectionRules?,
        now: Int64
    ) throws -> LocalChange? {
        if record.isDeleted, record.sequence <= query.tombstonesSkipped { return nil }
        if let ids = query.documentIDs {
            guard ids.contains(record.id) else { return nil }
        } else if let ids = rule?.documentIDs, !ids.contains(record.id) {
            return nil
        }
        if let expires = record.expires, expires <= now { return nil }
        if query.isForPush, record.hasConflicts { return nil }
        let knowledge = query.tellsTrees ? record.knowledgeDigest : nil
        let mark =
            if query.isForPush, let remote { try record.remoteAncestor(remote) } else { RevisionID?.none }
        let ancestor = mark.flatMap { mark in
            let isCurrent = mark == record.revision
            return ledger.counts(isCurrent: isCurrent, of: record.id, at: record.sequence) ? mark : nil
        }
        if knowledge == nil, let ancestor, try record.isCurrent(ancestor) { return nil }
        var change = try LocalChange(record, over: ancestor, query)
        (change.knowledge, change.storedBytes) = (knowledge, record.size.all)
        change.hasDoubtedMark = mark != ancestor || fallenBack.mayContain(record.id)
        return change
    }

    // MARK: Filters

    package func refusal(of candidate: FilterCandidate) -> LoveseatError? {
        if let filter = source.incomingFilter { return filter(candidate) }
        return rule?.admits(candidate) == false ? .rejectedByPullFilter : nil
    }

    package func removeAccess(_ removals: [AccessRemoval]) throws(LoveseatError) -> [RemovalVerdict] {
        try source.asking { try remove(removals) }
    }

    private func remove(_ removals: [AccessRemoval]) throws -> [RemovalVerdict] {
        let revisions = try store.readRows { view in
            try removals.map { try view.record($0.documentID, in: collection)?.revision }
        }
        let admitted = zip(removals, revisions).map { removal, revision in
            rule?.admits(removal.candidate(at: revision), isAccessRemoved: true) ?? true
        }
        try forgetFailures(removals.map(\.documentID))
        return try store.write(call: "replication") { transaction in
            var purges = false
            let verdicts: [RemovalVerdict] = try zip(removals, admitted).map { removal, isAdmitted in
                guard isAdmitted else { return .filtered }
                guard let record = try transaction.record(removal.documentID, in: collection) else {
                    return .removed
                }
                let verdict = try record.verdict(
                    on: removal,
                    by: remote,
                    purgesUnpushedEdits: rule?.purgesUnpushedEdits ?? false
                )
                if verdict == .removed || verdict == .removedWithEdit {
                    purges = true
                    _ = try transaction.purge(record.id, in: collection, isWanted: false)
                } else if verdict == .edited, let remote {
                    // Later changes to the document are not reported by the peer. It may have been deleted there.
                    try transaction.forgetMark(record.id, remote: remote, in: collection)
                }
                return verdict
            }
            try noteRemovals(purges: purges, transaction)
            return verdicts
        }
    }

    package func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        try source.asking { try verdicts(changes, from: peer) }
    }

    private func verdicts(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind)
        throws -> [ChangeVerdict]
    {
        var marks: [RevisionMark] = []
        // The app's policy is asked outside the transaction, since it may use the database.
        let records = try store.readManyRows { view in
            try changes.map { try view.record($0.documentID, in: collection) }
        }
        let access = accessNow
        if peer == .versions { return try VersionedAnswers(self).verdicts(on: changes, over: records) }
        let verdicts: [ChangeVerdict] = try zip(changes, records).map { change, record in
            // To the peer, a document that it may not read does not exist. Writing it is refused when the revision arrives.
            guard let record, try access?.mayRead(record) ?? true else { return .wanted(ancestors: []) }
            guard let revision = change.revision.treeID else {
                impossible("a peer with trees announces \(change.revision)")
                return .wanted(ancestors: [])
            }
            let tree = record.revision == revision ? nil : try record.tree()
            // A Loveseat's tree is also wanted if its revision is here and another one is current: a peer that may not push, or does not,
            // has no other way to exchange trees.
            let tellsMore =
                try peer == .loveseat && change.knowledge != nil
                && (tree == nil
                    ? !record.knowsTheSame(as: change.knowledge) || record.awaitsLeaf()
                    : remote != nil && record.knowledgeDigest != change.knowledge)
            if !tellsMore,
                tree.map({ $0.contains(revision) && !$0.rule.awaitsBody(of: revision) }) ?? true
            {
                // A removal says nothing about the peer's revision: the mark says whether the revision here came from it.
                if let remote, !change.isRemoval {
                    let mark = try record.remoteAncestor(remote)
                    let isMarked = mark == revision
                    if tree == nil { pushed.noteEcho(of: change, isMarked: isMarked) }
                    guard !isMarked else { return .alreadyHere }
                    if peer == .hub, let mark, tree?.isAncestor(revision, of: mark) == true {
                        fallenBack.insert(change.documentID)
                    }
                    marks.append(RevisionMark(change, revision, announcedBy: peer))
                }
                return .alreadyHere
            }
            // The passive side does not accept conflicts (replication.md §12.1).
            if remote == nil, !tellsMore, record.revision.generation >= revision.generation {
                return .conflict
            }
            var ancestors = try (tree ?? record.tree()).nodes.keys.filter {
                $0.generation < revision.generation
            }
            ancestors.sort(by: >)
            return .wanted(ancestors: ancestors.map { .revision($0) })
        }
        try mark(marks)
        return verdicts
    }

    /// Saves the revisions that the active side's remote is known to have.
    func mark(_ marks: [RevisionMark]) throws {
        // A passive side keeps no marks, and an active one often has nothing new to mark.
        guard let remote, !marks.isEmpty else { return }
        try marking { transaction in
            let sequences = marks.compactMap(\.sequence).sorted()
            let changed = try transaction.markTable.markSynced(sequences, remote: remote, in: collection)
            for mark in marks where mark.sequence.map({ changed.contains($0) }) ?? true {
                try transaction.markSynced(
                    mark.documentID,
                    revision: mark.revision,
                    remote: remote,
                    announcedBy: mark.announcedBy,
                    mayBeOld: mark.mayBeOld || pushed.mayContain(mark.documentID),
                    in: collection
                )
            }
        }
        ledger.mark(marks.lazy.map(\.documentID))
    }

    package func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        try source.asking {
            let records = try store.readManyRows { view in
                try proposals.map { try view.record($0.documentID, in: collection) }
            }
            let access = accessNow
            let verdicts = try zip(proposals, records).map { proposal, record -> ProposalVerdict in
                // To the peer, a document that it may not read does not exist.
                guard let record, try access?.mayRead(record) ?? true else { return .wanted }
                return try record.verdict(on: proposal, from: peer)
            }
            // A peer with limited rights decides nothing by what it only proposes.
            if peer == .versions, access == nil {
                try VersionedAnswers(self).noteKnown(proposals, verdicts, over: records)
            }
            return verdicts
        }
    }

    package func conflicts(after sequence: UInt64) throws(LoveseatError) -> ConflictPage {
        try source.asking {
            // Of many collections most have none.
            guard store.numbers(having: .conflict).contains(collection.number) else {
                return ConflictPage(ids: [], next: nil)
            }
            let found = try store.read { try $0.conflictedIDs(in: collection, after: sequence) }
            return ConflictPage(ids: found.ids, next: found.next)
        }
    }

    package func noteLosses() throws(LoveseatError) {
        try source.asking { try noteLossesNow() }
    }
}

extension StoreReadTransaction {
    /// The documents that the peer lost, up to the end of a page, or until there are too many for it.
    fileprivate func losses(
        _ query: ChangeQuery,
        in collection: CollectionHandle,
        of peer: String,
        _ through: inout UInt64,
        isAtEnd: inout Bool
    ) throws -> [(change: LocalChange, record: DocumentRecord)] {
        let found = try losses(
            in: collection,
            of: peer,
            after: max(query.since, query.tombstonesSkipped),
            through: isAtEnd ? .max : through,
            limit: query.limit
        )
        if let last = found.last {
            let isFull = found.count == query.limit
            isAtEnd = isAtEnd && !isFull
            through = isFull ? last.sequence : max(through, last.sequence)
        }
        return try found.compactMap { id, sequence in
            guard query.documentIDs?.contains(id) ?? true,
                let record = try record(id, in: collection)
            else { return nil }
            var change = LocalChange(
                sequence: sequence,
                documentID: id,
                revision: record.revision,
                isDeleted: false,
                bodySize: 0,
                remoteAncestor: nil
            )
            change.takesAway = true
            return (change, record)
        }
    }
}

extension DocumentRecord {
    /// Whether a remote that has this revision has the current one here, perhaps as a copy.
    fileprivate func isCurrent(_ mark: RevisionID) throws -> Bool {
        if mark == revision { return true }
        guard CopyName(mark) != nil else { return false }
        let tree = try tree()
        return tree.original(mark) == tree.original(revision)
    }

    /// A peer can take away a document that it had, but not one that it never had, or an edit that it does not have yet.
    fileprivate func verdict(on removal: AccessRemoval, by remote: Int?, purgesUnpushedEdits: Bool) throws
        -> RemovalVerdict
    {
        let tree = try tree()
        let mark = remote.flatMap { tree.remotes[$0] }
        // If the peer names a revision that is here, it has that revision, whether or not its answer to our push has arrived.
        let named = removal.revision.flatMap {
            $0.treeID.flatMap(tree.known) ?? tree.versions.node(named: $0)
        }
        guard mark != nil || named != nil else { return .neverThere }
        let hasCurrent = [mark, named].contains { $0.map { tree.isCurrent($0) } ?? false }
        if hasCurrent, !hasConflicts { return .removed }
        return purgesUnpushedEdits ? .removedWithEdit : .edited
    }

    fileprivate func verdict(on proposal: ProposedChange, from peer: RevisionTree.PeerKind) throws
        -> ProposalVerdict
    {
        if peer == .versions { return try tree().versions.verdict(on: proposal) }
        if proposal.revision == .revision(revision) {
            // If one side knows more, both exchange their trees.
            let isKnown =
                try peer != .loveseat
                || (knowsTheSame(as: proposal.knowledge) && !awaitsLeaf())
            return isKnown ? .alreadyHere : .wanted
        }
        // A Loveseat sends its tree with the revision, and is answered with ours.
        if peer == .loveseat { return .wanted }
        if proposal.serverRevision == .revision(revision) { return .wanted }
        if proposal.serverRevision == nil, isDeleted { return .wanted }
        return .conflict(StateHistory(revision))
    }
}

extension LocalChange {
    fileprivate init(_ record: DocumentRecord, over ancestor: RevisionID?, _ query: ChangeQuery) throws {
        let tree = query.tellsVersions ? try record.tree() : nil
        self.init(
            sequence: record.sequence,
            documentID: record.id,
            revision: record.revision,
            isDeleted: record.isDeleted,
            bodySize: record.body.bytes.count,
            remoteAncestor: ancestor.map { tree?.versions.announcedState(of: $0).name ?? .revision($0) }
        )
        // Couchbase Lite 4 takes a newer revision ID for an older one where it has a version that stands for a revision (version-vectors.md,
        // correction 15). The version that stands for the ID is right for both forms.
        state = tree.map { tree in
            query.tellsIDs
                ? tree.versions.state(of: record.revision) : tree.versions.announcedState(of: record.revision)
        }
    }
}

extension AccessRemoval {
    /// The candidate that the filter is asked about. `revision`: the current one, if the document is here.
    fileprivate func candidate(at revision: RevisionID?) -> FilterCandidate {
        FilterCandidate(
            documentID: documentID,
            revision: revision.map { .revision($0) } ?? .unknown,
            isDeleted: false,
            body: .emptyObject
        )
    }
}
