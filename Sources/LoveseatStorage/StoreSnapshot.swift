import GRDB
private import Synchronization

/// The content of a store at one moment, without its blobs.
package final class StoreSnapshot: Sendable {
    fileprivate let rows: DatabaseQueue

    fileprivate init() throws { rows = try DatabaseQueue() }
}

/// Snapshots are for simulations, in which they stand for the content of the disk.
extension DocumentStore {
    /// The number of transactions that had to reach the disk before they returned.
    package var durableWriteCount: Int { durableWrites.load(ordering: .relaxed) }

    /// Copies everything except the blobs.
    ///
    /// `isClosed`: whether the copy is one of a database that was closed before, which goes on with the next sequence.
    package func snapshot(isClosed: Bool = false) throws -> StoreSnapshot {
        let snapshot = try StoreSnapshot()
        try maintain { database in
            try snapshot.rows.writeWithoutTransaction {
                try database.backup(to: $0)
                if isClosed { try SequenceReserve.release(in: $0, catalog.withLock { $0 }) }
            }
        }
        return snapshot
    }

    /// Restores an earlier snapshot, as a power loss does. The store must not be used meanwhile.
    ///
    /// The reserve of sequences had reached the disk in any case, so it stands in what is restored, also for the next crash. `reserved`: that
    /// of a store which this one replaces.
    package func restore(_ snapshot: StoreSnapshot, reserved: UInt64 = 0) throws {
        let used = max(reserved, reservedSequence)
        try maintain { database in
            try snapshot.rows.read { try $0.backup(to: database) }
            if used > (try SequenceReserve.left(database)) { try SequenceReserve.save(used, in: database) }
        }
        try reloadCatalog()
    }

    /// The last sequence that may have been used.
    package var reservedSequence: UInt64 { catalog.withLock { max($0.reserved, $0.firstFree) } }
}
