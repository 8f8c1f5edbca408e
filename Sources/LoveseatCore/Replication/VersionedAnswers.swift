import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The answers of a replica to a peer with version vectors (version-vectors.md §11, docs/decisions/0015).
struct VersionedAnswers {
    private let replica: CollectionReplica
    private let collection: CollectionHandle
    private let remote: Int?

    init(_ replica: CollectionReplica) {
        (self.replica, collection, remote) = (replica, replica.collection, replica.remote)
    }

    /// Which announced states are wanted. `records`: the documents as they are here.
    func verdicts(on changes: [AnnouncedChange], over records: [DocumentRecord?]) throws
        -> [ChangeVerdict]
    {
        let access = replica.accessNow
        var known: [(change: AnnouncedChange, announcement: StateAnnouncement)] = []
        let verdicts: [ChangeVerdict] = try zip(changes, records).map { change, record in
            // To the peer, a document that it may not read does not exist. Writing it is refused when the revision arrives.
            guard let record, try access?.mayRead(record) ?? true else { return .wanted(ancestors: []) }
            let tree = try record.tree()
            let relation = tree.versions.relation(ofAnnounced: change.state)
            switch relation {
            case .same, .older:
                // A removal says nothing about the peer's state, and a passive side keeps no marks.
                let isUnmarked = remote.map { !tree.versions.isNoted(change, by: $0) } ?? false
                if !change.isRemoval,
                    isUnmarked || !change.mayBeOld && tree.versions.losesTo(change.state)
                {
                    var announcement = StateAnnouncement(change.state, remote: remote)
                    announcement.isOutdated = change.mayBeOld
                    known.append((change, announcement))
                }
                return .alreadyHere
            case .conflict where remote == nil: return .conflict
            case .newer, .conflict:
                return .wanted(ancestors: tree.versions.names(of: record.revision, and: remote))
            }
        }
        // Often there is nothing new to note.
        if known.isEmpty { return verdicts }
        try replica.marking { transaction in
            for (change, announcement) in known {
                // A peer whose clock is wrong may have what it announces. It is only not recorded.
                do {
                    try transaction.versionTable.note(announcement, of: change.documentID, in: collection)
                } catch is VersionError {}
            }
        }
        replica.ledger.mark(known.lazy.map(\.change.documentID))
        return verdicts
    }

    /// Records what proposals say of states that are here. The peer may have decided for one of them, whose vector then has grown,
    /// and has to be told of a newer one than that.
    func noteKnown(
        _ proposals: [ProposedChange],
        _ verdicts: [ProposalVerdict],
        over records: [DocumentRecord?]
    ) throws {
        let grown = try zip(zip(proposals, verdicts), records).compactMap {
            entry,
            record -> ProposedChange? in
            let (proposal, verdict) = entry
            guard verdict == .alreadyHere, let record, let vector = proposal.vector else { return nil }
            let tree = try record.tree()
            if tree.versions.insists(proposal.state, on: proposal.serverRevision) { return nil }
            if tree.versions.losesTo(proposal.state) { return proposal }
            let known = tree.versions.node(named: proposal.revision).flatMap { tree.vectors[$0] }
            return known.map { $0.united(with: vector) == $0 } ?? true ? nil : proposal
        }
        // Most proposals of known states say nothing new.
        if grown.isEmpty { return }
        try replica.store.write(call: "replication") { transaction in
            for proposal in grown {
                // A peer whose clock is wrong is not refused because of what is here already.
                do {
                    try transaction.versionTable.note(
                        StateAnnouncement(proposal.state, remote: nil),
                        of: proposal.documentID,
                        in: collection
                    )
                } catch is VersionError {}
            }
        }
    }

