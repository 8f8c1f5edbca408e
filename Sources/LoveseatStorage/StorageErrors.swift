import GRDB
package import LoveseatModel
private import LoveseatPlatform

extension LoveseatError {
    /// Converts an error of the disk or of SQLite; other errors become `unexpectedError`.
    package init(storage error: any Error) {
        if let error = error as? LoveseatError {
            self = error
            return
        }
        guard let error = error as? DatabaseError else {
            self.init(.unexpectedError, "\(error)")
            return
        }
        let code: Code
        let advice: String
        switch error.resultCode {
        case .SQLITE_FULL:
            (code, advice) = (.init(Int(ENOSPC), domain: .posix), "the disk is full: free some space")
        case .SQLITE_NOTADB:
            (code, advice) = (.unreadableDatabase, "db.sqlite is not an SQLite database, or is encrypted")
        case .SQLITE_CORRUPT:
            (code, advice) = (
                .corruptData,
                "the database file is damaged: restore a backup, or replicate into a new database"
            )
        case .SQLITE_CANTOPEN: (code, advice) = (.cantOpenFile, "the database file cannot be opened")
        case .SQLITE_READONLY: (code, advice) = (.notWriteable, "the database file is read-only")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            (code, advice) = (.busy, "another program has locked the database file")
        case .SQLITE_NOMEM: (code, advice) = (.memoryError, "out of memory")
        case .SQLITE_IOERR: (code, advice) = (.ioError, "the disk failed")
        // Only `ls_limit` fails like this.
        case .SQLITE_MISMATCH: (code, advice) = (.invalidQuery, "the query cannot run")
        case .SQLITE_MISUSE: (code, advice) = (.notOpen, "the database is closed")
        default:
            // A function that refuses its argument, such as MATCH, ends the query with SQLite's code 1.
            let isRefusal = error.resultCode == .SQLITE_ERROR
            code = .init(Int(error.extendedResultCode.rawValue), domain: .sqlite)
            advice = isRefusal ? "the query failed" : "SQLite failed"
        }
        self.init(code, "\(advice): \(error.message ?? "\(error.extendedResultCode)")")
    }
}

extension Row {
    /// The value of a column. GRDB's own way ends the program where a damaged file has a value of another type.
    ///
    /// - Throws: `corruptData`.
    func stored<Value: DatabaseValueConvertible>(_ column: String) throws(LoveseatError) -> Value {
        let value: DatabaseValue = self[column]
        guard let value = Value.fromDatabaseValue(value) else {
            throw LoveseatError(
                .corruptData,
                "the database file is damaged: restore a backup, or replicate into a new database: column \(column) has a value of another type"
            )
        }
        return value
    }
}

extension LoveseatError {
    static func isReadOnly(_ name: String) -> Self {
        Self(
            .notWriteable,
            "database \"\(name)\" is open for reading only: open it without readOnly"
        )
    }
}
