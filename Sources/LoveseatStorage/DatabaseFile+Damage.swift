import GRDB
import LoveseatModel
private import LoveseatPlatform

/// How a folder that has lost its tables differs from one whose creation did not finish.
///
/// A creation makes the folder, an empty `db.sqlite`, its tables, and last `blobs/`, when the tables are in `db.sqlite` and on the disk. A
/// folder with `blobs/` and no tables was damaged.
extension DatabaseFile {
    /// Refuses a folder whose `db.sqlite` was emptied or removed. SQLite would take it for a new database, and remove its log.
    static func refuseEmptied(_ folder: String) throws(LoveseatError) {
        // The rest of the folder is examined first: another process may be creating the database.
        let wasDatabase = wasCreated(folder) || (size(of: "\(folder)/db.sqlite-wal") ?? 0) > 0
        let size = size(of: "\(folder)/db.sqlite") ?? 0
        // SQLite takes a file of one byte for an empty one, and finds out about longer ones by itself.
        guard size > 1 || size == 0 && !wasDatabase else { throw emptied(folder) }
    }

    /// Whether the creation of a database in this folder finished.
    static func wasCreated(_ folder: String) -> Bool { size(of: "\(folder)/blobs") != nil }

    static func emptied(_ folder: String) -> LoveseatError {
        LoveseatError(
            .corruptData,
            "\(folder)/db.sqlite is damaged: it is empty, and the rest of the database is there: move the folder away, and restore a backup or replicate into a new database"
        )
    }

    /// The size of a file; nil if it does not exist. A file that cannot be examined has its error when SQLite opens it.
    private static func size(of path: String) -> off_t? {
        var status = stat()
        if stat(path, &status) == 0 { return status.st_size }
        return errno == ENOENT || errno == ENOTDIR ? nil : off_t.max
    }

    static func isUnfinished(_ folder: String) -> LoveseatError {
        LoveseatError(
            .notFound,
            "there is no database in \(folder) yet: its creation has not finished, and the next process that opens it for writing finishes it"
        )
    }
}
