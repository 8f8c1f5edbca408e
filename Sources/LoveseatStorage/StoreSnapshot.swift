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
    /// The reserves had reached the disk in any case, so they stand in what is restored, also for the next crash. `reserves`: those of a store
    /// which this one replaces.
    package func restore(_ snapshot: StoreSnapshot, keeping reserves: StoreReserves? = nil) throws {
        let own = try self.reserves()
        let used = max(own.sequence, reserves?.sequence ?? 0)
        let reason = try maintain { database in
            try snapshot.rows.read { try $0.backup(to: database) }
            if used > (try SequenceReserve.left(database)) { try SequenceReserve.save(used, in: database) }
            try (reserves ?? own).restoreClock(in: database)
            return try SourceRenewal.perform(database, options)
        }
        if let reason { options.system.onNewSource(reason) }
        try reloadCatalog()
    }

    /// The reserves of sequences and times.
    package func reserves() throws -> StoreReserves {
        let sequence = catalog.withLock { max($0.reserved, $0.firstFree) }
        return try maintain { StoreReserves(sequence: sequence, clock: try StoreReserves.clock(in: $0)) }
    }
}

/// The reserves of a store, which reached the disk before they were used.
package struct StoreReserves: Sendable {
    /// The last sequence that may have been used.
    fileprivate let sequence: UInt64
    /// The entries of the table `info` about the clock of versions.
    fileprivate let clock: [String: String]

    fileprivate static func clock(in database: Database) throws -> [String: String] {
        try StoreVersions.entries(
            [StoreVersions.sourceKey, StoreVersions.clockKey, OpenNote.key],
            in: database
        )
    }

    /// Puts the author of versions into an earlier state of the same disk. Whatever reserves times has everything before it reach the disk, a new
    /// source, too.
    fileprivate func restoreClock(in database: Database) throws {
        for (key, value) in clock { try StoreVersions.save(key, value, in: database) }
    }
}
