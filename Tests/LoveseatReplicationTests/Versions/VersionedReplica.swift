import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// A collection in memory whose documents have versions. It knows the rules of version-vectors.md §11, and nothing of trees or of a disk.
final class VersionedReplica: Replica, ReplicaSource {
    /// A document as it is here.
    struct Stored: Hashable {
        var state: StateHistory
        var isDeleted = false
        var body: JSONText
        var sequence: UInt64
        /// The revision that the remote is known to have.
        var remote: RevisionName?
        /// A received state in conflict with this one.
        var rival: IncomingRevision?

        /// The name in this database.
        var id: RevisionID { RevisionID(generation: UInt32(sequence), digest: [0xDB]) }
    }

    /// Whether it belongs to an active side, which takes conflicts in and knows what its remote has.
    private let isActive: Bool
    private(set) var documents: [String: Stored] = [:]
    /// What was asked about lists, what was stored, and what failed, in order.
    private(set) var announced: [AnnouncedChange] = []
    private(set) var proposed: [ProposedChange] = []
    private(set) var received: [IncomingRevision] = []
    private(set) var failed: [DocumentRevision] = []
    private(set) var hubStates: [HubState] = []
    private(set) var requests: [RevisionRequest] = []
    private(set) var candidates: [FilterCandidate] = []
    private(set) var peers: Set<RevisionTree.PeerKind> = []
    /// Answers instead of the rules.
    var verdict: ChangeVerdict?
    var lastSequence: UInt64 = 0
    let connections = 1

    init(isActive: Bool) { self.isActive = isActive }

    /// Saves a document as a local edit does. `state`: as text, the vector and then the revisions of a tree.
    func save(
        _ id: String,
        _ vector: String,
        revisions: [String] = [],
        isDeleted: Bool = false,
        _ body: String
    )
        throws
    {
        let state = StateHistory(
            try VersionVector(vector),
            revisions: revisions.compactMap { RevisionID($0) }
        )
        store(id, state, isDeleted: isDeleted, try JSONText(body), remote: documents[id]?.remote)
    }

    private func store(
        _ id: String,
        _ state: StateHistory,
        isDeleted: Bool,
        _ body: JSONText,
        remote: RevisionName?
    ) {
        lastSequence += 1
        documents[id] = Stored(
            state: state,
            isDeleted: isDeleted,
            body: body,
            sequence: lastSequence,
            remote: remote
        )
    }

    // MARK: Feed

    func changes(_ query: ChangeQuery) -> ChangePage {
        let changed = documents.filter { $0.value.sequence > query.since }
            .sorted { $0.value.sequence < $1.value.sequence }
        let changes = changed.compactMap { id, document -> LocalChange? in
            if query.isForPush, document.remote == document.state.name || document.rival != nil { return nil }
            var change = LocalChange(
                sequence: document.sequence,
                documentID: id,
                revision: document.id,
                isDeleted: document.isDeleted,
                bodySize: document.body.bytes.count,
                remoteAncestor: query.isForPush ? document.remote : nil
            )
            if query.tellsVersions { change.state = document.state }
            return change
        }
        return ChangePage(changes, through: lastSequence, hasMore: false)
    }

    func conflicts(after sequence: UInt64) -> ConflictPage { ConflictPage(ids: [], next: nil) }

    func noteLosses() {}

    func revisions(_ requests: [RevisionRequest]) -> [OutgoingRevision] {
        self.requests += requests
        return requests.map { request in
            guard let document = documents[request.documentID] else { return .missing }
            guard document.id == request.revision else { return .obsolete(current: document.id) }
            var content = SendableRevision(
                revision: document.id,
                history: [],
                isDeleted: document.isDeleted,
                body: document.body
            )
            content.state = document.state
            if request.wantsDelta, let base = request.known.first, let body = bodies[base] {
                content.deltaBase = .init(revision: base, body: body)
            }
            return .found(content)
        }
    }

    // MARK: Inbox

    /// The bodies of revisions that are not current.
    var bodies: [RevisionName: JSONText] = [:]

