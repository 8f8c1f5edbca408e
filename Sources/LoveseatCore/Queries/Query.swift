public import LoveseatModel
import LoveseatQuery
import LoveseatStorage
private import Synchronization

/// A query in SQL++, such as `SELECT name, likes FROM travel.sights WHERE city = $city ORDER BY likes DESC`.
///
/// ```swift
/// var query = try database.createQuery("SELECT meta().id, likes FROM travel.sights WHERE city = $city")
/// query.parameters = ["city": "Paris"]
/// for row in try query.execute() { print(row["id"] ?? .null, row["likes"]?.int ?? 0) }
/// ```
///
/// A query is a value: changing the parameters of a copy changes nothing else. It can be run any number of times, from any thread, and
/// stays usable when indexes and other collections come and go. Each run reads one snapshot.
public struct Query: Sendable {
    /// The database that the query reads.
    public let database: Database
    /// The text of the query.
    public let text: String
    /// The values of the query's parameters. A parameter without a value is MISSING.
    public var parameters = QueryParameters()
    /// How long a run of the query may take, from the moment at which it begins. The default is nil, without a limit.
    ///
    /// A run that takes longer is interrupted, and throws ``LoveseatError/Code/timeout``. It does not apply inside transactions.
    public var deadline: Duration?

    private let compilation: QueryCompilation

    init(_ text: String, of database: Database, in view: StoreReadTransaction) throws(LoveseatError) {
        self.text = text
        self.database = database
        compilation = QueryCompilation()
        try view.prepare(try translated(for: view))
    }

    /// The titles of the result's columns, in the order of the SELECT list.
    public var columns: [String] { compilation.latest?.columns ?? [] }

    /// The names of its parameters, without `$`.
    package var parameterNames: Set<ExactText> { compilation.latest?.parameterNames ?? [] }

    // MARK: Running

    /// Runs the query, and returns its rows.
    ///
    /// This call blocks the thread. In async code, the call of the same name with `await` takes its place. Inside a transaction's
    /// closure use ``ReadTransaction/execute(_:)``.
    ///
    /// - Returns: All rows. For results that are larger than the memory should be, use ``rows()``.
    /// - Throws: ``LoveseatError``: `invalidQueryParameter` for a value of a parameter that the query does not have; `invalidQuery` if a
    ///   collection of the query was deleted; `missingIndex` if a full-text index was; an error of SQLite's domain if a function
    ///   refuses a value; `timeout`, `busy`, `notOpen`, `transactionNotClosed`.
    public func execute() throws(LoveseatError) -> [QueryRow] {
        let store = try database.store
        return try DocumentStore.wrapping {
            try store.read(within: database.config.busyTimeout, deadline: deadline) { try rows(in: $0) }
        }
    }

    /// Runs the query on one of the database's own threads, and returns its rows.
    ///
    /// - Throws: As `execute()`, and `CancellationError` if the task is cancelled, which interrupts the query.
    public func execute() async throws -> [QueryRow] {
        try await runningFromTask { try rows(in: $0) }
    }

    /// Runs the query, and returns its rows as values of a type; see ``QueryRow/decode(_:dataKey:)``.
    ///
    /// - Throws: As `execute()` and ``QueryRow/decode(_:dataKey:)``.
    public func execute<T: Decodable>(as type: T.Type, dataKey: String? = nil) throws(LoveseatError) -> [T] {
        try QueryRow.decode(try execute(), type, dataKey)
    }

    /// Runs the query on one of the database's own threads, and returns its rows as values of a type.
    public func execute<T: Decodable>(as type: T.Type, dataKey: String? = nil) async throws -> [T] {
        try QueryRow.decode(try await execute(), type, dataKey)
    }

