import GRDB

/// Every table, in one place. docs/schema.md describes them; the two change together.
enum Schema {
    /// `lvst`, which distinguishes a Loveseat database from other SQLite files.
    static let applicationID: Int32 = 0x6C76_7374
    /// The version that this code writes. Since version 7, a tree's copies for hubs name their originals; an earlier version could not read
    /// them, and it does not know the tables of deletions and ancestors.
    static let version: Int32 = 7
    /// The version of a database that stores version vectors, which an earlier code cannot read. Nothing else changes with it.
    static let versionWithVectors: Int32 = 8

    /// Writes ``versionWithVectors``, in the transaction that stores a vector.
    static func noteVectors(in db: Database) throws {
        if try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0 < versionWithVectors {
            try db.execute(sql: "PRAGMA user_version = \(versionWithVectors)")
        }
    }

    /// Whether a table exists. SQLite answers from the schema that it has read; GRDB would read all of it again.
    static func hasTable(_ name: String, in db: Database) throws -> Bool {
        let statement = try RawStatement("SELECT 1 FROM pragma_table_info('\(name)') LIMIT 1", in: db)
        defer { statement.reset() }
        return try statement.step()
    }

    static let shared = """
        CREATE TABLE info (
            key TEXT PRIMARY KEY NOT NULL,
            value TEXT NOT NULL
        );
        CREATE TABLE collections (
            number INTEGER PRIMARY KEY,
            scope TEXT NOT NULL,
            name TEXT NOT NULL,
            table_name TEXT NOT NULL,
            last_sequence INTEGER NOT NULL DEFAULT 0,
            UNIQUE (scope, name)
        );
        CREATE TABLE remotes (
            number INTEGER PRIMARY KEY,
            address TEXT NOT NULL UNIQUE
        );
        CREATE TABLE local_checkpoints (
            id TEXT PRIMARY KEY NOT NULL,
            body TEXT NOT NULL
        );
        CREATE TABLE peer_checkpoints (
            id TEXT PRIMARY KEY NOT NULL,
            revision INTEGER NOT NULL,
            body TEXT NOT NULL
        );
        """ + grants + marks + losses + markRanges + indexes + additions

    /// The additions of version 7.
    static let additions = deletions + ancestors + replaced + md5s

    /// Since version 7. An earlier code of this version does not know it, and leaves it as it is, which does no harm.
    private static let md5s = """
        CREATE TABLE IF NOT EXISTS md5s (
            blob BLOB PRIMARY KEY NOT NULL,
            md5 BLOB NOT NULL
        ) WITHOUT ROWID;
        """

    /// Since version 7.
    private static let replaced = """
        CREATE TABLE IF NOT EXISTS replaced (
            collection INTEGER NOT NULL,
            doc_id TEXT NOT NULL,
            generation INTEGER NOT NULL,
            revision TEXT NOT NULL,
            length INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (collection, doc_id, generation, revision)
        ) WITHOUT ROWID;
        """

    /// Since version 7.
    private static let ancestors = """
        CREATE TABLE IF NOT EXISTS ancestors (
            collection INTEGER NOT NULL,
            doc_id TEXT NOT NULL,
            generation INTEGER NOT NULL,
            revision TEXT NOT NULL,
            child TEXT NOT NULL,
            flags INTEGER NOT NULL,
            PRIMARY KEY (collection, doc_id, generation, revision, child)
        ) WITHOUT ROWID;
        """

    /// Since version 7.
    private static let deletions = """
        CREATE TABLE IF NOT EXISTS deletions (
            collection INTEGER NOT NULL,
            time INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            PRIMARY KEY (collection, time)
        ) WITHOUT ROWID;
        """

    /// Since version 6. An earlier version could not write to a table with an index, which calls functions that it does not have.
    static let indexes = """
        CREATE TABLE indexes (
            collection INTEGER NOT NULL,
            name TEXT NOT NULL,
            number INTEGER NOT NULL UNIQUE,
            definition TEXT NOT NULL,
            PRIMARY KEY (collection, name)
        ) WITHOUT ROWID;
        """

    /// Since version 5.
    static let markRanges = """
        CREATE TABLE mark_ranges (
            remote INTEGER NOT NULL,
            collection INTEGER NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            PRIMARY KEY (remote, collection, first)
        ) WITHOUT ROWID;
        """

    /// Since version 3.
    static let marks = """
        ALTER TABLE remotes ADD COLUMN user TEXT;
        ALTER TABLE remotes ADD COLUMN user_changes INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE local_checkpoints ADD COLUMN user_changes INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE marks (
            remote INTEGER NOT NULL,
            collection INTEGER NOT NULL,
            checkpoint TEXT NOT NULL,
            covered INTEGER NOT NULL,
            PRIMARY KEY (remote, collection)
        ) WITHOUT ROWID;
        """

    /// Since version 4.
    static let losses = """
        ALTER TABLE grants ADD COLUMN lost INTEGER;
        CREATE INDEX losses ON grants (peer, collection, lost) WHERE lost IS NOT NULL;
        """

    /// Since version 2.
    static let grants = """
        CREATE TABLE grants (
            peer TEXT NOT NULL,
            collection INTEGER NOT NULL,
            doc_id TEXT NOT NULL,
            PRIMARY KEY (peer, collection, doc_id)
        ) WITHOUT ROWID;
        """

    /// One table for each collection. `body` is last, so that the columns before it are read without it.
    static func collection(_ table: String) -> String {
        """
        CREATE TABLE "\(table)" (
            row INTEGER PRIMARY KEY,
            doc_id TEXT NOT NULL,
            sequence INTEGER NOT NULL,
            revision TEXT NOT NULL,
            flags INTEGER NOT NULL DEFAULT 0,
            synced INTEGER NOT NULL DEFAULT 0,
            expires INTEGER,
            tree BLOB,
            body TEXT NOT NULL
        );
        CREATE UNIQUE INDEX "\(table) by doc_id" ON "\(table)" (doc_id);
        CREATE UNIQUE INDEX "\(table) by sequence" ON "\(table)" (sequence);
        CREATE INDEX "\(table) deleted" ON "\(table)" (row) WHERE flags & 1;
        CREATE INDEX "\(table) conflicts" ON "\(table)" (sequence) WHERE flags & 16;
        CREATE INDEX "\(table) expiring" ON "\(table)" (expires) WHERE expires IS NOT NULL;
        """
    }
}

/// The flags of a row.
package struct RowFlags: OptionSet, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }

    /// The current revision is a tombstone.
    package static let deleted = RowFlags(rawValue: 1)
    /// The current revision refers to blobs.
    package static let hasBlobs = RowFlags(rawValue: 8)
    /// A pulled revision waits for the app's resolver.
    package static let hasConflicts = RowFlags(rawValue: 16)
    /// The current revision's ID was the digest of its content when it was stored.
    package static let verified = RowFlags(rawValue: 32)
    /// The history has more than one line.
    package static let branched = RowFlags(rawValue: 64)
    /// Revisions deep in the history are in the table of ancestors.
    package static let hasAncestors = RowFlags(rawValue: 128)
}
