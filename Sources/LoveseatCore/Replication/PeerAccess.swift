package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// The access of one connected peer, by a listener's policy.
package final class PeerAccess: Sendable {
    private let peer: PeerIdentity
    private let policy: AccessPolicy
    /// The name under which the documents that the peer was sent are remembered.
    let name: String

    package init(peer: PeerIdentity, policy: AccessPolicy) {
        self.peer = peer
        self.policy = policy
        name = peer.recordName
    }

    func access(to collection: CollectionName) -> DocumentAccess { policy.decide(peer, collection, nil) }

    func access(to candidate: FilterCandidate, in collection: CollectionName) -> DocumentAccess {
        min(access(to: collection), policy.decide(peer, collection, Document(candidate)))
    }

    /// Whether the peer may read a document as it is now. Called outside transactions, since the app's policy may use the
    /// database.
    func mayRead(_ record: DocumentRecord, in collection: CollectionHandle, _ store: DocumentStore) throws
        -> Bool
    {
        if try access(to: FilterCandidate(judging: record), in: collection.name) >= .read { return true }
        // A peer that was sent a document is told of its deletion, and of nothing else.
        guard record.isDeleted, record.body == .emptyObject, access(to: collection.name) >= .read
        else {
            return false
        }
        return try store.readRows { try $0.isGranted(record.id, in: collection, to: name) }
    }
}

extension FilterCandidate {
    /// Creates the revision about which a policy is asked: for a tombstone, the revision that it deletes.
    init(judging record: DocumentRecord) throws {
        guard record.isDeleted, record.encodedTree != nil,
            let deleted = try record.tree().deleted(by: record.revision),
            let candidate = FilterCandidate(deleted, of: record.id)
        else {
            self.init(record)
            return
        }
        self = candidate
    }
}

/// Content of a document that a peer may not write, and about which the peer may not decide.
struct ForeignContent {
    /// The candidates and all their copies.
    private(set) var revisions: Set<RevisionID> = []
    /// The candidates, their copies and the ancestors of both.
    private var lines: Set<RevisionID> = []
    /// The origins of documents of which the peer may write no candidate.
    private var origins: Set<RevisionID> = []

    init() {}

    init(
        _ candidates: [RevisionTree.Candidate],
        besides others: Set<RevisionTree.Candidate>,
        in tree: RevisionTree
    ) {
        if candidates.isEmpty { return }
        let originals = Set(candidates.map(\.original))
        revisions = originals.union(candidates.map(\.node.id))
        revisions.formUnion(tree.copies.keys.filter { originals.contains(tree.original($0)) })
        lines = Set(revisions.flatMap { tree.line($0) }).union(revisions)
        origins = Set(originals.map { tree.origin(of: $0) })
        origins.subtract(others.map { tree.origin(of: $0.original) })
    }

    /// Removes decisions about the content: that it is closed, is a copy of other content or the original of other content, or that other
    /// content belongs to its document.
    func removeDecisions(from knowledge: inout TreeKnowledge) {
        knowledge.closed.subtract(revisions)
        knowledge.copies = knowledge.copies.filter { copy in
            guard let name = CopyName(copy), !lines.contains(copy) else { return false }
            return !revisions.contains(where: name.isOf) && !origins.contains(where: name.isOfLine)
        }
    }
}

extension PeerIdentity {
    /// The name under which the documents and blobs that the peer was sent, or has sent, are remembered.
    var recordName: String {
        username.map { "user:\($0)" }
            ?? certificates.first.map { "certificate:" + Base64.encode(Hashing.sha256($0.derBytes)) }
            ?? "address:\(address)"
    }
}

extension ConnectionStore {
    /// Whether the peer may read a document as it is now.
    func mayRead(_ record: DocumentRecord, in collection: CollectionHandle) throws -> Bool {
        try access?.mayRead(record, in: collection, store) ?? true
    }

    /// Leaves out revisions that the peer may not read, and remembers that the peer has the others.
    func granting(
        _ found: [OutgoingRevision],
        _ requests: [RevisionRequest],
        in collection: CollectionHandle
    ) throws -> [OutgoingRevision] {
        guard let access else { return found }
        let granted = try zip(requests, found).map { request, revision -> OutgoingRevision in
            guard case .found(let content) = revision else { return revision }
            if content.isDeleted,
                let record = try store.readRows({ try $0.record(request.documentID, in: collection) }),
                record.revision == content.revision
            {
                return try mayRead(record, in: collection) ? revision : .missing
            }
            let candidate = FilterCandidate(
                documentID: request.documentID,
                revision: content.revision,
                isDeleted: content.isDeleted,
                body: content.body
            )
            return access.access(to: candidate, in: collection.name) >= .read ? revision : .missing
        }
        let ids = zip(requests, granted).compactMap { request, revision -> String? in
            if case .found = revision { request.documentID } else { nil }
        }
        if !ids.isEmpty {
            try store.write(call: "replication") { try $0.grant(ids, in: collection, to: access.name) }
        }
        return granted
    }

