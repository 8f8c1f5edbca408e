import Logging
import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// Revisions that are sent and received, and their documents' trees (docs/decisions/0001).
extension CollectionReplica {
    // MARK: Out

    package func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision] {
        try source.asking {
            let found = try store.readManyRows { view in try requests.map { try read($0, view) } }
            let access = accessNow
            let told = withholding(found, requests, access)
            let granted = try granting(told, requests, access)
            share(granted)
            return granted
        }
    }

    private func read(_ request: RevisionRequest, _ view: StoreReadTransaction) throws -> OutgoingRevision {
        let kept = source.recent.remove(request, of: collection)
        guard let record = try kept ?? view.record(request.documentID, in: collection) else {
            return .missing
        }
        guard record.revision == request.revision else { return .obsolete(current: record.revision) }
        let tree = try record.encodedTree.map { _ in try record.tree() }
        guard !record.isDamaged(in: tree) else {
            LogDomain.replicator.log(
                .error,
                "\(collection.name)/\(record.id) is damaged and is not sent: run a check"
            )
            return .damaged
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
        if request.peer == .hub, let copy = copy(of: record, in: tree, for: request) { return copy }
        let line = tree.line(record.revision)
        var content = SendableRevision(
            revision: record.revision,
            history: RevisionHistory.toSend(
                Array(line.dropFirst()),
                of: record.revision,
                known: request.known,
                limit: request.maxHistory
            ),
            isDeleted: record.isDeleted,
            body: record.body
        )
        content.isUncertain = request.peer == .hub && request.known.isEmpty && !tree.isLine
        if request.wantsDelta, !record.isDeleted { content.deltaBase = deltaBase(request.known, in: tree) }
        if request.peer == .loveseat {
            if let origin = line.last, origin != record.revision, !content.history.contains(origin) {
                content.origin = origin
            }
            if tree.isTold { content.knowledge = tree.intactKnowledge }
        }
        return .found(content)
    }

    /// Leaves out of the read revisions what may not be sent. A peer gets the whole tree of a document, since both must come to the same
    /// current revision. But it gets no other content, unless it may read every candidate and the app sends them. Called outside
    /// transactions, since the app may use the database.
    func withholding(
        _ found: [OutgoingRevision],
        _ requests: [RevisionRequest],
        _ access: CollectionAccess?
    ) -> [OutgoingRevision] {
        zip(requests, found).map { request, outgoing in
            guard case .found(var content) = outgoing, let knowledge = content.knowledge else {
                return outgoing
            }
            content.knowledge = sendable(knowledge, of: request.documentID, access, keeping: nil)
            return .found(content)
        }
    }

    /// `keeping`: the revision whose content is sent in any case, if the peer may read it.
    private func sendable(
        _ knowledge: TreeKnowledge,
        of id: String,
        _ access: CollectionAccess?,
        keeping current: RevisionID?
    ) -> TreeKnowledge {
        let filter = rule?.pushFilter
        if access == nil, filter == nil { return knowledge }
        let hidden = knowledge.nodes.filter { node in
            if access?.ruling.maySend(node, of: id) == false { return true }
            return FilterCandidate(node, of: id).map { filter?($0, false) == false } ?? false
        }
        guard !hidden.isEmpty else { return knowledge }
        return knowledge.keepingBody(of: hidden.contains { $0.id == current } ? nil : current)
    }

    /// A hub accepts only descendants of its own revision. If ours is not one, our content goes on top of the hub's as a copy. Nothing has
    /// to be recorded before it is sent, because the copy says in its name what it is.
    ///
    /// - Returns: nil if none is needed, or the hub's revision is not here.
    private func copy(of record: DocumentRecord, in tree: RevisionTree, for request: RevisionRequest)
        -> OutgoingRevision?
    {
        guard let hub = request.known.first, record.revision != hub, let theirs = tree.node(hub),
            request.isCopyOnly || !tree.isAncestor(hub, of: record.revision), let current = tree.current
        else { return nil }
        if RevisionTree.saysTheSame(current, theirs) { return .same }
        let copy = tree.copy(of: record, over: hub, mayBeOriginal: !request.isCopyOnly)
        guard let copy else { return nil }
        var content = SendableRevision(
            revision: copy.id,
            history: RevisionHistory.toSend(
                tree.line(hub),
                of: copy.id,
                known: request.known,
                limit: request.maxHistory
            ),
            isDeleted: record.isDeleted,
            body: record.body
        )
        content.copy = .init(original: copy.original, parent: hub)
        return .found(content)
    }

    /// The first revision that the peer has and whose body is here (replication.md §10.1), unless it is a deletion.
    private func deltaBase(_ known: [RevisionID], in tree: RevisionTree) -> SendableRevision.DeltaBase? {
        let nodes = known.lazy.compactMap { tree.node($0) }
        guard let node = nodes.first(where: { $0.body != nil }), !node.isDeleted, let body = node.body,
            !node.isDamaged
        else { return nil }
        return SendableRevision.DeltaBase(revision: node.id, body: body)
    }

    // MARK: In

    package func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
        try source.asking { try accept(revisions) }
    }

    private func accept(_ revisions: [IncomingRevision]) throws -> [InsertResult] {
        let verdicts = try verdicts(on: revisions)
        let asksResolver = rule?.asksResolver ?? false
        let followed = ledger.followed
        let knowledge = zip(revisions, verdicts).map { revision, verdict in
            revision.knowledge.map { knowledge in
                var knowledge = filtered(knowledge, of: revision.documentID)
                verdict.foreign?.removeDecisions(from: &knowledge)
                return knowledge
            }
        }
        let results: [InsertResult] = try marking { transaction in
            try zip(zip(revisions, knowledge), verdicts).map { arrival, verdict in
                let (revision, knowledge) = arrival
                if let refusal = verdict.refusal { return .failed(refusal) }
                var incoming = IncomingRecord(
                    documentID: revision.documentID,
                    history: revision.history,
                    isDeleted: revision.isDeleted,
                    body: revision.body,
                    sender: revision.sender,
                    remote: remote
                )
                incoming.origin = revision.origin
                incoming.knowledge = knowledge
                incoming.asksResolver = asksResolver
                (incoming.isOutdated, incoming.mayBeOld) = (revision.isOutdated, revision.mayBeOld)
                incoming.followed = followed
                do {
                    let (outcome, preferred) = try transaction.insert(incoming, in: collection)
                    if remote == nil, revision.sender == .loveseat, let preferred,
                        let current = preferred.current
                    {
                        return .outranked(preferred.intactKnowledge, current: current.id)
                    }
                    switch outcome {
                    case .alreadyPresent: return .alreadyHere
                    case .inserted: return .inserted
                    case .pending: return .conflict
                    }
                } catch let refusal as RevisionTree.InsertRefusal {
                    return refusal == .conflict ? .refusedConflict : .badHistory
                } catch let error as LoveseatError where error.code == .corruptRevisionData {
                    return .failed(error)
                } catch let error as OtherContent {
                    return .failed(LoveseatError(.httpConflict, error.reason))
                }
            }
        }
        let stored = zip(revisions, results).compactMap { $1.isStored ? $0.documentID : nil }
        try forgetFailures(stored)
        ledger.mark(stored)
        // Revisions that the peer announces after a newer one than the pushed one are newer, too.
        for (revision, result) in zip(revisions, results) where result == .inserted && !revision.isOutdated {
            noteNews(of: revision.documentID)
        }
        return withholding(results, of: revisions)
    }

    /// Leaves out content that a peer may not read.
    private func withholding(_ results: [InsertResult], of revisions: [IncomingRevision]) -> [InsertResult] {
        let access = accessNow
        return zip(results, revisions).map { result, revision in
            guard case .outranked(let knowledge, let current) = result else { return result }
            return .outranked(
                sendable(knowledge, of: revision.documentID, access, keeping: current),
                current: current
            )
        }
    }

    /// A tree without the content that the app's filter does not let in, or that its resolver must be asked about when the pull brings it.
    /// Called outside transactions.
    func admitted(_ knowledge: TreeKnowledge, of id: String, takesContent: Bool) -> TreeKnowledge {
        guard takesContent, rule?.asksResolver != true else { return knowledge.keepingBody(of: nil) }
        return filtered(knowledge, of: id)
    }

    /// A tree without content if the app's filter does not let all of it in. Called outside transactions.
    private func filtered(_ knowledge: TreeKnowledge, of id: String) -> TreeKnowledge {
        guard rule?.pullFilter != nil else { return knowledge }
        let isAdmitted = knowledge.nodes.allSatisfy { node in
            FilterCandidate(node, of: id).map { admits($0, isAccessRemoved: false) } ?? true
        }
        return isAdmitted ? knowledge : knowledge.keepingBody(of: nil)
    }

    package func body(of revision: RevisionID, _ id: String) throws(LoveseatError) -> JSONText? {
        try source.asking { try readableBody(of: revision, id) }
    }

    // MARK: Disagreements

    package func adoptCopy(_ copy: RevisionID, of id: String, parent: RevisionID) throws(LoveseatError) {
        guard let remote else { return impossible("a passive peer sends no copies") }
        try source.asking {
            try marking { try $0.adoptCopy(copy, of: id, parent: parent, remote: remote, in: collection) }
        }
    }

    package func merge(
        _ knowledge: TreeKnowledge,
        of id: String,
        current: RevisionID,
        takesContent: Bool
    ) throws(LoveseatError) -> MergeOutcome {
        let told = admitted(knowledge, of: id, takesContent: takesContent)
        return try source.asking { try merge(told, current: current, of: id, pulls: takesContent) }
    }

    /// Stores the tree of a peer with another current revision.
    private func merge(
        _ knowledge: TreeKnowledge,
        current: RevisionID,
        of id: String,
        pulls: Bool
    ) throws -> MergeOutcome {
        guard let remote else { return .agrees }
        let outcome: MergeOutcome = try marking { transaction in
            do {
                let outcome = try transaction.merge(
                    knowledge,
                    current: current,
                    of: id,
                    remote: remote,
                    pulls: pulls,
                    in: collection
                )
                guard outcome == false else { return .agrees }
                let record = try transaction.record(id, in: collection)
                guard try record?.remoteAncestor(remote) != current else { return .disagrees }
                let theirs = RevisionTree(nodes: knowledge.nodes, remotes: [:])
                return !pulls && record.map { theirs.isAncestor($0.revision, of: current) } == true
                    ? .isBehind : .lacksContent
            } catch is RevisionTree.InsertRefusal {
                throw LoveseatError(
                    .remoteError,
                    "what the peer says of the history of \"\(id)\" contradicts what is known of it"
                )
            } catch is OtherContent {
                // The pull reports it.
                return .lacksContent
            }
        }
        ledger.mark([id])
        return outcome
    }

    package func reconcile(_ change: LocalChange, _ state: HubState) throws(LoveseatError) -> Reconciliation {
        try source.asking { try reconciliation(change, state) }
    }

    private func reconciliation(_ change: LocalChange, _ state: HubState) throws -> Reconciliation {
        guard let remote else { return .waits(isMarked: true) }
        return try marking { transaction in
            guard let record = try transaction.record(change.documentID, in: collection),
                record.revision == change.revision
            else { return .isObsolete }
            guard !record.hasConflicts else { return .waits(isMarked: true) }
            let tree = try record.tree()
            var mark = tree.remotes[remote]
            switch state {
            case .hasNone:
                try transaction.forgetMark(record.id, remote: remote, in: collection)
                return .offer(over: nil)
            case .has(let revision):
                guard tree.contains(revision), !tree.awaitsBody(of: revision) else {
                    return .waits(isMarked: mark != nil)
                }
                if try transaction.noteHub(revision, has: record.id, remote: remote, in: collection) {
                    return .isObsolete
                }
                mark = revision
            case .unknown:
                guard mark != change.remoteAncestor else { return .waits(isMarked: mark != nil) }
            }
            return mark.map { tree.isCurrent($0) } == true ? .agrees : .offer(over: mark)
        }
    }
}
