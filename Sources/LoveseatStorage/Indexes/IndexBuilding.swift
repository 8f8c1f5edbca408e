import GRDB
import LoveseatQuery

/// Makes an index inside a transaction, and reports its progress.
struct IndexBuilding {
    let database: Database
    let walks: WalkCounter
    /// Ends the transaction if its task is cancelled; nil if it cannot be cancelled.
    let interruption: ReadInterruption?

    /// How many rows go into an index at a time.
    private static let rowsAtOnce: Int64 = 1_000

    func run(
        _ statements: IndexStatements,
        of specification: IndexSpecification,
        over collection: CollectionHandle,
        _ progress: ((Double) -> Void)?
    ) throws {
        for sql in statements.prepare { try database.execute(sql: sql) }
        if let fill = statements.fill {
            let last =
                try Int64.fetchOne(
                    database,
                    sql: "SELECT max(row) FROM \(collection.table.quotedDatabaseIdentifier)"
                ) ?? 0
            for row in stride(from: 0, through: last, by: Int64.Stride(Self.rowsAtOnce)) {
                try database.execute(sql: fill(row..<(row + Self.rowsAtOnce)))
                progress?(min(1, Double(row + Self.rowsAtOnce) / Double(last + 1)))
            }
            for sql in statements.finish { try database.execute(sql: sql) }
        } else {
            let count =
                try Int64.fetchOne(
                    database,
                    sql: "SELECT count(*) FROM \(collection.table.quotedDatabaseIdentifier)"
                ) ?? 0
            try reporting(count * Int64(specification.expressions.count), progress) {
                for sql in statements.finish { try database.execute(sql: sql) }
            }
            progress?(1)
        }
    }

    /// Runs a statement of SQLite that reads all documents, and reports its progress: each document costs `ls_value` a walk for each
    /// expression.
    private func reporting(_ total: Int64, _ progress: ((Double) -> Void)?, _ body: () throws -> Void)
        rethrows
    {
        guard let progress, total > 0 else { return try body() }
        let first = walks.count
        let statements = interruption ?? ReadInterruption()
        if interruption == nil { statements.begin(database.sqliteConnection) }
        defer { if interruption == nil { statements.end() } }
        try withoutActuallyEscaping(progress) { progress in
            try statements.reporting(
                { progress(min(1, Double(walks.count - first) / Double(total))) },
                body
            )
        }
    }
}
