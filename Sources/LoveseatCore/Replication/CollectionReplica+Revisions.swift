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
        if request.peer == .versions {
            return request.state(of: record, in: try tree ?? record.tree())
        }
        return request.revision(of: record, in: tree)
    }

    /// Leaves out of the read revisions what may not be sent. A peer gets the whole tree of a document, since both must come to the same
    /// current revision. But it gets no other content, unless it may read every candidate and the app sends them. Called outside
    /// transactions, since the app may use the database.
    func withholding(
        _ found: [OutgoingRevision],
        _ requests: [RevisionRequest],
        _ access: CollectionAccess?
    ) -> [OutgoingRevision] {
        // Most documents have a single line, of which there is nothing to tell.
        guard found.contains(where: \.bringsTree) else { return found }
        return zip(requests, found).map { request, outgoing in
            guard case .found(var content) = outgoing, let knowledge = content.knowledge else {
                return outgoing
            }
            content.knowledge = knowledge.sendable(
                of: request.documentID,
                to: access,
                by: rule?.pushFilter,
                keeping: nil
            )
            return .found(content)
        }
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
                var knowledge = rule?.admitted(knowledge, of: revision.documentID) ?? knowledge
                verdict.foreign?.removeDecisions(from: &knowledge)
                return knowledge
            }
        }
        let results: [InsertResult] = try marking { transaction in
            try zip(zip(revisions, knowledge), verdicts).map { arrival, verdict in
                let (revision, knowledge) = arrival
                if let refusal = verdict.refusal { return .failed(refusal) }
                if case .state(let state) = revision.history {
                    var incoming = IncomingState(revision, state, from: remote)
                    (incoming.asksResolver, incoming.followed) = (asksResolver, followed)
                    return try VersionedAnswers(self).insert(incoming, transaction)
                }
                var incoming = IncomingRecord(revision, knowledge, from: remote)
                (incoming.asksResolver, incoming.followed) = (asksResolver, followed)
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
                } catch let error as VersionError {
                    return .failed(LoveseatError(.badRevisionID, "\(error)"))
                } catch let error as LoveseatError where error.code == .corruptRevisionData {
                    return .failed(error)
                } catch let error as OtherContent {
                    return .failed(LoveseatError(.httpConflict, error.reason))
                }
            }
        }
        let stored = zip(revisions, results).filter { $1.isStored }.map { $0.0 }
        try forgetFailures(stored.filter { !$0.isIncomplete }.map(\.documentID))
        ledger.mark(stored.map(\.documentID))
        // Revisions that the peer announces after a newer one than the pushed one are newer, too.
        for (revision, result) in zip(revisions, results) where result == .inserted && !revision.isOutdated {
            pushed.noteNews(of: revision.documentID)
        }
        return withholding(results, of: revisions)
    }

    /// Leaves out content that a peer may not read.
    private func withholding(_ results: [InsertResult], of revisions: [IncomingRevision]) -> [InsertResult] {
        let access = accessNow
        return zip(results, revisions).map { result, revision in
            guard case .outranked(let knowledge, let current) = result else { return result }
            return .outranked(
                knowledge.sendable(
                    of: revision.documentID,
                    to: access,
                    by: rule?.pushFilter,
                    keeping: current
                ),
                current: current
            )
        }
    }

    /// A tree without the content that the app's filter does not let in, or that its resolver must be asked about when the pull brings it.
    /// Called outside transactions.
    func admitted(_ knowledge: TreeKnowledge, of id: String, takesContent: Bool) -> TreeKnowledge {
        guard takesContent, rule?.asksResolver != true else { return knowledge.keepingBody(of: nil) }
        return rule?.admitted(knowledge, of: id) ?? knowledge
    }

    package func awaitedLeaves(of id: String, among leaves: [RevisionID]) throws(LoveseatError)
        -> [RevisionID]
    {
        try source.asking {
            try store.readRows { try $0.record(id, in: collection)?.tree().rule.awaited(among: leaves) } ?? []
        }
    }

    package func body(of revision: RevisionName, _ id: String) throws(LoveseatError) -> JSONText? {
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
                let outcome = try transaction.receivedTable.merge(
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
            } catch let error as VersionError {
                return .isRefused(LoveseatError(.badRevisionID, "\(error)"))
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
        return try marking { try Reconciler(remote, collection, $0).reconciliation(change, state) }
    }
}

extension TreeKnowledge {
    /// `keeping`: the revision whose content is sent in any case, if the peer may read it.
    fileprivate func sendable(
        of id: String,
        to access: CollectionAccess?,
        by filter: CollectionRules.Filter?,
        keeping current: RevisionID?
    ) -> TreeKnowledge {
        if access == nil, filter == nil { return self }
        let hidden = nodes.filter { node in
            if access?.ruling.maySend(node, of: id) == false { return true }
            return FilterCandidate(node, of: id).map { filter?($0, false) == false } ?? false
        }
        guard !hidden.isEmpty else { return self }
        return keepingBody(of: hidden.contains { $0.id == current } ? nil : current)
    }
}

extension IncomingRecord {
    fileprivate init(_ revision: IncomingRevision, _ knowledge: TreeKnowledge?, from remote: Int?) {
        self.init(
            documentID: revision.documentID,
            history: revision.line,
            isDeleted: revision.isDeleted,
            body: revision.body,
            sender: revision.sender,
            remote: remote
        )
        (origin, self.knowledge) = (revision.origin, knowledge)
        (isOutdated, mayBeOld, restOf) = (revision.isOutdated, revision.mayBeOld, revision.restOf)
    }
}
