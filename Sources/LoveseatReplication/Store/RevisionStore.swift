package import LoveseatModel

/// The database as replication uses it, whatever the wire.
///
/// One object serves one connection. It is called from the connection's driver only, and may block. Each call is at most one transaction,
/// which is committed when the call returns. Collections are named by their position in the session. Methods that throw report the
/// database's errors: ``LoveseatError/Code/busy``, an error of the disk, or that a collection is gone.
package protocol RevisionStore: AnyObject {
    /// How many connections share the memory of this database, this one included.
    var connections: Int { get }

    // MARK: Checkpoints and marks

    func checkpoint(of collection: Int) throws(LoveseatError) -> StoredCheckpoint
    /// Saves a checkpoint. `coversMarks`: whether the peer has every revision that it was marked as having when the checkpoint was sent to
    /// it.
    func saveCheckpoint(_ body: JSONText, of collection: Int, coversMarks: Bool) throws(LoveseatError)
    /// Saves the rest of a checkpoint of which the peer has lost a part. It is on the disk before this returns.
    func retractCheckpoint(_ body: JSONText, of collection: Int) throws(LoveseatError)
    /// Notes that a checkpoint is about to be sent to the peer: it covers the marks made before, and none that come later.
    func beginCheckpoint(of collection: Int)
    /// Sets which marks for the remote count from now on.
    func believeMarks(_ trust: MarkTrust, in collection: Int)
    func markSynced(_ revisions: [SyncedRevision], in collection: Int) throws(LoveseatError)
    /// A checkpoint that the peer keeps here.
    func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint?
    /// Returns the new number of the checkpoint; nil if the peer did not know the current one.
    func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int) throws(LoveseatError)
        -> Int?
    /// Opens the collections that a passive peer was asked for.
    func bind(_ names: [CollectionName], checkpoints: [String]) throws(LoveseatError) -> [BoundCollection]

    // MARK: Changes

    func lastSequence(in collection: Int) -> UInt64
    func changes(in collection: Int, _ query: ChangeQuery) throws(LoveseatError) -> ChangePage
    /// Which of a peer's announced changes are wanted (replication.md §7.2).
    func judge(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ChangeVerdict]
    /// Which of a peer's proposed changes would conflict (replication.md §8).
    func judge(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ProposalVerdict]
    /// Documents in conflict, in the order of their sequences.
    func conflicts(in collection: Int, after sequence: UInt64) throws(LoveseatError) -> ConflictPage
    /// Looks for documents that the peer was sent and may not have any more. They become a part of the feed.
    func noteLosses(in collection: Int) throws(LoveseatError)

    // MARK: Revisions

    func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
    /// Why the app's filter refuses a received revision; nil if it does not (replication.md §9.4, step 8).
    func refusal(of candidate: FilterCandidate, in collection: Int) -> LoveseatError?
    /// Why the peer may not write a received revision; nil if it may.
    func writeRefusal(of revision: IncomingRevision, in collection: Int) throws(LoveseatError)
        -> LoveseatError?
    func insert(_ revisions: [IncomingRevision], in collection: Int) throws(LoveseatError) -> [InsertResult]
    /// The body of a revision, for a delta; nil if it is not here any more, or the peer may not read it.
    func body(of revision: RevisionID, _ documentID: String, in collection: Int) throws(LoveseatError)
        -> JSONText?
    /// The documents that could not be stored when they were pulled, in this session or an earlier one.
    func failures(in collection: Int) throws(LoveseatError) -> [String]
    func noteFailure(_ failed: DocumentRevision, _ error: LoveseatError, in collection: Int)
        throws(LoveseatError)
    /// Removes documents that the peer takes away, as far as it may (replication.md §14).
    func removeAccess(_ removals: [AccessRemoval], in collection: Int) throws(LoveseatError)
        -> [RemovalVerdict]

    // MARK: Disagreements

    /// How to go on with a revision that a hub did not take.
    func meet(_ change: LocalChange, _ state: HubState, in collection: Int) throws(LoveseatError) -> Meeting
    /// Notes that a hub has accepted a copy on top of its revision.
    func adoptCopy(_ copy: RevisionID, of documentID: String, parent: RevisionID, in collection: Int)
        throws(LoveseatError)
    /// Stores the tree with which the peer answered a pushed revision: another one is current there.
    func hear(
        _ knowledge: TreeKnowledge,
        of documentID: String,
        current: RevisionID,
        takesContent: Bool,
        in collection: Int
    ) throws(LoveseatError) -> Hearing

    // MARK: Blobs

    /// Returns which blobs of a received document are to be requested: those that are not here, and those that the sender must prove to
    /// have. All of them are kept until the revision that needs them is stored or given up.
    func holdBlobs(_ digests: [BlobDigest], of documentID: String, in collection: Int) throws(LoveseatError)
        -> [BlobDigest]
    func releaseBlobs(_ digests: [BlobDigest])
    /// Begins to receive a blob. With `resumes`, it continues after the bytes that were received before.
    func beginBlob(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws(LoveseatError)
        -> BlobStart
    func writeBlob(_ handle: BlobHandle, _ bytes: [UInt8]) throws(LoveseatError)
    func finishBlob(_ handle: BlobHandle, expected: BlobDigest) throws(LoveseatError)
    func cancelBlob(_ handle: BlobHandle)
    /// Keeps the received part of a blob, for another connection to continue.
    func suspendBlob(_ handle: BlobHandle)
    /// The length of a blob that the peer requests; nil if it is not here, or the peer may not have it.
    func blobLength(_ digest: BlobDigest, of documentID: String?, in collection: Int) throws(LoveseatError)
        -> UInt64?
    func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8]
    /// A proof that a blob is here, for a peer that has it; nil if it is not here, or the peer may not know (replication.md §11.4).
    func proveBlob(_ digest: BlobDigest, nonce: [UInt8], in collection: Int) throws(LoveseatError)
        -> BlobDigest?
}

/// A blob being received.
package typealias BlobHandle = UInt64

extension RevisionStore {
    package var connections: Int { 1 }
}
