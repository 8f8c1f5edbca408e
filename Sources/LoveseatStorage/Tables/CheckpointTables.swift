import GRDB
package import LoveseatModel

/// Checkpoints: our own, and those that peers keep here (replication.md §5).
extension ReadTransaction {
    package func localCheckpoint(_ id: String) throws -> JSONText? {
        try String.fetchOne(database, sql: "SELECT body FROM local_checkpoints WHERE id = ?", arguments: [id])
            .map { JSONText(trusted: Array($0.utf8)) }
    }

    /// The number under which marks for a remote database are kept; nil for an address not seen before.
    package func knownRemote(_ address: String) throws -> Int? {
        try Int.fetchOne(
            database,
            sql: "SELECT number FROM remotes WHERE address = ?",
            arguments: [address]
        )
    }

    /// Who made the last marks of what a remote has, and whether a checkpoint covers them all; nil if nobody did.
    package func marks(of remote: Int, in collection: CollectionHandle) throws -> (
        checkpoint: String, isCovered: Bool
    )? {
        try Row.fetchOne(
            database,
            sql: "SELECT checkpoint, covered FROM marks WHERE remote = ? AND collection = ?",
            arguments: [remote, collection.number]
        )
        .map { ($0["checkpoint"], $0["covered"]) }
    }

    package func peerCheckpoint(_ id: String) throws -> (revision: Int, body: JSONText)? {
        try Row.fetchOne(
            database,
            sql: "SELECT revision, body FROM peer_checkpoints WHERE id = ?",
            arguments: [id]
        )
        .map { ($0["revision"], JSONText(trusted: Array(($0["body"] as String).utf8))) }
    }

    /// The database's identity: `private_uuid` never leaves it, `public_uuid` may.
    package func info(_ key: String) throws -> String? {
        try String.fetchOne(database, sql: "SELECT value FROM info WHERE key = ?", arguments: [key])
    }
}

extension WriteTransaction {
    package func setInfo(_ key: String, _ value: String) throws {
        try database.execute(
            sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)",
            arguments: [key, value]
        )
    }

    package func saveLocalCheckpoint(_ id: String, _ body: JSONText) throws {
        try database.execute(
            sql: "INSERT OR REPLACE INTO local_checkpoints (id, body) VALUES (?, ?)",
            arguments: [id, body.description]
        )
    }

    /// Records that documents are being marked as known to a remote by a session with this checkpoint ID.
    package func noteMarks(of remote: Int, in collection: CollectionHandle, by checkpoint: String) throws {
        try database.cachedStatement(
            sql: """
                INSERT INTO marks (remote, collection, checkpoint, covered) VALUES (?1, ?2, ?3, 0)
                ON CONFLICT DO UPDATE SET checkpoint = ?3, covered = 0 WHERE covered OR checkpoint <> ?3
                """
        )
        .execute(arguments: [remote, collection.number, checkpoint])
    }

    /// Records that a checkpoint which both sides have covers the marks, unless another session made some of them.
    package func coverMarks(of remote: Int, in collection: CollectionHandle, by checkpoint: String) throws {
        try database.execute(
            sql: """
                INSERT INTO marks (remote, collection, checkpoint, covered) VALUES (?1, ?2, ?3, 1)
                ON CONFLICT DO UPDATE SET checkpoint = ?3, covered = 1 WHERE covered OR checkpoint = ?3
                """,
            arguments: [remote, collection.number, checkpoint]
        )
    }

    /// Saves a peer's checkpoint if the peer knows the revision it replaces; nil if it does not.
    package func savePeerCheckpoint(_ id: String, replacing revision: Int, _ body: JSONText) throws -> Int? {
        let current = try peerCheckpoint(id)?.revision ?? 0
        guard current == revision else { return nil }
        try database.execute(
            sql: "INSERT OR REPLACE INTO peer_checkpoints (id, revision, body) VALUES (?, ?, ?)",
            arguments: [id, current + 1, body.description]
        )
        if current == 0 { try dropOldestPeerCheckpoints() }
        return current + 1
    }

    /// Checkpoints kept for peers. One that is gone costs its peer a comparison of all documents.
    private static let peerCheckpointsKept = 10_000

    /// Removes the checkpoints that were saved longest ago, if there are too many. Saving gives a row a new number.
    private func dropOldestPeerCheckpoints() throws {
        try database.execute(
            sql: """
                DELETE FROM peer_checkpoints WHERE rowid IN (SELECT rowid FROM peer_checkpoints ORDER BY rowid \
                LIMIT max(0, (SELECT count(*) FROM peer_checkpoints) - ?))
                """,
            arguments: [Self.peerCheckpointsKept]
        )
    }

    /// The number under which marks for a remote database are kept; a new one for a new address.
    package func remoteNumber(_ address: String) throws -> Int {
        if let number = try knownRemote(address) { return number }
        try database.execute(sql: "INSERT INTO remotes (address) VALUES (?)", arguments: [address])
        return Int(database.lastInsertedRowID)
    }
}
