import LoveseatModel

/// A peer of Couchbase Lite 4 in a history.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class LitePeer: @unchecked Sendable {
    let index: Int
    let database: LiteDatabase
    let wall: SimulatedWallClock
    /// The documents whose revisions were refused, here or at the other side, by the error.
    var refusals: [String: Set<String>] = [:]
    private var lastSeen: UInt64 = 0
    private var remoteNames = 0

    convenience init(index: Int, _ release: LiteRelease, _ clock: VirtualClock, source: SourceID) {
        self.init(index: index, LiteDatabase(source, release) { 0 }, clock)
    }

    /// Gives the database a clock that the history sets.
    init(index: Int, _ database: LiteDatabase, _ clock: VirtualClock) {
        self.index = index
        let wall = SimulatedWallClock(clock)
        (self.wall, self.database) = (wall, database)
        database.wall = { UInt64(clamping: wall.now) * 1_000_000 }
    }

    /// The address of a client, another one for each connection.
    func nextClient() -> String {
        remoteNames += 1
        return "client-\(remoteNames)"
    }

    /// The documents that changed since the last call.
    func drainChanges() -> [String] {
        let last = database.collections["_default"]?.lastSequence ?? 0
        if last == lastSeen { return [] }
        defer { lastSeen = last }
        return database.documents().filter { $0.value.sequence > lastSeen }.keys.sorted()
    }
}
