import GRDB
package import LoveseatModel

/// This database's checkpoints, and those that peers keep here.
extension StoreReadTransaction {
    package func localCheckpoint(_ id: String) throws -> JSONText? { try localCheckpointAndUser(id)?.body }

    /// A checkpoint, and how often the remote's user had changed when it was saved.
    package func localCheckpointAndUser(_ id: String) throws -> (body: JSONText, userChanges: Int)? {
        let row = try RawStatement(
            "SELECT body, user_changes FROM local_checkpoints WHERE id = ?1",
            in: database
        )
        row.bind(1, id)
        defer { row.reset() }
        guard try row.step() else { return nil }
        return (JSONText(trusted: row.bytes(0)), Int(row.int(1)))
    }

    /// The entries whose IDs begin with a text that ends in a slash, by the rest of the ID.
    package func localCheckpoints(prefix: String) throws -> DocumentMap<JSONText> {
        // A zero follows the slash in ASCII.
        let rows = try RawStatement(
            "SELECT id, body FROM local_checkpoints WHERE id >= ?1 AND id < ?2",
            in: database
        )
        rows.bind(1, prefix)
        rows.bind(2, prefix.dropLast() + "0")
        defer { rows.reset() }
        var found: DocumentMap<JSONText> = [:]
        while try rows.step() {
            found[ExactText(rows.string(0).dropping(prefix))] = JSONText(trusted: rows.bytes(1))
        }
        return found
    }

    /// Returns the record of a remote database; nil for an address that was not used before.
    package func knownRemote(_ address: String) throws -> KnownRemote? {
        try Row.fetchOne(
            database.cachedStatement(sql: "SELECT number, user, user_changes FROM remotes WHERE address = ?"),
            arguments: [address]
        )
        .map { KnownRemote(number: $0["number"], user: $0["user"], userChanges: $0["user_changes"]) }
    }

    /// The sessions that last marked documents of each collection, by its number, as known to a remote, and whether a checkpoint covers their
    /// marks.
    package func marks(of remote: Int) throws -> [Int64: (checkpoint: String, isCovered: Bool)] {
        let rows = try RawStatement(
            "SELECT collection, checkpoint, covered FROM marks WHERE remote = ?1",
            in: database
        )
        rows.bind(1, Int64(remote))
        defer { rows.reset() }
        var marks: [Int64: (checkpoint: String, isCovered: Bool)] = [:]
        while try rows.step() { marks[rows.int(0)] = (rows.string(1), rows.int(2) != 0) }
        return marks
    }

    package func peerCheckpoint(_ id: String) throws -> (revision: Int, body: JSONText)? {
        let row = try RawStatement("SELECT revision, body FROM peer_checkpoints WHERE id = ?1", in: database)
        row.bind(1, id)
        defer { row.reset() }
        guard try row.step() else { return nil }
        return (Int(row.int(0)), JSONText(trusted: row.bytes(1)))
    }

