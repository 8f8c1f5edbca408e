import Foundation
import LoveseatCore
import LoveseatModel

/// Something that makes queries.
public protocol QueryFactory {
    /// Creates a query from SQL++ text.
    func createQuery(_ query: String) throws -> Query
}

extension Database: QueryFactory {
    /// Creates a query from SQL++ text.
    ///
    /// `_`, `_default` or the database's name in FROM is the default collection, `name` a collection of the default scope, and `scope.name`
    /// any other.
    ///
    /// - Throws: `invalidQuery` for text that is not a query, and for an unknown collection; `missingIndex` if it needs a full-text index that
    ///   does not exist; `notOpen`.
    public func createQuery(_ query: String) throws -> Query {
        Query(try compile(query), in: self)
    }

    func compile(_ text: String) throws -> EngineQuery {
        try read({ try engine.createQuery(text) }, inBatch: { try $0.createQuery(text) })
    }
}

/// A query, which can be run any number of times, and observed.
///
/// It is safe to use from any thread; unchecked, since what changes is behind a lock.
public class Query: CustomStringConvertible, @unchecked Sendable {
    let database: Database
    private let make: (Database) throws -> EngineQuery
    private let lock = NSLock()
    /// Nil until a query of stages is first used.
    private var engine: EngineQuery?
    /// A copy that cannot change.
    private var readOnlyParameters: Parameters?
    private var listeners: [ObjectIdentifier: QueryListener] = [:]

    init(_ engine: EngineQuery, in database: Database) {
        self.engine = engine
        self.database = database
        make = { _ in engine }
    }

    /// A query of stages, which is translated when it is first used.
    init(_ stage: any BuiltQuery, in database: Database) {
        self.database = database
        make = { try $0.read({ try stage.makeQuery() }, inBatch: { try stage.makeQuery(in: $0) }) }
    }

    /// A query that is made when it is first used.
    init(in database: Database, _ make: @escaping (Database) throws -> EngineQuery) {
        self.database = database
        self.make = make
    }

    /// The values of the query's parameters, as a copy that cannot be changed. Setting them runs observed queries again.
    public var parameters: Parameters? {
        get { lock.withLock { readOnlyParameters } }
        set {
            let copy = newValue.map { Parameters($0, isReadOnly: true) }
            let observed = lock.withLock {
                readOnlyParameters = copy
                return Array(listeners.values)
            }
            for listener in observed { start(listener) }
        }
    }

    /// The query without its parameters.
    private func compiled() throws -> EngineQuery {
        if let known = lock.withLock({ engine }) { return known }
        let made = try make(database)
        lock.withLock { engine = made }
        return made
    }

    /// The query with its parameters.
    ///
    /// - Throws: `invalidQueryParam` if one of them has no value.
    func complete() throws -> EngineQuery {
        var query = try compiled()
        let parameters = lock.withLock { readOnlyParameters }
        if let parameters { query.parameters = parameters.engine }
        if query.parameterNames.isEmpty { return query }
        let missing = query.parameterNames.subtracting(parameters?.names ?? []).map(\.text).min()
        guard let missing else { return query }
        throw CBLError.make(
            CBLError.invalidQueryParam,
            "the parameter \"\(missing)\" of the query has no value: set it in the query's parameters"
        )
    }

    /// Runs the query, and returns its rows as of this moment.
    ///
    /// - Throws: `invalidQueryParam` if a parameter has no value, or the query does not have it; `invalidQuery` if a collection of the query
    ///   was deleted, or the stages of the query are not one; `notOpen`.
    public func execute() throws -> ResultSet {
        let query = try complete()
        let rows = try database.read({ try query.execute() }, inBatch: { try $0.execute(query) })
        return ResultSet(rows, of: database.engine)
    }

    /// Explains how the query is run: the SQL, SQLite's plan with one step a line, and the query.
    ///
    /// - Throws: `invalidQuery` if the stages of the query are not one; `notOpen`.
    public func explain() throws -> String {
        let query = try compiled()
        return try database.read({ try query.explain() }, inBatch: { try $0.explain(query) })
    }

    /// The number of columns of the result; 0 if the query is not one.
    public var columnCount: Int {
        // A property cannot throw.
        (try? compiled())?.columns.count ?? 0
    }

    /// The SQL++ text; empty if a mistake in the stages leaves none.
    var text: String { (try? compiled())?.text ?? "" }

    /// The query's text.
    public var description: String { "Query[\(text)]" }

    // MARK: Listeners

    func add(_ listener: QueryListener) {
        lock.withLock { listeners[ObjectIdentifier(listener)] = listener }
        start(listener)
    }

    func remove(_ listener: QueryListener) {
        lock.withLock { _ = listeners.removeValue(forKey: ObjectIdentifier(listener)) }
    }
}