    /// Explains how the query is run, in three parts: the SQL, SQLite's plan with one step a line, and the query.
    ///
    /// A plan that uses an index has the words `USING INDEX` or `USING COVERING INDEX` and its name; `SCAN` without an index reads all
    /// documents.
    ///
    /// - Throws: As `execute()`.
    public func explain() throws(LoveseatError) -> String {
        let store = try database.store
        return try DocumentStore.wrapping {
            try store.read(within: database.config.busyTimeout) { try explanation(in: $0) }
        }
    }

    fileprivate func explanation(in view: StoreReadTransaction) throws -> String {
        let query = try translated(for: view)
        return "\(query.sql)\n\n\(try view.plan(query).joined(separator: "\n"))\n\n\(text)\n"
    }

    // MARK: Parts

    /// The collections that the query reads.
    var collections: [CollectionName] { compilation.latest?.collections ?? [] }

    func rows(in view: StoreReadTransaction) throws -> [QueryRow] {
        var rows: [QueryRow] = []
        try forEachRow(in: view) {
            rows.append($0)
            return true
        }
        return rows
    }

    func forEachRow(in view: StoreReadTransaction, _ body: (QueryRow) throws -> Bool) throws {
        let query = try translated(for: view)
        let titles = QueryTitles(query.columns)
        try view.run(query, parameters.values) { try body(QueryRow(titles: titles, values: $0)) }
    }

    func runningFromTask<T: Sendable>(
        _ call: String = #function,
        _ body: @Sendable (StoreReadTransaction) throws -> T
    ) async throws -> T {
        let store = try database.store
        do {
            return try await store.readFromTask(
                within: database.config.busyTimeout,
                deadline: deadline,
                call: call,
                body
            )
        } catch { throw Database.mapped(error) }
    }

    /// The SQL for a snapshot, which depends on its collections and indexes.
    private func translated(for view: StoreReadTransaction) throws(LoveseatError) -> TranslatedQuery {
        try compilation.translated(text, for: view, database.name)
    }
}

/// The SQL of a query as of the last run.
private final class QueryCompilation: Sendable {
    private let state = Mutex<(version: Int32, query: TranslatedQuery)?>(nil)

    var latest: TranslatedQuery? { state.withLock { $0?.query } }

    func translated(_ text: String, for view: StoreReadTransaction, _ databaseName: String)
        throws(LoveseatError) -> TranslatedQuery
    {
        let version = view.schemaVersion
        if let known = state.withLock({ $0 }), known.version == version { return known.query }
        let query: TranslatedQuery
        do throws(QueryError) {
            query = try QueryCompiler.compile(text, catalog: view.queryCatalog(of: databaseName))
        } catch { throw LoveseatError(error) }
        state.withLock { $0 = (version, query) }
        return query
    }
}

extension QueryRow {
    static func decode<T: Decodable>(_ rows: [QueryRow], _ type: T.Type, _ dataKey: String?)
        throws(LoveseatError) -> [T]
    {
        var values: [T] = []
        values.reserveCapacity(rows.count)
        for row in rows { values.append(try row.decode(type, dataKey: dataKey)) }
        return values
    }
}

extension Database {
    /// Creates a query from SQL++ text.
    ///
    /// `_` or the database's name in FROM is the default collection, `name` a collection of the default scope, and `scope.name` any
    /// other. Put names of properties that are reserved words or have other characters than letters, digits and `_` in back quotes.
    ///
    /// - Throws: ``LoveseatError``: `invalidQuery` for text that is not a query, with the position and what is expected there, and for an
    ///   unknown collection; `missingIndex` if the query needs a full-text index that does not exist; `notOpen`;
    ///   `transactionNotClosed` inside a transaction's closure, where ``ReadTransaction/createQuery(_:)`` takes its place.
    public func createQuery(_ text: String) throws(LoveseatError) -> Query {
        let store = try store
        return try DocumentStore.wrapping {
            try store.read(within: config.busyTimeout) { try Query(text, of: self, in: $0) }
        }
    }
}

