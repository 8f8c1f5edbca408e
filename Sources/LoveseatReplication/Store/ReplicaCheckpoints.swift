package import LoveseatModel

/// The part of a ``Replica`` that keeps checkpoints, and marks of the revisions that the remote has.
package protocol ReplicaCheckpoints: AnyObject {
    func checkpoint() throws(LoveseatError) -> StoredCheckpoint
    /// Saves a checkpoint. `coversMarks`: whether the peer has every revision that it was marked as having when the checkpoint was sent to
    /// it.
    func saveCheckpoint(_ body: JSONText, coversMarks: Bool) throws(LoveseatError)
    /// Saves the rest of a checkpoint of which the peer has lost a part. It is on the disk before this returns.
    func retractCheckpoint(_ body: JSONText) throws(LoveseatError)
    /// Notes that a checkpoint is about to be sent to the peer: it covers the marks made before, and none that come later.
    func beginCheckpoint() throws(LoveseatError)
    /// Sets which marks for the remote count from now on.
    func believeMarks(_ trust: MarkTrust)
    func markSynced(_ revisions: [SyncedRevision]) throws(LoveseatError)
    /// A checkpoint that the peer keeps here.
    func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint?
    /// Returns the new number of the checkpoint; nil if the peer did not know the current one.
    func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int) throws(LoveseatError)
        -> Int?
}