    /// The policy's decision about a pushed revision.
    struct PushVerdict {
        /// Why the peer may not write it; nil if it may.
        var refusal: LoveseatError?
        /// Content of the document that the peer may not write.
        var foreign = ForeignContent()
    }

    package func writeRefusal(of revision: IncomingRevision, in index: Int) throws(LoveseatError)
        -> LoveseatError?
    {
        try asking { try judge([revision], in: collections[index])[0].refusal }
    }

    /// Returns the policy's decisions about pushed revisions, and remembers that the peer has those that it may write.
    func verdicts(on revisions: [IncomingRevision], in collection: CollectionHandle) throws -> [PushVerdict] {
        let verdicts = try judge(revisions, in: collection)
        guard let access else { return verdicts }
        let written = zip(revisions, verdicts).compactMap { $1.refusal == nil ? $0.documentID : nil }
        if !written.isEmpty {
            try store.write(call: "replication") { try $0.grant(written, in: collection, to: access.name) }
        }
        return verdicts
    }

    private func judge(_ revisions: [IncomingRevision], in collection: CollectionHandle) throws
        -> [PushVerdict]
    {
        guard let access else { return revisions.map { _ in PushVerdict() } }
        let records = try store.readRows { view in
            try revisions.map { try view.record($0.documentID, in: collection) }
        }
        return try zip(revisions, records).map { revision, record -> PushVerdict in
            let candidate = FilterCandidate(
                documentID: revision.documentID,
                revision: revision.history[0],
                isDeleted: revision.isDeleted,
                body: revision.body
            )
            // Deleting a document requires the right to write it: a tombstone has no content to decide by. A peer that may write the
            // deleted document may create it again.
            let current = try record.map {
                access.access(to: try FilterCandidate(judging: $0), in: collection.name)
            }
            let next =
                revision.isDeleted && current != nil
                ? .write : access.access(to: candidate, in: collection.name)
            // The tree that the peer sends with the revision becomes part of the document, too, unless it is that already.
            let known = try record.map { try $0.tree() }
            let told = revision.knowledge?.nodes.lazy
                .filter { !$0.isDeleted && known?.node($0.id)?.body == nil }
                .compactMap { FilterCandidate($0, of: revision.documentID) }
                .map { access.access(to: $0, in: collection.name) }
                .min()
            let foreign = known.map { foreignContent(revision.documentID, $0, in: collection) }
            let isForbidden = min(current ?? .write, min(next, told ?? .write)) < .write
            guard isForbidden || revision.goesOn(from: foreign?.revisions ?? [], in: known) else {
                return PushVerdict(foreign: foreign ?? ForeignContent())
            }
            let error = LoveseatError(.httpForbidden, "you may not write \"\(revision.documentID)\"")
            return PushVerdict(refusal: error)
        }
    }

    /// Candidates beside the current revision that the peer may not write.
    private func foreignContent(_ id: String, _ tree: RevisionTree, in collection: CollectionHandle)
        -> ForeignContent
    {
        guard let access, !tree.isLine else { return ForeignContent() }
        let current = tree.current.map { tree.original($0.id) }
        let candidates = tree.open(among: tree.candidates)
        let foreign = candidates.filter { candidate in
            guard candidate.original != current, !candidate.node.isDeleted,
                let content = FilterCandidate(candidate.node, of: id)
            else { return false }
            return access.access(to: content, in: collection.name) < .write
        }
        return ForeignContent(foreign, besides: Set(candidates).subtracting(foreign), in: tree)
    }

    /// Notes which documents the peer was sent and may not read any more. One that it may read again can be lost once more.
    func noteLosses(_ collection: CollectionHandle) throws {
        // Without a policy a peer may read everything.
        guard let access else { return }
        let granted = try store.readRows { view in
            try view.grants(in: collection, to: access.name).compactMap { id, isLost in
                try view.record(id, in: collection).map { (record: $0, isLost: isLost) }
            }
        }
        let alive = granted.filter { !$0.record.isDeleted }
        let (lost, back) = try (
            alive.filter { try !$0.isLost && !mayRead($0.record, in: collection) }.map(\.record.id),
            alive.filter { try $0.isLost && mayRead($0.record, in: collection) }.map(\.record.id)
        )
        if lost.isEmpty, back.isEmpty { return }
        try store.write(call: "replication") { transaction in
            try transaction.grant(back, in: collection, to: access.name)
            try transaction.noteLosses(lost, in: collection, of: access.name)
        }
    }
}

extension IncomingRevision {
    /// Whether the revision, or one in its tree, is new and descends from one of these.
    fileprivate func goesOn(from ids: Set<RevisionID>, in tree: RevisionTree?) -> Bool {
        guard let tree, !ids.isEmpty else { return false }
        let parents = (knowledge?.nodes ?? []).filter { !tree.contains($0.id) }.compactMap(\.parent)
        return parents.contains(where: ids.contains)
            || (!tree.contains(history[0]) && history.dropFirst().contains(where: ids.contains))
    }
}
