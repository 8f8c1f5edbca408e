package import LoveseatModel
package import LoveseatReplication

/// A database seen through something that changes or notes what passes. Calls that a layer does not define go through as they are.
package protocol ReplicaLayer: RevisionStore {
    var inner: any RevisionStore { get }
    /// Whether the process that asks has died. Then nothing is answered or written any more.
    var isDead: Bool { get }
    /// Called before each question.
    func willAsk()
}

extension ReplicaLayer {
    package var isDead: Bool { false }

    package func willAsk() {}

    /// The database below, for as long as the process lives.
    package func alive() throws(LoveseatError) -> any RevisionStore {
        if isDead { throw LoveseatError(.unexpectedError, "the process died") }
        willAsk()
        return inner
    }

    package func checkpoint(of collection: Int) throws(LoveseatError) -> StoredCheckpoint {
        try alive().checkpoint(of: collection)
    }

    package func retractCheckpoint(_ body: JSONText, of collection: Int) throws(LoveseatError) {
        try alive().retractCheckpoint(body, of: collection)
    }

    package func saveCheckpoint(_ body: JSONText, of collection: Int, coversMarks: Bool) throws(LoveseatError)
    {
        try alive().saveCheckpoint(body, of: collection, coversMarks: coversMarks)
    }

    package func beginCheckpoint(of collection: Int) {
        if !isDead { inner.beginCheckpoint(of: collection) }
    }

    package func believeMarks(_ trust: MarkTrust, in collection: Int) {
        if !isDead { inner.believeMarks(trust, in: collection) }
    }

    package func markSynced(_ revisions: [SyncedRevision], in collection: Int) throws(LoveseatError) {
        try alive().markSynced(revisions, in: collection)
    }

    package func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint? {
        try alive().peerCheckpoint(id)
    }

    package func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int)
        throws(LoveseatError) -> Int?
    {
        try alive().savePeerCheckpoint(body, as: id, replacing: revision)
    }

    package func bind(_ names: [CollectionName], checkpoints: [String]) throws(LoveseatError)
        -> [BoundCollection]
    {
        try alive().bind(names, checkpoints: checkpoints)
    }

    package func lastSequence(in collection: Int) -> UInt64 {
        inner.lastSequence(in: collection)
    }

    package func changes(in collection: Int, _ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        try alive().changes(in: collection, query)
    }

    package func judge(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        try alive().judge(changes, from: peer, in: collection)
    }

    package func judge(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        try alive().judge(proposals, from: peer, in: collection)
    }

    package func conflicts(in collection: Int, after sequence: UInt64) throws(LoveseatError) -> ConflictPage {
        try alive().conflicts(in: collection, after: sequence)
    }

    package func noteLosses(in collection: Int) throws(LoveseatError) {
        try alive().noteLosses(in: collection)
    }

    package func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
    {
        try alive().revisions(requests, in: collection)
    }

    package func refusal(of candidate: FilterCandidate, in collection: Int) -> LoveseatError? {
        inner.refusal(of: candidate, in: collection)
    }

    package func writeRefusal(of revision: IncomingRevision, in collection: Int) throws(LoveseatError)
        -> LoveseatError?
    {
        try alive().writeRefusal(of: revision, in: collection)
    }

    package func insert(_ revisions: [IncomingRevision], in collection: Int) throws(LoveseatError)
        -> [InsertResult]
    {
        try alive().insert(revisions, in: collection)
    }

    package func body(of revision: RevisionID, _ documentID: String, in collection: Int)
        throws(LoveseatError) -> JSONText?
    {
        try alive().body(of: revision, documentID, in: collection)
    }

    package func failures(in collection: Int) throws(LoveseatError) -> [String] {
        try alive().failures(in: collection)
    }

    package func noteFailure(_ failed: DocumentRevision, _ error: LoveseatError, in collection: Int)
        throws(LoveseatError)
    {
        try alive().noteFailure(failed, error, in: collection)
    }

    package func removeAccess(_ removals: [AccessRemoval], in collection: Int) throws(LoveseatError)
        -> [RemovalVerdict]
    {
        try alive().removeAccess(removals, in: collection)
    }

    package func meet(_ change: LocalChange, _ state: HubState, in collection: Int) throws(LoveseatError)
        -> Meeting
    {
        try alive().meet(change, state, in: collection)
    }

    package func adoptCopy(_ copy: RevisionID, of documentID: String, parent: RevisionID, in collection: Int)
        throws(LoveseatError)
    {
        try alive().adoptCopy(copy, of: documentID, parent: parent, in: collection)
    }

    package func hear(
        _ knowledge: TreeKnowledge,
        of documentID: String,
        current: RevisionID,
        takesContent: Bool,
        in collection: Int
    ) throws(LoveseatError) -> Hearing {
        try alive().hear(
            knowledge,
            of: documentID,
            current: current,
            takesContent: takesContent,
            in: collection
        )
    }

    package func holdBlobs(_ digests: [BlobDigest], of documentID: String, in collection: Int)
        throws(LoveseatError) -> [BlobDigest]
    {
        try alive().holdBlobs(digests, of: documentID, in: collection)
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

    package func blobLength(_ digest: BlobDigest, of documentID: String?, in collection: Int)
        throws(LoveseatError) -> UInt64?
    {
        try alive().blobLength(digest, of: documentID, in: collection)
    }

    package func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8] {
        try alive().readBlob(digest, offset: offset, count: count)
    }

    package func proveBlob(_ digest: BlobDigest, nonce: [UInt8], in collection: Int) throws(LoveseatError)
        -> BlobDigest?
    {
        try alive().proveBlob(digest, nonce: nonce, in: collection)
    }
}
