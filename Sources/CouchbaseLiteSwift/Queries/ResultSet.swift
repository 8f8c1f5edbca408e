import LoveseatCore

/// The rows of a query as of the moment at which it ran, which are read once.
///
/// One thread may use it at a time. Its rows may be kept.
public final class ResultSet: Sequence, IteratorProtocol {
    private let rows: [QueryRow]
    private let database: EngineDatabase
    private var position = 0

    init(_ rows: [QueryRow], of database: EngineDatabase) {
        self.rows = rows
        self.database = database
    }

    /// Returns the next row, or nil after the last one.
    public func next() -> Result? { nextRow().map { Result($0, database) } }

    /// Returns the rows that were not read yet.
    public func allResults() -> [Result] { Array(self) }

    /// Returns the rows that were not read yet as values of a type; see ``Result/data(as:dataKey:)``.
    ///
    /// - Throws: As ``Result/data(as:dataKey:)``.
    public func data<T: Decodable>(as type: T.Type, dataKey: String? = nil) throws -> [T] {
        var values: [T] = []
        while let row = nextRow() {
            values.append(try ModelCoding.decode(type, row, dataKey: dataKey, in: database))
        }
        return values
    }

    private func nextRow() -> QueryRow? {
        guard position < rows.count else { return nil }
        defer { position += 1 }
        return rows[position]
    }
}
