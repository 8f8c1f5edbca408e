import GRDB
import LoveseatAssertions

/// Reserves sequences before they are used, so that none is used twice, even after a power loss took the commits that used some of them:
/// peers may know those sequences (docs/decisions/0006).
///
/// The reserve is one number for all collections, in the table `info`. It reaches the disk before any sequence beyond
/// the previous reserve is used. A database that was not closed continues after it.
enum SequenceReserve {
    /// The number of sequences that are reserved at a time.
    static let block: UInt64 = 1 << 24
    /// The minimum left when a transaction begins.
    private static let margin: UInt64 = 1 << 20

    static let key = "reserved_sequence"

    /// The number reserved by a process that did not close the database; 0 for none.
    static func left(_ db: Database) throws -> UInt64 {
        let value = try Int64.fetchOne(db, sql: "SELECT value FROM info WHERE key = ?", arguments: [key])
        return UInt64(clamping: value ?? 0)
    }

    /// The last sequence of a larger reserve; nil if there are enough left.
    static func next(_ catalog: StoreCatalog) -> UInt64? {
        let highest = max(catalog.highestSequence, catalog.firstFree)
        if highest + margin <= catalog.reserved { return nil }
        let (limit, overflows) = highest.addingReportingOverflow(block)
        if overflows { impossible("no sequence can be reserved after \(highest)") }
        return overflows ? nil : limit
    }

    /// Takes the place of the note of a closing, if there is one.
    static func save(_ limit: UInt64, in db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)",
            arguments: [key, Int64(clamping: limit)]
        )
    }

    /// Called when everything was written: the next process continues where this one ended. After a crash that is behind all sequences that may have
    /// been used, also in collections that were not written since.
    static func release(in db: Database, _ catalog: StoreCatalog) throws {
        // Nothing was written since the last closing.
        if try ClosingNote(db) != nil { return }
        try db.inTransaction {
            // So does a collection that is made anew, and was lost with the crash.
            if catalog.firstFree > 0 { try CollectionTable.retire(catalog.firstFree, in: db) }
            try ClosingNote.save(catalog, db)
            if let versions = catalog.versions { try ClockReserve.release(versions, in: db) }
            return .commit
        }
    }
}
