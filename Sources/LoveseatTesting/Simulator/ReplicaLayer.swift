package import LoveseatModel
package import LoveseatReplication

/// A replica seen through something that changes or notes what passes. Calls that a layer does not define go through as they are.
package protocol ReplicaLayer: Replica {
    var inner: any Replica { get }
    /// Whether the process that asks has died. Then nothing is answered or written any more.
    var isDead: Bool { get }
    /// Called before each question.
    func willAsk()
}

extension ReplicaLayer {
    package var isDead: Bool { false }

    /// Simulated connections do not share their memory.
    package var connections: Int { 1 }

    package func willAsk() {}

    /// The replica below, for as long as the process lives.
    package func alive() throws(LoveseatError) -> any Replica {
        if isDead { throw .dead }
        willAsk()
        return inner
    }

    package func checkpoint() throws(LoveseatError) -> StoredCheckpoint {
        try alive().checkpoint()
    }

    package func retractCheckpoint(_ body: JSONText) throws(LoveseatError) {
        try alive().retractCheckpoint(body)
    }

    package func saveCheckpoint(_ body: JSONText, coversMarks: Bool) throws(LoveseatError) {
        try alive().saveCheckpoint(body, coversMarks: coversMarks)
    }

    package func beginCheckpoint() throws(LoveseatError) {
        // It asks nothing of the disk that a crash could come before.
        if isDead { throw .dead }
        try inner.beginCheckpoint()
    }

    package func believeMarks(_ trust: MarkTrust) {
        if !isDead { inner.believeMarks(trust) }
    }

    package func markSynced(_ revisions: [SyncedRevision]) throws(LoveseatError) {
        try alive().markSynced(revisions)
    }

    package func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint? {
        try alive().peerCheckpoint(id)
    }

    package func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int)
        throws(LoveseatError) -> Int?
    {
        try alive().savePeerCheckpoint(body, as: id, replacing: revision)
    }

    package var lastSequence: UInt64 { inner.lastSequence }

    package func changes(_ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        try alive().changes(query)
    }

    package func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        try alive().evaluate(changes, from: peer)
    }

    package func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        try alive().evaluate(proposals, from: peer)
    }

    package func conflicts(after sequence: UInt64) throws(LoveseatError) -> ConflictPage {
        try alive().conflicts(after: sequence)
    }

    package func noteLosses() throws(LoveseatError) {
        try alive().noteLosses()
    }

    package func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision] {
        try alive().revisions(requests)
    }

    package func refusal(of candidate: FilterCandidate) -> LoveseatError? {
        inner.refusal(of: candidate)
    }

    package func writeRefusal(of revision: IncomingRevision) throws(LoveseatError) -> LoveseatError? {
        try alive().writeRefusal(of: revision)
    }

    package func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
        try alive().insert(revisions)
    }

    package func awaitedLeaves(of documentID: String, among leaves: [RevisionID]) throws(LoveseatError)
        -> [RevisionID]
    {
        try alive().awaitedLeaves(of: documentID, among: leaves)
    }

    package func body(of revision: RevisionName, _ documentID: String) throws(LoveseatError) -> JSONText? {
        try alive().body(of: revision, documentID)
    }

    package func failures() throws(LoveseatError) -> [String] {
        try alive().failures()
    }

    package func noteFailure(_ failed: DocumentRevision, _ error: LoveseatError) throws(LoveseatError) {
        try alive().noteFailure(failed, error)
    }

    package func forgetFailures(_ documentIDs: [String]) throws(LoveseatError) {
        try alive().forgetFailures(documentIDs)
    }

    package func removeAccess(_ removals: [AccessRemoval]) throws(LoveseatError) -> [RemovalVerdict] {
        try alive().removeAccess(removals)
    }

    package func reconcile(_ change: LocalChange, _ state: HubState) throws(LoveseatError) -> Reconciliation {
        try alive().reconcile(change, state)
    }

    package func adoptCopy(_ copy: RevisionID, of documentID: String, parent: RevisionID)
        throws(LoveseatError)
    {
        try alive().adoptCopy(copy, of: documentID, parent: parent)
    }

    package func merge(
        _ knowledge: TreeKnowledge,
        of documentID: String,
        current: RevisionID,
        takesContent: Bool
    ) throws(LoveseatError) -> MergeOutcome {
        try alive().merge(knowledge, of: documentID, current: current, takesContent: takesContent)
    }

    package func holdBlobs(_ digests: [BlobDigest], of documentID: String)
        throws(LoveseatError) -> [BlobDigest]
    {
        try alive().holdBlobs(digests, of: documentID)
    }

    package func releaseBlobs(_ digests: [BlobDigest]) {
        if !isDead { inner.releaseBlobs(digests) }
    }

    package func beginBlob(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws(LoveseatError)
        -> BlobStart
    {
        try alive().beginBlob(handle, digest, resumes: resumes)
    }

    package func writeBlob(_ handle: BlobHandle, _ bytes: [UInt8]) throws(LoveseatError) {
        try alive().writeBlob(handle, bytes)
    }

    package func finishBlob(_ handle: BlobHandle, expected: BlobDigest) throws(LoveseatError) {
        try alive().finishBlob(handle, expected: expected)
    }

    package func cancelBlob(_ handle: BlobHandle) {
        if !isDead { inner.cancelBlob(handle) }
    }

    package func suspendBlob(_ handle: BlobHandle) {
        if !isDead { inner.suspendBlob(handle) }
    }

    package func blobLength(_ digest: BlobDigest, of documentID: String?) throws(LoveseatError) -> UInt64? {
        try alive().blobLength(digest, of: documentID)
    }

    package func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8] {
        try alive().readBlob(digest, offset: offset, count: count)
    }

    package func proveBlob(_ digest: BlobDigest, nonce: [UInt8]) throws(LoveseatError) -> BlobDigest? {
        try alive().proveBlob(digest, nonce: nonce)
    }
}

extension LoveseatError {
    /// A dead process is not answered.
    static let dead = LoveseatError(.unexpectedError, "the process died")
}

/// The replicas of one connection, each seen through a layer.
package final class LayeredReplicas: ReplicaSource {
    private let inner: any ReplicaSource
    private let willBind: () throws(LoveseatError) -> Void
    private let layer: (any Replica, Int) -> any ReplicaLayer

    /// `layer`: makes the layer over a replica; its second argument is the position of the collection in the session.
    package init(
        _ inner: any ReplicaSource,
        willBind: @escaping () throws(LoveseatError) -> Void = {},
        layer: @escaping (_ replica: any Replica, _ collection: Int) -> any ReplicaLayer
    ) {
        (self.inner, self.willBind, self.layer) = (inner, willBind, layer)
    }

    package func bind(_ names: [CollectionName], checkpoints: [String]) throws(LoveseatError)
        -> [BoundCollection]
    {
        try willBind()
        return try inner.bind(names, checkpoints: checkpoints)
    }

    package func beginVersions() throws(LoveseatError) -> SourceID { try inner.beginVersions() }

    package func makeReplicas() -> [any Replica] {
        inner.makeReplicas().enumerated().map { layer($1, $0) }
    }
}
