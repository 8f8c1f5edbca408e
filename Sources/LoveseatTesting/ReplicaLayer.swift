package import LoveseatModel
package import LoveseatReplication

/// A database seen through something that changes or notes what passes; what a layer does not define goes through as it is.
package protocol ReplicaLayer: RevisionStore {
    var inner: any RevisionStore { get }
}

extension ReplicaLayer {
    package func checkpoint(of collection: Int) throws(LoveseatError) -> StoredCheckpoint {
        try inner.checkpoint(of: collection)
    }

    package func saveCheckpoint(_ body: JSONText, of collection: Int, coversMarks: Bool) throws(LoveseatError)
    {
        try inner.saveCheckpoint(body, of: collection, coversMarks: coversMarks)
    }

    package func beginCheckpoint(of collection: Int) {
        inner.beginCheckpoint(of: collection)
    }

    package func believeMarks(_ trust: MarkTrust, in collection: Int) {
        inner.believeMarks(trust, in: collection)
    }

    package func markSynced(_ revisions: [DocumentRevision], in collection: Int) throws(LoveseatError) {
        try inner.markSynced(revisions, in: collection)
    }

    package func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint? {
        try inner.peerCheckpoint(id)
    }

    package func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int)
        throws(LoveseatError) -> Int?
    {
        try inner.savePeerCheckpoint(body, as: id, replacing: revision)
    }

    package func bind(_ names: [CollectionName], checkpoints: [String]) throws(LoveseatError)
        -> [BoundCollection]
    {
        try inner.bind(names, checkpoints: checkpoints)
    }

    package func lastSequence(in collection: Int) -> UInt64 {
        inner.lastSequence(in: collection)
    }

    package func changes(in collection: Int, _ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        try inner.changes(in: collection, query)
    }

    package func judge(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        try inner.judge(changes, from: peer, in: collection)
    }

    package func judge(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        try inner.judge(proposals, from: peer, in: collection)
    }

    package func conflicts(in collection: Int, after sequence: UInt64) throws(LoveseatError) -> ConflictPage {
        try inner.conflicts(in: collection, after: sequence)
    }

    package func revocations(in collection: Int) throws(LoveseatError) -> [LocalChange] {
        try inner.revocations(in: collection)
    }

    package func forgetGrants(_ ids: [String], in collection: Int) throws(LoveseatError) {
        try inner.forgetGrants(ids, in: collection)
    }

    package func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
    {
        try inner.revisions(requests, in: collection)
    }

    package func admits(_ candidate: FilterCandidate, in collection: Int) -> Bool {
        inner.admits(candidate, in: collection)
    }

    package func insert(_ revisions: [IncomingRevision], in collection: Int) throws(LoveseatError)
        -> [InsertResult]
    {
        try inner.insert(revisions, in: collection)
    }

    package func expand(_ delta: [UInt8], of documentID: String, base: RevisionID, in collection: Int)
        throws(LoveseatError) -> DeltaExpansion
    {
        try inner.expand(delta, of: documentID, base: base, in: collection)
    }

    package func failures(in collection: Int) throws(LoveseatError) -> [String] {
        try inner.failures(in: collection)
    }

    package func noteFailure(_ failed: DocumentRevision, _ error: LoveseatError, in collection: Int)
        throws(LoveseatError)
    {
        try inner.noteFailure(failed, error, in: collection)
    }

    package func removeAccess(_ removals: [AccessRemoval], in collection: Int) throws(LoveseatError)
        -> [RemovalVerdict]
    {
        try inner.removeAccess(removals, in: collection)
    }

    package func meet(_ change: LocalChange, _ state: HubState, in collection: Int) throws(LoveseatError)
        -> Meeting
    {
        try inner.meet(change, state, in: collection)
    }

    package func adoptCopy(_ copy: RevisionID, of documentID: String, parent: RevisionID, in collection: Int)
        throws(LoveseatError)
    {
        try inner.adoptCopy(copy, of: documentID, parent: parent, in: collection)
    }

    package func hear(
        _ knowledge: TreeKnowledge,
        of documentID: String,
        current: RevisionID,
        takesContent: Bool,
        in collection: Int
    ) throws(LoveseatError) -> Hearing {
        try inner.hear(
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
        try inner.holdBlobs(digests, of: documentID, in: collection)
    }

    package func releaseBlobs(_ digests: [BlobDigest]) {
        inner.releaseBlobs(digests)
    }

    package func beginBlob(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws(LoveseatError)
        -> BlobStart
    {
        try inner.beginBlob(handle, digest, resumes: resumes)
    }

    package func writeBlob(_ handle: BlobHandle, _ bytes: [UInt8]) throws(LoveseatError) {
        try inner.writeBlob(handle, bytes)
    }

    package func finishBlob(_ handle: BlobHandle, expected: BlobDigest) throws(LoveseatError) {
        try inner.finishBlob(handle, expected: expected)
    }

    package func cancelBlob(_ handle: BlobHandle) {
        inner.cancelBlob(handle)
    }

    package func suspendBlob(_ handle: BlobHandle) {
        inner.suspendBlob(handle)
    }

    package func blobLength(_ digest: BlobDigest, of documentID: String?, in collection: Int)
        throws(LoveseatError) -> UInt64?
    {
        try inner.blobLength(digest, of: documentID, in: collection)
    }

    package func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8] {
        try inner.readBlob(digest, offset: offset, count: count)
    }

    package func proveBlob(_ digest: BlobDigest, nonce: [UInt8], in collection: Int) throws(LoveseatError)
        -> BlobDigest?
    {
        try inner.proveBlob(digest, nonce: nonce, in: collection)
    }
}
