public import LoveseatModel
package import LoveseatQuery
import LoveseatStorage

/// A query that ``QueryBuilder`` makes. Every stage from ``From`` on is one, and can be run.
///
/// A stage is a value: it reads nothing from the database, and can be kept and continued in several ways. Mistakes, such as a property's
/// path that is not one, are thrown when the query is made or run.
///
/// Each run of a stage makes a ``Query``. To run it often, make the query once with ``makeQuery()``.
public protocol BuiltQuery: Sendable {
    /// The statement of the stages up to this one.
    var statement: QueryStatement { get set }
}

/// The statement that the stages of a ``QueryBuilder`` query make.
public struct QueryStatement: Sendable {
    /// The values of the query's parameters. A parameter without a value is MISSING.
    public var parameters = QueryParameters()

    package private(set) var tree: SelectQuery
    private let database: Database
    /// The first mistake.
    private var problem: LoveseatError?

    init(_ results: [any SelectResultProtocol], isDistinct: Bool, from dataSource: any DataSourceProtocol) {
        let source = dataSource.dataSource
        database = source.collection.database
        tree = SelectQuery(from: source.tree)
        tree.isDistinct = isDistinct
        for result in results.map(\.selectResult) {
            guard let expression = usable(result.expression) else { continue }
            tree.results.append(.init(expression, alias: result.alias))
        }
        if results.isEmpty { tree.results = [.init(.init(.wildcard(source: nil)))] }
    }

    /// The text of the query.
    ///
    /// - Throws: ``LoveseatError``: `invalidQuery` for the first mistake of the stages; `notOpen` if that was a closed database.
    func text() throws(LoveseatError) -> String {
        if let problem { throw problem }
        return tree.text
    }

    func makeQuery() throws(LoveseatError) -> Query {
        var query = try database.createQuery(text())
        query.parameters = parameters
        return query
    }

    // MARK: Stages

    /// The tree of an expression; nil, with its mistake noted, if it has none.
    private mutating func usable(_ expression: any ExpressionProtocol) -> QueryExpression? {
        switch expression.expression.tree {
        case .success(let tree): return tree
        case .failure(let error):
            refuse(error)
            return nil
        }
    }

    private mutating func refuse(_ error: QueryError) { refuse(LoveseatError(error)) }

    private mutating func refuse(_ error: LoveseatError) {
        if problem == nil { problem = error }
    }

    func joined(with joins: [any JoinProtocol]) -> Self {
        var copy = self
        for join in joins.map(\.join) {
            let other = join.source.collection.database
            do throws(LoveseatError) {
                if other !== database, try other.opened !== database.opened {
                    copy.refuse(
                        QueryError(.invalidQuery, "The collections of a query must be of one database")
                    )
                }
            } catch { copy.refuse(error) }
            let condition = join.condition.flatMap { copy.usable($0) }
            copy.tree.joins.append(.collection(join.kind, join.source.tree, on: condition))
        }
        return copy
    }

    func filtered(by condition: any ExpressionProtocol) -> Self {
        var copy = self
        copy.tree.condition = copy.usable(condition)
        return copy
    }

    func grouped(by expressions: [any ExpressionProtocol]) -> Self {
        var copy = self
        for expression in expressions {
            guard let item = copy.usable(expression) else { continue }
            copy.tree.grouping.append(item)
        }
        return copy
    }

    func filteringGroups(by condition: any ExpressionProtocol) -> Self {
        var copy = self
        copy.tree.having = copy.usable(condition)
        if tree.grouping.isEmpty {
            copy.refuse(QueryError(.invalidQuery, "HAVING needs GROUP BY: name at least one expression"))
        }
        return copy
    }

    func ordered(by orderings: [any OrderingProtocol]) -> Self {
        var copy = self
        for ordering in orderings.map(\.ordering) {
            guard let item = copy.usable(ordering.expression) else { continue }
            copy.tree.order.append(.init(item, isDescending: ordering.isDescending))
        }
        return copy
    }

    func limited(to limit: any ExpressionProtocol, offset: (any ExpressionProtocol)?) -> Self {
        var copy = self
        copy.tree.limit = copy.usable(limit)
        copy.tree.offset = offset.flatMap { copy.usable($0) }
        return copy
    }
}

extension BuiltQuery {
    /// The values of the query's parameters. A parameter without a value is MISSING.
    public var parameters: QueryParameters {
        get { statement.parameters }
        set { statement.parameters = newValue }
    }

    /// Returns the query with its parameters, which can be run any number of times.
    ///
    /// Inside a transaction's closure, ``makeQuery(in:)`` takes its place.
    ///
    /// - Throws: ``LoveseatError``: `invalidQuery` for a mistake, such as a property that does not begin with the alias of a collection
    ///   where there are several; otherwise as ``Database/createQuery(_:)``.
    public func makeQuery() throws(LoveseatError) -> Query { try statement.makeQuery() }

    /// Returns the query with its parameters, for a transaction of the same database, which may have created the collections.
    ///
    /// - Throws: ``LoveseatError``: `invalidQuery` for a mistake; otherwise as ``ReadTransaction/createQuery(_:)``.
    public func makeQuery(in transaction: ReadTransaction) throws(LoveseatError) -> Query {
        var query = try transaction.createQuery(statement.text())
        query.parameters = parameters
        return query
    }

    /// Runs the query, and returns its rows. This call blocks the thread.
    ///
    /// - Throws: As ``makeQuery()`` and `execute()` of ``Query``.
    public func execute() throws(LoveseatError) -> [QueryRow] { try makeQuery().execute() }

    /// Runs the query on one of the database's own threads, and returns its rows.
    ///
    /// - Throws: As ``makeQuery()`` and `execute()` of ``Query``; `CancellationError` if the task is cancelled.
    public func execute() async throws -> [QueryRow] { try await makeQuery().execute() }

    /// Runs the query, and returns its rows as values of a type; see ``QueryRow/decode(_:dataKey:)``.
    ///
    /// - Throws: As `execute()` and ``QueryRow/decode(_:dataKey:)``.
    public func execute<T: Decodable>(as type: T.Type, dataKey: String? = nil) throws(LoveseatError) -> [T] {
        try makeQuery().execute(as: type, dataKey: dataKey)
    }

    /// Runs the query on one of the database's own threads, and returns its rows as values of a type.
    ///
    /// - Throws: As `execute()` and ``QueryRow/decode(_:dataKey:)``.
    public func execute<T: Decodable>(as type: T.Type, dataKey: String? = nil) async throws -> [T] {
        try await makeQuery().execute(as: type, dataKey: dataKey)
    }

    /// Returns the rows as an asynchronous sequence, which keeps about a megabyte of them in memory; see ``Query/rows()``.
    ///
    /// - Throws: As ``makeQuery()``.
    public func rows() throws(LoveseatError) -> QueryRows { try makeQuery().rows() }

    /// Explains how the query is run: the SQL, SQLite's plan, and the query as text; see ``Query/explain()``.
    ///
    /// - Throws: As ``makeQuery()``.
    public func explain() throws(LoveseatError) -> String { try makeQuery().explain() }

    /// Runs the query now, and again when its collections change, as an asynchronous sequence; see ``Query/changes()``.
    ///
    /// - Throws: As ``makeQuery()`` and ``Query/changes()``.
    public func changes() throws(LoveseatError) -> QueryChanges { try makeQuery().changes() }
}
