package import LoveseatModel

/// The part of a ``Replica`` that a push reads: changes, conflicts, and the revisions to send.
package protocol ReplicaFeed: AnyObject {
    /// How many connections share the memory of the database, this one included.
    var connections: Int { get }
    var lastSequence: UInt64 { get }
    func changes(_ query: ChangeQuery) throws(LoveseatError) -> ChangePage
    /// Documents in conflict, in the order of their sequences.
    func conflicts(after sequence: UInt64) throws(LoveseatError) -> ConflictPage
    /// Looks for documents that the peer was sent and may not have any more. They become a part of the feed.
    func noteLosses() throws(LoveseatError)
    func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision]
}