    /// The local documents of CouchDB's wire whose IDs begin with a text, in order.
    package func localDocuments(prefix: String, limit: Int) throws -> [(
        id: String, revision: Int, body: JSONText
    )] {
        let rows = try Row.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT id, revision, body FROM peer_checkpoints WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2
                    """
            ),
            arguments: [prefix, limit]
        )
        return rows.map {
            (
                ($0["id"] as String).dropping(prefix), $0["revision"],
                JSONText(trusted: Array(($0["body"] as String).utf8))
            )
        }
    }

    /// The database's identity: `private_uuid` never leaves it, `public_uuid` may.
    package func info(_ key: String) throws -> String? {
        try String.fetchOne(
            database.cachedStatement(sql: "SELECT value FROM info WHERE key = ?"),
            arguments: [key]
        )
    }
}

/// Checkpoints, remotes and local documents, as a transaction writes them.
package struct CheckpointTables: WrittenTable {
    let transaction: StoreWriteTransaction

    /// `userChanges`: how often the remote's user had changed when the checkpoint was made.
    package func saveLocalCheckpoint(_ id: String, _ body: JSONText, userChanges: Int = 0) throws {
        try database.cachedStatement(
            sql: "INSERT OR REPLACE INTO local_checkpoints (id, body, user_changes) VALUES (?, ?, ?)"
        ).execute(arguments: [id, body.description, userChanges])
    }

    package func removeLocalCheckpoint(_ id: String) throws {
        try database.cachedStatement(sql: "DELETE FROM local_checkpoints WHERE id = ?").execute(arguments: [
            id
        ])
    }

    /// Records the user name with which a remote is used from now on.
    package func setUser(_ user: String, userChanges: Int, of remote: Int) throws {
        try database.cachedStatement(sql: "UPDATE remotes SET user = ?, user_changes = ? WHERE number = ?")
            .execute(arguments: [user, userChanges, remote])
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

    /// Records that a checkpoint of both sides covers the marks, unless another session made some of them.
    package func coverMarks(of remote: Int, in collection: CollectionHandle, by checkpoint: String) throws {
        try database.cachedStatement(
            sql: """
                INSERT INTO marks (remote, collection, checkpoint, covered) VALUES (?1, ?2, ?3, 1)
                ON CONFLICT DO UPDATE SET checkpoint = ?3, covered = 1 WHERE covered OR checkpoint = ?3
                """
        ).execute(arguments: [remote, collection.number, checkpoint])
    }

    /// Records that the marks are in doubt until a session that offers everything again has ended normally.
    package func doubtMarks(of remote: Int, in collection: CollectionHandle) throws {
        try database.cachedStatement(
            sql: "UPDATE marks SET covered = 0 WHERE remote = ? AND collection = ? AND covered"
        ).execute(arguments: [remote, collection.number])
    }

    /// Saves a peer's checkpoint if the peer knows the revision that it replaces; otherwise returns nil.
    package func savePeerCheckpoint(_ id: String, replacing revision: Int, _ body: JSONText) throws -> Int? {
        let current = try transaction.peerCheckpoint(id)?.revision ?? 0
        guard current == revision else { return nil }
        try database.cachedStatement(
            sql: "INSERT OR REPLACE INTO peer_checkpoints (id, revision, body) VALUES (?, ?, ?)"
        ).execute(arguments: [id, current + 1, body.description])
        if current == 0 { try dropOldestPeerCheckpoints() }
        return current + 1
    }

    /// Replaces a local document of CouchDB's wire, which knows no conflicts.
    package func saveLocalDocument(_ id: String, revision: Int, _ body: JSONText) throws {
        try database.cachedStatement(
            sql: "INSERT OR REPLACE INTO peer_checkpoints (id, revision, body) VALUES (?, ?, ?)"
        ).execute(arguments: [id, revision, body.description])
        try dropOldestPeerCheckpoints()
    }

    /// Removes a local document of CouchDB's wire.
    package func removeLocalDocument(_ id: String) throws {
        try database.cachedStatement(sql: "DELETE FROM peer_checkpoints WHERE id = ?").execute(arguments: [id]
        )
    }

    /// The maximum number of checkpoints kept for peers. A peer whose checkpoint was removed compares all documents.
    private static let peerCheckpointsKept = 10_000

    /// Removes the oldest checkpoints if there are too many. Saving gives a row a new number.
    private func dropOldestPeerCheckpoints() throws {
        try database.cachedStatement(
            sql: """
                DELETE FROM peer_checkpoints WHERE rowid IN (SELECT rowid FROM peer_checkpoints ORDER BY rowid \
                LIMIT max(0, (SELECT count(*) FROM peer_checkpoints) - ?))
                """
        ).execute(arguments: [Self.peerCheckpointsKept])
    }

    /// The number under which marks for a remote database are kept. A new address gets a new one.
    package func remoteNumber(_ address: String) throws -> Int {
        if let known = try transaction.knownRemote(address) { return known.number }
        try database.cachedStatement(sql: "INSERT INTO remotes (address) VALUES (?)").execute(arguments: [
            address
        ])
        return Int(database.lastInsertedRowID)
    }
}

/// The record of a remote database.
package struct KnownRemote: Hashable, Sendable {
    /// The number under which its marks are kept.
    package let number: Int
    /// The user name with which it was used last; nil if none was recorded.
    package let user: String?
    /// How often the user has changed.
    package let userChanges: Int
}
