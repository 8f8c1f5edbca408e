import GRDB

extension StoreCatalog {
    /// Reserves sequences and times for a transaction that is about to begin, if there are few left. They reach the disk first, with everything
    /// before them.
    ///
    /// `wall`: the system's clock; nil if the database makes no versions. `boot`: names the run of the operating system.
    /// `isFullSync`: whether every commit reaches the disk anyway.
    mutating func extendReserves(
        wall: UInt64?,
        boot: () -> String?,
        _ isFullSync: Bool,
        in db: Database
    ) throws {
        let sequence = SequenceReserve.next(self)
        let time = versions.flatMap { ClockReserve.next($0, wall: wall ?? 0) }
        if sequence == nil, time == nil { return }
        if !isFullSync { try db.execute(sql: "PRAGMA synchronous = FULL") }
        // If this fails, commits go on to reach the disk, which only takes longer.
        defer { if !isFullSync { try? db.execute(sql: "PRAGMA synchronous = NORMAL") } }
        try db.inTransaction(.immediate) {
            if let sequence { try SequenceReserve.save(sequence, in: db) }
            if let time {
                try StoreVersions.save(StoreVersions.clockKey, String(time), in: db)
                try OpenNote(boot: boot(), isDurable: isFullSync).save(in: db)
            }
            return .commit
        }
        if let sequence { reserved = sequence }
        if let time { versions?.limit = time }
    }
}
