import GRDB
import LoveseatModel

/// Reserves times before versions have them, so that no version is issued twice, even after the process died (docs/decisions/0015).
///
/// The limit reaches the disk before any time beyond the previous one is used, together with the note that the database is open.
enum ClockReserve {
    /// How far the limit lies ahead of the system's clock, in nanoseconds. After a crash the clock goes on there, and peers refuse times
    /// that are ``HybridClock/maximumLead`` ahead.
    static let lead: UInt64 = 30_000_000_000
    /// The minimum number of times left when a transaction begins.
    private static let margin: UInt64 = 1 << 20

    /// A limit to be saved before a transaction begins; nil if enough times are left.
    static func next(_ versions: StoreVersions, wall: UInt64) -> UInt64? {
        let last = versions.author.clock.last
        if max(last, wall).addingSaturated(margin) <= versions.limit { return nil }
        return limit(after: last, wall: wall)
    }

    /// A limit for a clock.
    static func limit(after last: UInt64, wall: UInt64) -> UInt64 {
        // The clock may be far ahead of the system's, and goes on in steps of one nanosecond then.
        let limit = max(wall.addingSaturated(lead), last.addingSaturated(2 * margin))
        return min(max(limit, HybridClock.validTimes.lowerBound), HybridClock.validTimes.upperBound)
    }

    /// Called when everything was written: the next process continues with the time at which this one ended.
    static func release(_ versions: StoreVersions, in db: Database) throws {
        try StoreVersions.save(StoreVersions.clockKey, String(versions.author.clock.last), in: db)
        try OpenNote.remove(in: db)
    }
}

/// A note in the file while versions may have been made since it was closed last: in which run of the operating system that was. If the
/// database is opened in a later run, the last commits may be lost, and peers may have their versions.
struct OpenNote: Hashable {
    /// The run of the operating system; nil if it has no name.
    let boot: String?
    /// Whether each commit reached the disk, so that none is lost.
    let isDurable: Bool

    static let key = "versions_since"

    init(boot: String?, isDurable: Bool) { (self.boot, self.isDurable) = (boot, isDurable) }

    init(_ text: String) {
        let parts = text.split(separator: " ")
        boot = parts.first.flatMap { $0 == Self.unknown ? nil : String($0) }
        isDurable = parts.count == 2 && parts[1] == Self.durable
    }

    private static let unknown = "unknown"
    private static let durable = "fullSync"

    private var text: String { "\(boot ?? Self.unknown)\(isDurable ? " \(Self.durable)" : "")" }

    func save(in db: Database) throws { try StoreVersions.save(Self.key, text, in: db) }

    static func remove(in db: Database) throws {
        try db.execute(sql: "DELETE FROM info WHERE key = ?", arguments: [key])
    }

    /// Whether commits may be lost if the database is opened in this run of the operating system.
    func mayHaveLost(in boot: String?) -> Bool { !isDurable && (boot == nil || boot != self.boot) }
}
