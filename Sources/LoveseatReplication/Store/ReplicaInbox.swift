package import LoveseatModel

/// The part of a ``Replica`` that receives: which revisions are wanted, and the storing of them.
package protocol ReplicaInbox: AnyObject {
    /// Which of a peer's announced changes are wanted (replication.md §7.2).
    func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind) throws(LoveseatError)
        -> [ChangeVerdict]
    /// Which of a peer's proposed changes would conflict (replication.md §8).
    func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind) throws(LoveseatError)
        -> [ProposalVerdict]
    /// Why the app's filter refuses a received revision; nil if it does not (replication.md §9.4, step 8).
    func refusal(of candidate: FilterCandidate) -> LoveseatError?
    /// Why the peer may not write a received revision; nil if it may.
    func writeRefusal(of revision: IncomingRevision) throws(LoveseatError) -> LoveseatError?
    func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult]
    /// Which of these leaves, of a document whose branches are kept, have not come with their content.
    func awaitedLeaves(of documentID: String, among leaves: [RevisionID]) throws(LoveseatError)
        -> [RevisionID]
    /// The body of a revision, for a delta; nil if it is not here any more, or the peer may not read it.
    func body(of revision: RevisionName, _ documentID: String) throws(LoveseatError) -> JSONText?
    /// The documents that could not be stored when they were pulled, in this session or an earlier one.
    func failures() throws(LoveseatError) -> [String]
    func noteFailure(_ failed: DocumentRevision, _ error: LoveseatError) throws(LoveseatError)
    /// Forgets the failures of documents that have arrived after all, or that the peer no longer gives. ``insert(_:)`` does so by itself, unless
    /// something of the document may follow.
    func forgetFailures(_ documentIDs: [String]) throws(LoveseatError)
    /// Removes documents that the peer takes away, as far as it may (replication.md §14).
    func removeAccess(_ removals: [AccessRemoval]) throws(LoveseatError) -> [RemovalVerdict]
}
