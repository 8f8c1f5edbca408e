import GRDB
private import Synchronization

/// The content of a store at one moment, without its blobs.
package final class StoreSnapshot: Sendable {
    fileprivate let rows: DatabaseQueue

    fileprivate init() throws { rows = try DatabaseQueue() }
}

/// Snapshots are for simulations, where they take the place of what has reached the disk.
extension DocumentStore {
    /// How many transactions have asked to be on the disk before they returned.
    package var durableWriteCount: Int { durableWrites.load(ordering: .relaxed) }

    /// Copies everything but the blobs.
    package func snapshot() throws -> StoreSnapshot {
        let snapshot = try StoreSnapshot()
        try maintain { database in try snapshot.rows.writeWithoutTransaction { try database.backup(to: $0) } }
        return snapshot
    }

    /// Goes back to what was stored at an earlier moment, as a power loss does. Nobody else may use the store meanwhile.
    ///
    /// The reserve of sequences had reached the disk in any case.
    package func restore(_ snapshot: StoreSnapshot) throws {
        try maintain { database in try snapshot.rows.read { try $0.backup(to: database) } }
        try reloadCatalog()
    }
}