extension Query {
    /// Creates a query for the documents of a collection that meet a condition in SQL++. ``QueryRow/documentID`` of its rows is their IDs.
    ///
    /// `order`: an expression with its direction; nil for any order.
    /// - Throws: As ``Database/createQuery(_:)``.
    package init(idsIn collection: Collection, where condition: String, order: String? = nil)
        throws(LoveseatError)
    {
        let head = "SELECT meta().id AS `_id` FROM `\(collection.scope.name)`.`\(collection.name)` WHERE ("
        do throws(LoveseatError) {
            self = try collection.database.createQuery(
                "\(head)\(condition))" + (order.map { " ORDER BY \($0)" } ?? "")
            )
        } catch { throw error.located(after: head, in: condition) }
    }
}

extension LoveseatError {
    /// The error of a query, with its place in a condition that the query has after `head`.
    fileprivate func located(after head: String, in condition: String) -> LoveseatError {
        let phrase = " (at character "
        guard let range = message.ranges(of: phrase).last,
            let place = Int(message[range.upperBound...].dropLast())
        else {
            // Most other errors, as that of an unknown function, have no place.
            return self
        }
        // A place behind the condition is that of its end.
        let isInside = place > head.utf8.count && place <= head.utf8.count + max(1, condition.utf8.count)
        let text =
            isInside ? "\(phrase)\(place - head.utf8.count))" : " (at the end of the condition)"
        return LoveseatError(code, message[..<range.lowerBound] + text)
    }
}

extension QueryRow {
    /// The document's ID; nil in rows of other queries than those of ``init(idsIn:where:order:)`` of ``Query``.
    package var documentID: String? { self["_id"]?.string }
}

extension ReadTransaction {
    /// Creates a query from SQL++ text, which may name collections that the transaction created.
    ///
    /// - Throws: As ``Database/createQuery(_:)``, and `notInTransaction`.
    public func createQuery(_ text: String) throws(LoveseatError) -> Query {
        try Query(text, of: database, in: try active)
    }

    /// Runs a query on the transaction's snapshot, and returns its rows. A ``WriteTransaction`` sees its own changes.
    ///
    /// - Throws: ``LoveseatError``: as `execute()` of ``Query``; `notInTransaction`; `invalidParameter` for a query of another database;
    ///   `notOpen` for one whose own ``Database`` object is closed.
    public func execute(_ query: Query) throws(LoveseatError) -> [QueryRow] {
        let view = try view(for: query)
        return try DocumentStore.wrapping { try view.step { try query.rows(in: view) } }
    }

    /// Runs a query on the transaction's snapshot, and returns its rows as values of a type.
    ///
    /// - Throws: As ``execute(_:)`` and ``QueryRow/decode(_:dataKey:)``.
    public func execute<T: Decodable>(_ query: Query, as type: T.Type, dataKey: String? = nil)
        throws(LoveseatError) -> [T]
    {
        try QueryRow.decode(try execute(query), type, dataKey)
    }

    /// Runs a query on the transaction's snapshot, and calls a closure with one row after another, without keeping them in memory,
    /// until it returns false.
    ///
    /// - Throws: The error that the closure throws; otherwise as ``execute(_:)``.
    public func forEachRow(of query: Query, _ body: (QueryRow) throws -> Bool) throws {
        let view = try view(for: query)
        try view.step { try query.forEachRow(in: view, body) }
    }

    /// Explains how a query is run on the transaction's snapshot; see ``Query/explain()``.
    package func explain(_ query: Query) throws(LoveseatError) -> String {
        let view = try view(for: query)
        return try DocumentStore.wrapping { try view.step { try query.explanation(in: view) } }
    }

    private func view(for query: Query) throws(LoveseatError) -> StoreReadTransaction {
        let view = try active
        guard try isOwn(query.database) else {
            throw LoveseatError(.invalidParameter, "the query is of another database than the transaction")
        }
        return view
    }
}
