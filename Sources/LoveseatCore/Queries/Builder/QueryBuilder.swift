/// Makes queries from Swift values instead of text.
///
/// ```swift
/// let query = QueryBuilder
///     .select(SelectResult.expression(Meta.id), SelectResult.property("likes"))
///     .from(DataSource.collection(sights))
///     .where(Expression.property("city").equalTo(Expression.parameter("city")))
///     .orderBy(Ordering.property("likes").descending())
///     .limit(Expression.value(10))
/// let liked = try query.execute()
/// ```
///
/// A built query is run as the same query in SQL++ text is, and ``Query/text`` of ``BuiltQuery/makeQuery()`` shows that text. The
/// language has more than the builder: `CASE`, `UNNEST` and many functions.
///
/// In a file that imports Foundation, the name ``Expression`` is ambiguous where it stands alone as a type. Write `any ExpressionProtocol`
/// or `Loveseat.Expression` there.
public enum QueryBuilder {
    /// Begins a query with the columns of its result. Without any, the result is the whole document.
    public static func select(_ results: any SelectResultProtocol...) -> Select { select(results) }

    /// Begins a query with the columns of its result. Without any, the result is the whole document.
    public static func select(_ results: [any SelectResultProtocol]) -> Select {
        Select(results: results, isDistinct: false)
    }

    /// Begins a query of which equal rows are returned once.
    public static func selectDistinct(_ results: any SelectResultProtocol...) -> Select {
        selectDistinct(results)
    }

    /// Begins a query of which equal rows are returned once.
    public static func selectDistinct(_ results: [any SelectResultProtocol]) -> Select {
        Select(results: results, isDistinct: true)
    }
}

/// The columns of a query that does not have a collection yet.
public struct Select: Sendable {
    let results: [any SelectResultProtocol]
    let isDistinct: Bool

    /// Sets the collection that is queried, whose database runs the query.
    public func from(_ dataSource: any DataSourceProtocol) -> From {
        From(statement: QueryStatement(results, isDistinct: isDistinct, from: dataSource))
    }
}

// MARK: - Stages

/// A query after FROM.
public struct From: JoinRouter, WhereRouter, GroupByRouter, OrderByRouter, LimitRouter {
    /// The statement of the stages up to this one.
    public var statement: QueryStatement
}

/// A query after its joins.
public struct Joins: WhereRouter, GroupByRouter, OrderByRouter, LimitRouter {
    /// The statement of the stages up to this one.
    public var statement: QueryStatement
}

/// A query after WHERE.
public struct Where: GroupByRouter, OrderByRouter, LimitRouter {
    /// The statement of the stages up to this one.
    public var statement: QueryStatement
}

/// A query after GROUP BY.
public struct GroupBy: HavingRouter, OrderByRouter, LimitRouter {
    /// The statement of the stages up to this one.
    public var statement: QueryStatement
}

/// A query after HAVING.
public struct Having: OrderByRouter, LimitRouter {
    /// The statement of the stages up to this one.
    public var statement: QueryStatement
}

/// A query after ORDER BY.
public struct OrderBy: LimitRouter {
    /// The statement of the stages up to this one.
    public var statement: QueryStatement
}

/// A query after LIMIT.
public struct Limit: BuiltQuery {
    /// The statement of the stages up to this one.
    public var statement: QueryStatement
}

// MARK: - Stages that may follow

/// A stage that joins may follow.
public protocol JoinRouter: BuiltQuery {}

extension JoinRouter {
    /// Joins other collections of the same database. Then every property begins with the alias of its collection; see
    /// ``PropertyExpression/from(_:)``.
    public func join(_ joins: any JoinProtocol...) -> Joins { join(joins) }

    /// Joins other collections of the same database. An empty list joins nothing.
    public func join(_ joins: [any JoinProtocol]) -> Joins { Joins(statement: statement.joined(with: joins)) }
}

/// A stage that WHERE may follow.
public protocol WhereRouter: BuiltQuery {}

extension WhereRouter {
    /// Keeps only rows for which a condition is true.
    public func `where`(_ expression: any ExpressionProtocol) -> Where {
        Where(statement: statement.filtered(by: expression))
    }
}

/// A stage that GROUP BY may follow.
public protocol GroupByRouter: BuiltQuery {}

extension GroupByRouter {
    /// Makes one row of all rows that are equal in these expressions.
    public func groupBy(_ expressions: any ExpressionProtocol...) -> GroupBy { groupBy(expressions) }

    /// Makes one row of all rows that are equal in these expressions. An empty list groups nothing.
    public func groupBy(_ expressions: [any ExpressionProtocol]) -> GroupBy {
        GroupBy(statement: statement.grouped(by: expressions))
    }
}

/// A stage that HAVING may follow.
public protocol HavingRouter: BuiltQuery {}

extension HavingRouter {
    /// Keeps only groups for which a condition is true.
    public func having(_ expression: any ExpressionProtocol) -> Having {
        Having(statement: statement.filteringGroups(by: expression))
    }
}

/// A stage that ORDER BY may follow.
public protocol OrderByRouter: BuiltQuery {}

extension OrderByRouter {
    /// Sorts the rows, by the first ordering, then those equal in it by the second, and so on.
    public func orderBy(_ orderings: any OrderingProtocol...) -> OrderBy { orderBy(orderings) }

    /// Sorts the rows, by the first ordering, then those equal in it by the second, and so on. An empty list sorts nothing.
    public func orderBy(_ orderings: [any OrderingProtocol]) -> OrderBy {
        OrderBy(statement: statement.ordered(by: orderings))
    }
}

/// A stage that LIMIT may follow.
public protocol LimitRouter: BuiltQuery {}

extension LimitRouter {
    /// Returns at most this many rows. A negative number is 0; anything but a number makes the run throw.
    public func limit(_ limit: any ExpressionProtocol) -> Limit { self.limit(limit, offset: nil) }

    /// Returns at most this many rows, after leaving out as many as the offset says, which is none if it is nil.
    public func limit(_ limit: any ExpressionProtocol, offset: (any ExpressionProtocol)?) -> Limit {
        Limit(statement: statement.limited(to: limit, offset: offset))
    }
}
