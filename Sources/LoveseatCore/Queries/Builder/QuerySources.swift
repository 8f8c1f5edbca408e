import LoveseatModel
import LoveseatQuery
import LoveseatStorage

// MARK: Results

/// A column of a query's result: a ``SelectResult``, or the beginning of one.
public protocol SelectResultProtocol: Sendable {
    /// The column.
    var selectResult: SelectResult { get }
}

/// A column of a query's result.
public struct SelectResult: SelectResultProtocol {
    let expression: Expression
    let alias: String?

    /// The column itself.
    public var selectResult: SelectResult { self }

    init(_ expression: any ExpressionProtocol, alias: String? = nil) {
        self.expression = expression.expression
        self.alias = alias
    }

    /// A property, such as `address.city` or `tags[0]`. The column's name is the last part of the path.
    public static func property(_ path: String) -> SelectResultAs { expression(Expression.property(path)) }

    /// The value of an expression. Without a name of its own, the column's name is `$1`, `$2` and so on.
    public static func expression(_ expression: any ExpressionProtocol) -> SelectResultAs {
        SelectResultAs(expression: expression)
    }

    /// The whole document. The column's name is the collection's.
    public static func all() -> SelectResultFrom { SelectResultFrom() }
}

/// A column that can be named.
public struct SelectResultAs: SelectResultProtocol {
    let expression: any ExpressionProtocol

    /// The column without a name of its own.
    public var selectResult: SelectResult {
        // In text, a bare literal here is the path of a property.
        if case .success(let tree) = expression.expression.tree, case .literal(.string) = tree.kind {
            return SelectResult(Expression(.function("TOSTRING", [tree])))
        }
        return SelectResult(expression)
    }

    /// Names the column. With nil, it has the name that follows from its expression.
    public func `as`(_ alias: String?) -> SelectResult {
        alias.map { SelectResult(expression, alias: $0) } ?? selectResult
    }
}

/// The whole document as a column.
public struct SelectResultFrom: SelectResultProtocol {
    /// The document of the first collection.
    public var selectResult: SelectResult { SelectResult(Expression.all()) }

    /// Takes the document of a joined collection by its alias; nil stands for the first collection.
    public func from(_ alias: String?) -> SelectResult {
        alias.map { SelectResult(Expression.all().from($0)) } ?? selectResult
    }
}

// MARK: - Collections

/// A collection that is queried: a ``DataSource``, or the beginning of one.
public protocol DataSourceProtocol: Sendable {
    /// The collection with its alias.
    var dataSource: DataSource { get }
}

/// A collection that is queried, with its alias.
public struct DataSource: DataSourceProtocol {
    let collection: Collection
    let alias: String?

    /// The collection itself.
    public var dataSource: DataSource { self }

    /// A collection of an open database. Its alias is its name, with the scope in front if that is not the default scope.
    public static func collection(_ collection: Collection) -> DataSourceAs {
        DataSourceAs(collection: collection)
    }

    var tree: SelectQuery.Source {
        let name = collection.handle.name
        let isPlain = name.scope == CollectionName.defaultPart
        return SelectQuery.Source(scope: isPlain ? nil : name.scope, name: name.name, alias: alias)
    }
}

/// A collection that can be given an alias.
public struct DataSourceAs: DataSourceProtocol {
    let collection: Collection

    /// The collection without an alias of its own.
    public var dataSource: DataSource { DataSource(collection: collection, alias: nil) }

    /// Gives the collection an alias, which must differ from all others in the query.
    public func `as`(_ alias: String) -> DataSource { DataSource(collection: collection, alias: alias) }
}

// MARK: - Joins

/// A joined collection: a ``Join``, or the beginning of one.
public protocol JoinProtocol: Sendable {
    /// The joined collection with its condition.
    var join: Join { get }
}

/// A joined collection.
public struct Join: JoinProtocol {
    let kind: SelectQuery.JoinKind
    let source: DataSource
    let condition: Expression?

    /// The join itself.
    public var join: Join { self }

    /// All pairs of documents for which a condition is true.
    public static func innerJoin(_ dataSource: any DataSourceProtocol) -> JoinOn {
        JoinOn(kind: .inner, source: dataSource.dataSource)
    }

    /// All pairs for which a condition is true, and each document without a partner, whose properties then are MISSING.
    public static func leftOuterJoin(_ dataSource: any DataSourceProtocol) -> JoinOn {
        JoinOn(kind: .left, source: dataSource.dataSource)
    }

    /// All pairs of documents.
    public static func crossJoin(_ dataSource: any DataSourceProtocol) -> Join {
        Join(kind: .cross, source: dataSource.dataSource, condition: nil)
    }
}

/// A joined collection that needs a condition. Without one, making the query throws `invalidQuery`.
public struct JoinOn: JoinProtocol {
    let kind: SelectQuery.JoinKind
    let source: DataSource

    /// The join without a condition.
    public var join: Join { Join(kind: kind, source: source, condition: nil) }

    /// Sets the condition of the pairs.
    public func on(_ expression: any ExpressionProtocol) -> Join {
        Join(kind: kind, source: source, condition: expression.expression)
    }
}

// MARK: - Order

/// A key by which rows are sorted: an ``Ordering``, or the beginning of one.
public protocol OrderingProtocol: Sendable {
    /// The expression with its direction.
    var ordering: Ordering { get }
}

/// A key by which rows are sorted.
public struct Ordering: OrderingProtocol {
    let expression: Expression
    let isDescending: Bool

    /// The ordering itself.
    public var ordering: Ordering { self }

    /// Sorts by a property, such as `address.city`, or by the name of a column.
    public static func property(_ path: String) -> QuerySortOrder { expression(Expression.property(path)) }

    /// Sorts by an expression. Give it a ``Collation`` with ``ExpressionProtocol/collate(_:)`` to sort texts as people expect.
    public static func expression(_ expression: any ExpressionProtocol) -> QuerySortOrder {
        QuerySortOrder(expression: expression.expression)
    }
}

/// An expression that rows are sorted by. The default direction is ascending.
public struct QuerySortOrder: OrderingProtocol {
    let expression: Expression

    /// The ascending ordering.
    public var ordering: Ordering { ascending() }

    /// Sorts from the smallest value to the largest. MISSING comes first, then numbers, texts and null.
    public func ascending() -> Ordering { Ordering(expression: expression, isDescending: false) }

    /// Sorts from the largest value to the smallest. MISSING comes last.
    public func descending() -> Ordering { Ordering(expression: expression, isDescending: true) }
}