    func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind) -> [ChangeVerdict] {
        announced += changes
        peers.insert(peer)
        return changes.map { change in
            if let verdict { return verdict }
            guard let document = documents[change.documentID] else { return .wanted(ancestors: []) }
            let state = change.state
            let names = [document.state.name, document.remote].compactMap { $0 }
            switch document.state.relation(to: state) {
            case .same, .newer:
                documents[change.documentID]?.remote = change.revision
                return .alreadyHere
            case .older: return .wanted(ancestors: names)
            case .conflict: return isActive ? .wanted(ancestors: names) : .conflict
            }
        }
    }

    func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind) -> [ProposalVerdict] {
        proposed += proposals
        peers.insert(peer)
        return proposals.map { proposal in
            guard let document = documents[proposal.documentID], let name = document.state.name else {
                return proposal.serverRevision == nil
                    ? .wanted : .conflict(StateHistory(VersionVector()))
            }
            let state = proposal.state
            let relation = document.state.relation(to: state)
            if relation == .same || relation == .newer { return .alreadyHere }
            if relation == .older { return .wanted }
            if let parent = proposal.serverRevision, name.isEquivalent(to: parent) { return .wanted }
            if proposal.serverRevision == nil, document.isDeleted { return .wanted }
            return .conflict(document.state)
        }
    }

    func refusal(of candidate: FilterCandidate) -> LoveseatError? {
        candidates.append(candidate)
        return nil
    }

    func writeRefusal(of revision: IncomingRevision) -> LoveseatError? { nil }

    func awaitedLeaves(of documentID: String, among leaves: [RevisionID]) -> [RevisionID] { [] }

    func insert(_ revisions: [IncomingRevision]) -> [InsertResult] {
        received += revisions
        return revisions.map { revision in
            guard case .state(let state) = revision.history else { return .badHistory }
            guard let document = documents[revision.documentID] else {
                store(revision, state)
                return .inserted
            }
            switch state.relation(to: document.state) {
            case .newer:
                store(revision, state)
                return .inserted
            case .same, .older:
                documents[revision.documentID]?.remote = state.name
                return .alreadyHere
            case .conflict where isActive:
                documents[revision.documentID]?.rival = revision
                return .conflict
            case .conflict: return .refusedConflict
            }
        }
    }

    private func store(_ revision: IncomingRevision, _ state: StateHistory) {
        if let old = documents[revision.documentID], let name = old.state.name { bodies[name] = old.body }
        store(
            revision.documentID,
            state,
            isDeleted: revision.isDeleted,
            revision.body,
            remote: isActive ? state.name : nil
        )
    }

    func body(of revision: RevisionName, _ documentID: String) -> JSONText? {
        if let document = documents[documentID], document.state.name == revision { return document.body }
        return bodies[revision]
    }

    func failures() -> [String] { [] }

    func noteFailure(_ failed: DocumentRevision, _ error: LoveseatError) { self.failed.append(failed) }

    func forgetFailures(_ documentIDs: [String]) {}

    func removeAccess(_ removals: [AccessRemoval]) -> [RemovalVerdict] { removals.map { _ in .neverThere } }

    // MARK: Disagreements

    func reconcile(_ change: LocalChange, _ state: HubState) -> Reconciliation {
        hubStates.append(state)
        guard let document = documents[change.documentID] else { return .isObsolete }
        switch state {
        case .has(let theirs):
            let relation = document.state.relation(to: theirs)
            return relation == .newer || relation == .same
                ? .offer(over: theirs.name) : .waits(isMarked: true)
        case .hasNone: return .offer(over: nil)
        case .unknown: return .waits(isMarked: true)
        }
    }

    func adoptCopy(_ copy: RevisionID, of documentID: String, parent: RevisionID) {}

    func merge(_ knowledge: TreeKnowledge, of documentID: String, current: RevisionID, takesContent: Bool)
        -> MergeOutcome
    { .agrees }

    // MARK: Checkpoints

    func checkpoint() -> StoredCheckpoint { StoredCheckpoint() }
    func saveCheckpoint(_ body: JSONText, coversMarks: Bool) {}
    func retractCheckpoint(_ body: JSONText) {}
    func beginCheckpoint() {}
    func believeMarks(_ trust: MarkTrust) {}

    func markSynced(_ revisions: [SyncedRevision]) {
        for revision in revisions {
            let document = documents[revision.documentID]
            guard let document, document.id == revision.revision else { continue }
            documents[revision.documentID]?.remote = document.state.name
        }
    }

    func peerCheckpoint(_ id: String) -> PeerCheckpoint? { nil }
    func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int) -> Int? { revision + 1 }

    // MARK: Blobs

    func holdBlobs(_ digests: [BlobDigest], of documentID: String) -> [BlobDigest] { [] }
    func releaseBlobs(_ digests: [BlobDigest]) {}
    func beginBlob(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) -> BlobStart { .here }
    func writeBlob(_ handle: BlobHandle, _ bytes: [UInt8]) {}
    func finishBlob(_ handle: BlobHandle, expected: BlobDigest) {}
    func cancelBlob(_ handle: BlobHandle) {}
    func suspendBlob(_ handle: BlobHandle) {}
    func blobLength(_ digest: BlobDigest, of documentID: String?) -> UInt64? { nil }
    func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) -> [UInt8] { [] }
    func proveBlob(_ digest: BlobDigest, nonce: [UInt8]) -> BlobDigest? { nil }

    // MARK: The source

    func bind(_ names: [CollectionName], checkpoints: [String]) -> [BoundCollection] {
        names.map { BoundCollection(exists: $0 == .default) }
    }

    /// How often versions were begun.
    private(set) var beginnings = 0

    func beginVersions() -> SourceID {
        beginnings += 1
        return SourceID(high: 0x7D47_5A3C_3645_4268, low: 0xA83C_52A6_F5B6_DA21)
    }

    func makeReplicas() -> [any Replica] { [self] }
}
