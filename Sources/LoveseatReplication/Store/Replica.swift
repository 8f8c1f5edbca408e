package import LoveseatModel

/// One collection as one connection replicates it, whatever the wire.
///
/// It is called from the connection's driver only, and may block. Each call is at most one transaction, which is committed when the call
/// returns. Methods that throw report the database's errors: ``LoveseatError/Code/busy``, an error of the disk, or that a collection of
/// the connection is gone.
package protocol Replica: ReplicaFeed, ReplicaInbox, ReplicaBlobs, ReplicaCheckpoints, ReplicaDisagreements {}

/// Makes the replicas of one connection.
package protocol ReplicaSource: AnyObject {
    /// Opens the collections that a passive peer was asked for.
    func bind(_ names: [CollectionName], checkpoints: [String]) throws(LoveseatError) -> [BoundCollection]
    /// Prepares the database for a peer with version vectors, before anything is read or written for it, and returns its name as an author of
    /// versions.
    func beginVersions() throws(LoveseatError) -> SourceID
    /// A replica of each collection: those of an active side's plan, or those that were bound. A session makes them once.
    func makeReplicas() -> [any Replica]
}
