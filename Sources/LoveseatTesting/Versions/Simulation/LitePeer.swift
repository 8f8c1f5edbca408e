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

extension LitePeer {
    /// Why this peer keeps a state without telling anybody, so that no other peer can do anything about it before the next edit; nil if it should not.
    ///
    /// `tree`: the document as all Loveseats have it.
    func ownFault(_ id: String, _ tree: RevisionTree?) -> String? {
        guard let document = database.documents()[id] else { return nil }
        if document.isConflicted, refusals[id]?.contains("pull LiteCore/8") == true {
            return "Couchbase Lite cannot resolve a conflict that it has pulled from two peers (correction 7)"
        }
        guard database.release == .release41, let theirs = document.current.vector.current,
            let tree, let own = tree.current
        else { return nil }
        let vector = tree.versions.announcedState(of: own.id).vector
        guard let version = vector.current, vector.covers(theirs), document.current.vector.covers(version)
        else { return nil }
        return "Couchbase Lite 4.1 answers that it has a state which includes its own (correction 7)"
    }
}
