import GRDB

/// The connections of a store: one that writes, those that read snapshots, and one for single rows.
struct SQLiteConnections: Sendable {
    let writer: any DatabaseWriter
    let snapshots: any DatabaseReader
    let rows: RowsConnection
    let keptRead: KeptRead

    /// The maximum number of concurrent reads of a database file.
    static let readers = 4

    init(
        writer: any DatabaseWriter,
        snapshots: any DatabaseReader,
        rows: RowsConnection,
        isOnlyWriter: Bool
    ) {
        (self.writer, self.snapshots, self.rows) = (writer, snapshots, rows)
        keptRead = KeptRead(rows, isOnlyWriter: isOnlyWriter)
    }

    static func configuration(_ options: DocumentStore.Options, cacheSize: Int) -> Configuration {
        var configuration = Configuration()
        configuration.label = "Loveseat"
        configuration.busyMode = .timeout(options.busyTimeout / .seconds(1))
        configuration.maximumReaderCount = readers
        configuration.prepareDatabase { db in
            if let connection = db.sqliteConnection {
                let code = ResultCode(
                    rawValue: QuerySQLFunctions.register(
                        on: connection,
                        counter: db.configuration.readonly ? nil : options.walks
                    )
                )
                guard code == .SQLITE_OK else { throw DatabaseError(resultCode: code) }
            }
            // Written pages go to the log at the commit, so the connection that writes needs less cache.
            try db.execute(sql: "PRAGMA cache_size = -\(cacheSize >> (db.configuration.readonly ? 10 : 11))")
            if !db.configuration.readonly {
                try db.execute(sql: "PRAGMA synchronous = \(options.fullSync ? "FULL" : "NORMAL")")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 4000")
            }
        }
        return configuration
    }
}
