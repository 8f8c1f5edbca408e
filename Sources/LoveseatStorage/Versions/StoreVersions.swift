import GRDB
import LoveseatModel

/// The database as an author of versions, as of the last commit (docs/decisions/0015). A database that never had a session with a peer of
/// Couchbase Lite 4 makes no versions, and has none of this.
struct StoreVersions: Sendable {
    /// The source, and the one clock of all handles of the database.
    var author: VersionAuthor
    /// The limit in the file. The clock goes on after it if the process dies, so no time beyond it is committed before it is replaced.
    var limit: UInt64
    /// Every version that was made before this opening has this time or an earlier one.
    private var lastBefore: UInt64
    /// Every version that was made since the opening has this time or a later one; nil if none was made.
    private var firstSince: UInt64?
    /// The peers for which this process has already made a new source: a peer may not demand more than one.
    private var demanding: Set<String> = []

    /// `lastBefore`: the last time of a version that may have been made; 0 for a new source.
    init(_ author: VersionAuthor, limit: UInt64, lastBefore: UInt64 = 0) {
        (self.author, self.limit, self.lastBefore) = (author, limit, lastBefore)
    }

    /// The same author under another name, which goes on at the same time.
    func renamed(_ source: SourceID) throws(VersionError) -> StoreVersions {
        var renamed = self
        renamed.author = try VersionAuthor(source, clock: author.clock)
        (renamed.lastBefore, renamed.firstSince) = (0, nil)
        return renamed
    }

    /// Notes that a version is about to be made.
    mutating func noteMaking(wall: UInt64) {
        if firstSince == nil { firstSince = max(author.clock.last, wall & ~0xFFFF) }
    }

    /// Whether a version by this source may have been made by this database, as far as it knows.
    func mayHaveMade(_ time: UInt64) -> Bool {
        guard time > lastBefore else { return true }
        guard let firstSince else { return false }
        return (firstSince...max(firstSince, author.clock.last)).contains(time)
    }

    /// The maximum number of ``demanding``.
    private static let maximumDemanding = 1_000

    /// Whether a peer may have the database take a new source, which it may once.
    mutating func admitsDemand(of peer: String) -> Bool {
        demanding.count < Self.maximumDemanding && demanding.insert(peer).inserted
    }

    // MARK: In the table `info`

    static let sourceKey = "source"
    static let clockKey = "clock"

    /// Reads the source and the clock; nil if the database makes no versions, or if they are damaged (``SourceRenewal``).
    static func load(_ db: Database) throws -> StoreVersions? {
        let info = try entries([sourceKey, clockKey], in: db)
        guard let source = info[sourceKey], let limit = info[clockKey].flatMap({ UInt64($0) }) else {
            return nil
        }
        // They are damaged.
        return try? StoreVersions(
            VersionAuthor(SourceID(source), clock: HybridClock(after: limit)),
            limit: limit,
            lastBefore: limit
        )
    }

    /// The entries of the table `info` with some keys, as far as there are any.
    static func entries(_ keys: [String], in db: Database) throws -> [String: String] {
        let marks = keys.map { _ in "?" }.joined(separator: ",")
        let statement = try db.cachedStatement(
            sql: "SELECT key, CAST(value AS TEXT) FROM info WHERE key IN (\(marks))"
        )
        let rows = try Row.fetchAll(statement, arguments: StatementArguments(keys))
        return Dictionary(rows.map { ($0[0], $0[1]) }) { first, _ in first }
    }

    static func save(_ key: String, _ value: String, in db: Database) throws {
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)").execute(
            arguments: [key, value])
    }

    /// Saves the source and the clock's limit.
    func save(in db: Database) throws {
        try Self.save(Self.sourceKey, author.source.text, in: db)
        try Self.save(Self.clockKey, String(limit), in: db)
    }
}

extension SourceID {
    /// A new source: a random UUID, which is never one of the reserved ones.
    static func new(_ options: DocumentStore.Options) throws(VersionError) -> SourceID {
        var bytes = options.system.newSource()
        if bytes.count == 16 {
            bytes[6] = bytes[6] & 0x0F | 0x40
            bytes[8] = bytes[8] & 0x3F | 0x80
        }
        return try SourceID(bytes: bytes)
    }
}