    /// Stores a received state.
    func insert(_ incoming: IncomingState, _ transaction: StoreWriteTransaction) throws -> InsertResult {
        do {
            switch try transaction.versionTable.insert(incoming, in: collection) {
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

extension TreeVersions {
    /// The revision that a peer names, with its attributes; nil if it is not here.
    func known(by name: RevisionName) -> RevisionTree.Node? { node(named: name).flatMap { tree.node($0) } }

    /// The names of the current revision and of the one that the remote has, each once.
    fileprivate func names(of current: RevisionID, and remote: RevisionTree.Remote?) -> [RevisionName] {
        let mark = remote.flatMap { tree.remotes[$0] }
        return [current, mark == current ? nil : mark].compactMap {
            $0.flatMap { state(of: $0).name }
        }
    }

    /// Whether everything that an announcement of a known state says has been recorded.
    fileprivate func isNoted(_ change: AnnouncedChange, by remote: RevisionTree.Remote) -> Bool {
        guard let known = node(named: change.revision), tree.remotes[remote] == known,
            known == tree.current?.id
        else {
            return false
        }
        guard let vector = change.vector else { return true }
        return tree.vectors[known].map { $0.united(with: vector) == $0 } ?? false
    }

    /// Whether a proposal would be in conflict (version-vectors.md §11.2).
    func verdict(on proposal: ProposedChange) -> ProposalVerdict {
        switch relation(ofProposed: proposal.state, on: proposal.serverRevision) {
        case .same, .older: .alreadyHere
        case .newer: .wanted
        case .conflict: .conflict(tree.current.map { state(of: $0.id) } ?? StateHistory(VersionVector()))
        }
    }
}

extension RevisionRequest {
    /// The current revision of a document, as a peer with version vectors is to get it.
    ///
    /// Couchbase Lite 4 cannot be told any more of a document that it has stored under the ID of another peer's revision (version-vectors.md,
    /// correction 14). So a document without a vector travels under the version that stands for its ID, unless the peer has edited it since:
    /// then only the ID shows that the edit is newer.
    func state(of record: DocumentRecord, in tree: RevisionTree) -> OutgoingRevision {
        var content = SendableRevision(
            revision: record.revision,
            history: [],
            isDeleted: record.isDeleted,
            body: record.body
        )
        let state = tree.versions.state(of: record.revision, toPeerWith: known)
        content.state = encoded(state, of: record.revision, in: tree) ?? state
        if !state.vector.isEmpty {
            let forms = otherForms(of: state, tree.line(record.revision).dropFirst(), in: tree)
            content.hasOtherForm = refusedForms < forms.count
            if refusedForms > 0, let form = forms.prefix(refusedForms).last { content.state = form }
        }
        if wantsDelta, !record.isDeleted { content.deltaBase = versionedBase(in: tree) }
        return .found(content)
    }

    /// The state with other revisions behind the vector than by the rule. Couchbase Lite takes a state only with the last revision before its own
    /// first vector (version-vectors.md, correction 10), which its answers do not show: usually it is one of the newest without a vector here.
    private func otherForms(
        of state: StateHistory,
        _ ancestors: ArraySlice<RevisionID>,
        in tree: RevisionTree
    ) -> [StateHistory] {
        let lists = ancestors.lazy.filter { tree.vectors[$0] == nil && [$0] != state.revisions.prefix(1) }
            .prefix(3).map { [$0] }
        return ((state.revisions.isEmpty ? [] : [[]]) + lists)
            .map { StateHistory(state.vector, revisions: $0) }
    }

    /// A state without a vector under the version that stands for its ID, with the revisions of the peer behind it; nil if it travels as it is. A peer
    /// that names a version has no list of revisions to compare with one.
    private func encoded(_ state: StateHistory, of id: RevisionID, in tree: RevisionTree) -> StateHistory? {
        guard state.vector.isEmpty, let version = id.encodedVersion else { return nil }
        switch known.first {
        case .version(let name)?
        where name.source != .revisionTree && known.contains { $0.treeID != nil }
            && tree.versions.node(named: .version(name)) == nil:
            return nil
        case .version?, nil: return StateHistory(VersionVector(version))
        case .revision(let known)?:
            // A peer that has this very revision keeps its ID.
            if known == id { return nil }
            let place = state.revisions.firstIndex(of: known) ?? state.revisions.endIndex
            return StateHistory(VersionVector(version), revisions: Array(state.revisions[place...]))
        }
    }

    /// The first revision that the peer has and whose body is here, unless it is a deletion.
    private func versionedBase(in tree: RevisionTree) -> SendableRevision.DeltaBase? {
        for name in known {
            guard let node = tree.versions.known(by: name), let body = node.body else { continue }
            return node.isDeleted || node.isDamaged ? nil : .init(revision: name, body: body)
        }
        return nil
    }
}

extension IncomingState {
    init(_ revision: IncomingRevision, _ state: StateHistory, from remote: Int?) {
        self.init(
            documentID: revision.documentID,
            state: state,
            isDeleted: revision.isDeleted,
            body: revision.body,
            remote: remote
        )
        (isOutdated, parent) = (revision.isOutdated, revision.parent)
    }
}
