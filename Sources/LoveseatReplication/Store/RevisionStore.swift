package import LoveseatModel

/// What replication asks of a database, whatever the wire.
///
/// One object serves one connection and is called from its driver only, which may block. Each call is one transaction at most; what
/// was answered is committed. Collections are named by their position in the session. Methods that throw throw what the database
/// says: ``LoveseatError/Code/busy``, an error of the disk, or that a collection is gone.
package protocol RevisionStore: AnyObject {
    /// How many connections share the memory of this database, this one included.
    var connections: Int { get }

    // MARK: Checkpoints and marks

    func checkpoint(of collection: Int) throws(LoveseatError) -> StoredCheckpoint
    /// `coversMarks`: whether the peer has what it was marked to have when the checkpoint went to it.
    func saveCheckpoint(_ body: JSONText, of collection: Int, coversMarks: Bool) throws(LoveseatError)
    /// Saves what is left of a checkpoint that the peer does not have any more, on the disk before this returns.
    func retractCheckpoint(_ body: JSONText, of collection: Int) throws(LoveseatError)
    /// A checkpoint is about to go to the peer: it covers the marks made before, and none that come later.
    func beginCheckpoint(of collection: Int)
    /// From now on, which marks of what the remote has count.
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
    /// A hub has taken a copy on top of what it had.
    func adoptCopy(_ copy: RevisionID, of documentID: String, parent: RevisionID, in collection: Int)
        throws(LoveseatError)
    /// Takes in what the peer answered to a pushed revision: another one is current there.
    func hear(
        _ knowledge: TreeKnowledge,
        of documentID: String,
        current: RevisionID,
        takesContent: Bool,
        in collection: Int
    ) throws(LoveseatError) -> Hearing

    // MARK: Blobs

    /// Which blobs of a received document are to be asked for: those that are not here, and those that its sender must show to
    /// have. All of them stay until the revision that needs them is stored or given up.
    func holdBlobs(_ digests: [BlobDigest], of documentID: String, in collection: Int) throws(LoveseatError)
        -> [BlobDigest]
    func releaseBlobs(_ digests: [BlobDigest])
    /// Begins to receive a blob, going on with what came of it before if `resumes`.
    func beginBlob(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws(LoveseatError)
        -> BlobStart
    func writeBlob(_ handle: BlobHandle, _ bytes: [UInt8]) throws(LoveseatError)
    func finishBlob(_ handle: BlobHandle, expected: BlobDigest) throws(LoveseatError)
    func cancelBlob(_ handle: BlobHandle)
    /// Keeps what has come of a blob, for another connection to go on with.
    func suspendBlob(_ handle: BlobHandle)
    /// How long a blob is that the peer asks for; nil if it is not here, or the peer may not have it.
    func blobLength(_ digest: BlobDigest, of documentID: String?, in collection: Int) throws(LoveseatError)
        -> UInt64?
    func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8]
    /// What shows that a blob is here, to a peer that has it; nil if it is not, or the peer may not know (replication.md §11.4).
    func proveBlob(_ digest: BlobDigest, nonce: [UInt8], in collection: Int) throws(LoveseatError)
        -> BlobDigest?
}

/// A blob being received.
package typealias BlobHandle = UInt64

extension RevisionStore {
    package var connections: Int { 1 }
}
