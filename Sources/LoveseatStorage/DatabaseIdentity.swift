private import CFileBirth
import GRDB
import LoveseatModel

/// The name under which a database is known to its peers, and the file that has it (docs/decisions/0012).
///
/// Two databases must never have one identity: each would take the checkpoints of the other one for its own.
enum DatabaseIdentity {
    private static let fileKey = "identity_of_file"

    /// Gives a new database its identity.
    static func create(_ db: Database, _ options: DocumentStore.Options) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO info (key, value) VALUES ('private_uuid', ?), ('public_uuid', ?)",
            arguments: [uuid(options), uuid(options)]
        )
    }

    /// Gives a copy an identity of its own. Checkpoints belong to the old one, and no checkpoint covers a mark any more, so all documents are
    /// compared again.
    static func renew(_ db: Database, _ options: DocumentStore.Options) throws {
        try create(db, options)
        try SourceRenewal.replaceSource(db, options)
        // A document that was purged here, and is made anew, replaces the purged one at peers too. Tombstones begin to age anew: the clock of the
        // other device may have been years behind.
        try db.execute(
            sql: """
                DELETE FROM deletions;
                DELETE FROM local_checkpoints WHERE NOT (id >= 'purged/' AND id < 'purged0');
                UPDATE marks SET covered = 0
                """
        )
    }

    /// Gives the database an identity of its own if it was copied to this file.
    static func claim(_ file: String, _ writer: any DatabaseWriter, _ options: DocumentStore.Options) throws {
        let now = try description(of: file)
        try writer.writeWithoutTransaction { db in
            let before = try String.fetchOne(
                db,
                sql: "SELECT value FROM info WHERE key = ?",
                arguments: [fileKey]
            )
            if before == now { return }
            try db.inTransaction {
                // A new database, or one of an earlier version, which did not write its file down.
                if before != nil {
                    try renew(db, options)
                    options.onNewIdentity()
                }
                try db.execute(
                    sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)",
                    arguments: [fileKey, now]
                )
                return .commit
            }
        }
    }

    /// Which file this is: its number in the file system, and when it was created. Both stay when a folder is moved, and neither is copied.
    /// The number of the file system is left out, because that of a container's volume changes.
    private static func description(of path: String) throws -> String {
        var birth = file_birth()
        guard file_birth(path, &birth) == 0 else { throw BlobFiles.failure("look at", path) }
        return "\(birth.number) \(birth.seconds).\(birth.nanoseconds)"
    }

    private static func uuid(_ options: DocumentStore.Options) -> String {
        String(BlobDigest(sha1: options.newUUID() + [0, 0, 0, 0]).hexadecimalText.prefix(32))
    }
}
