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
        let compiled = try read({ try engine.createQuery(query) }, inBatch: { try $0.createQuery(query) })
        return Query(compiled, in: self)
    }
}

/// A query, which can be run any number of times, and observed.
///
/// It is safe to use from any thread; unchecked, since what changes is behind a lock.
public class Query: CustomStringConvertible, @unchecked Sendable {
    let database: Database
    private let lock = NSLock()
    private var engine: EngineQuery
    /// A copy that cannot change.
    private var readOnlyParameters: Parameters?
    private var missingNames: [String]
    private var listeners: [ObjectIdentifier: QueryListener] = [:]

    init(_ engine: EngineQuery, in database: Database) {
        self.engine = engine
        self.database = database
        missingNames = Self.missingNames(in: nil, of: engine)
    }

    private static func missingNames(in parameters: Parameters?, of engine: EngineQuery) -> [String] {
        engine.parameterNames.subtracting(parameters?.names ?? []).map(\.text).sorted()
    }

    /// The values of the query's parameters, as a copy that cannot be changed. Setting them runs observed queries again.
    public var parameters: Parameters? {
        get { lock.withLock { readOnlyParameters } }
        set {
            let copy = newValue.map { Parameters($0, isReadOnly: true) }
            let observed = lock.withLock {
                readOnlyParameters = copy
                engine.parameters = copy?.engine ?? QueryParameters()
                missingNames = Self.missingNames(in: copy, of: engine)
                return Array(listeners.values)
            }
            for listener in observed { start(listener) }
        }
    }

    /// The query with its parameters.
    ///
    /// - Throws: `invalidQueryParam` if one of them has no value.
    func complete() throws -> EngineQuery {
        let (query, missing) = lock.withLock { (engine, missingNames.first) }
        guard let missing else { return query }
        throw CBLError.make(
            CBLError.invalidQueryParam,
            "the parameter \"\(missing)\" of the query has no value: set it in the query's parameters"
        )
    }

    /// Runs the query, and returns its rows as of this moment.
    ///
    /// - Throws: `invalidQueryParam` if a parameter has no value, or the query does not have it; `invalidQuery` if a collection of the query
    ///   was deleted; `notOpen`.
    public func execute() throws -> ResultSet {
        let query = try complete()
        let rows = try database.read({ try query.execute() }, inBatch: { try $0.execute(query) })
        return ResultSet(rows, of: database.engine)
    }

    /// Explains how the query is run: the SQL, SQLite's plan with one step a line, and the query.
    ///
    /// - Throws: `notOpen`; `transactionNotClosed` inside of ``Database/inBatch(using:)``.
    public func explain() throws -> String {
        let query = lock.withLock { engine }
        return try CBLError.converting { try query.explain() }
    }

    /// The number of columns of the result.
    public var columnCount: Int { lock.withLock { engine }.columns.count }

    /// The query's text.
    public var description: String { "Query[\(lock.withLock { engine }.text)]" }

    // MARK: Listeners

    func add(_ listener: QueryListener) {
        lock.withLock { listeners[ObjectIdentifier(listener)] = listener }
        start(listener)
    }

    func remove(_ listener: QueryListener) {
        lock.withLock { _ = listeners.removeValue(forKey: ObjectIdentifier(listener)) }
    }
}
