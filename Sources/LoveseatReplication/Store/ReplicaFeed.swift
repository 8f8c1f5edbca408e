package import LoveseatModel

/// The part of a replica that a push reads: changes, conflicts, and the revisions to send.
package protocol ReplicaFeed: AnyObject {
    func lastSequence(in collection: Int) -> UInt64
    func changes(in collection: Int, _ query: ChangeQuery) throws(LoveseatError) -> ChangePage
    /// Documents in conflict, in the order of their sequences.
    func conflicts(in collection: Int, after sequence: UInt64) throws(LoveseatError) -> ConflictPage
    /// Looks for documents that the peer was sent and may not have any more. They become a part of the feed.
    func noteLosses(in collection: Int) throws(LoveseatError)
    func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
}
