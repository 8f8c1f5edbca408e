package import LoveseatModel

/// The database as replication uses it, whatever the wire.
///
/// One object serves one connection. It is called from the connection's driver only, and may block. Each call is at most one transaction,
/// which is committed when the call returns. Collections are named by their position in the session. Methods that throw report the
/// database's errors: ``LoveseatError/Code/busy``, an error of the disk, or that a collection is gone.
package protocol RevisionStore: ReplicaFeed, ReplicaInbox, ReplicaBlobs, ReplicaCheckpoints,
    ReplicaDisagreements
{
    /// How many connections share the memory of this database, this one included.
    var connections: Int { get }
    /// Opens the collections that a passive peer was asked for.
    func bind(_ names: [CollectionName], checkpoints: [String]) throws(LoveseatError) -> [BoundCollection]
}

extension RevisionStore {
    package var connections: Int { 1 }
}
