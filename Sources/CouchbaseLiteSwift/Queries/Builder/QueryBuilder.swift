public import LoveseatCore

/// Makes queries from Swift values instead of text.
///
/// ```swift
/// let query = QueryBuilder
///     .select(SelectResult.expression(Meta.id), SelectResult.property("likes"))
///     .from(DataSource.collection(sights))
///     .where(Expression.property("city").equalTo(Expression.string("Paris")))
///     .orderBy(Ordering.property("likes").descending())
/// ```
///
/// A mistake, such as a path that is not one, is thrown when the query is run.
public enum QueryBuilder {
    /// Begins a query with the columns of its result.
    public static func select(_ results: any SelectResultProtocol...) -> Select { select(results) }

    /// Begins a query with the columns of its result.
    public static func select(_ results: [any SelectResultProtocol]) -> Select {
        Select(LoveseatCore.QueryBuilder.select(results))
    }

    /// Begins a query of which equal rows are returned once.
    public static func selectDistinct(_ results: any SelectResultProtocol...) -> Select {
        selectDistinct(results)
    }

    /// Begins a query of which equal rows are returned once.
    public static func selectDistinct(_ results: [any SelectResultProtocol]) -> Select {
        Select(LoveseatCore.QueryBuilder.selectDistinct(results))
    }
}

/// The columns of a query that does not have a collection yet.
public final class Select {
    private let stage: LoveseatCore.Select

    init(_ stage: LoveseatCore.Select) { self.stage = stage }

    /// Sets the collection that is queried.
    public func from(_ dataSource: any DataSourceProtocol) -> From {
        From(stage.from(dataSource), in: dataSource._database)
    }
}

/// A query that can be continued, and run.
public class QueryStage<Stage: BuiltQuery>: Query, @unchecked Sendable {
    let stage: Stage

    init(_ stage: Stage, in database: Database) {
        self.stage = stage
        super.init(stage, in: database)
    }
}

/// A query after FROM.
public final class From: QueryStage<LoveseatCore.From>, @unchecked Sendable {
    /// Joins other collections of the same database.
    public func join(_ joins: any JoinProtocol...) -> Joins { join(joins) }

    /// Joins other collections of the same database.
    public func join(_ joins: [any JoinProtocol]) -> Joins { Joins(stage.join(joins), in: database) }
}

/// A query after its joins.
public final class Joins: QueryStage<LoveseatCore.Joins>, @unchecked Sendable {}

/// A query after WHERE.
public final class Where: QueryStage<LoveseatCore.Where>, @unchecked Sendable {}

/// A query after GROUP BY.
public final class GroupBy: QueryStage<LoveseatCore.GroupBy>, @unchecked Sendable {
    /// Keeps only groups for which a condition is true.
    public func having(_ expression: any ExpressionProtocol) -> Having {
        Having(stage.having(expression), in: database)
    }
}

/// A query after HAVING.
public final class Having: QueryStage<LoveseatCore.Having>, @unchecked Sendable {}

/// A query after ORDER BY.
public final class OrderBy: QueryStage<LoveseatCore.OrderBy>, @unchecked Sendable {}

/// A query after LIMIT.
public final class Limit: QueryStage<LoveseatCore.Limit>, @unchecked Sendable {}

// MARK: - Stages that may follow

extension QueryStage where Stage: WhereRouter {
    /// Keeps only rows for which a condition is true.
    public func `where`(_ expression: any ExpressionProtocol) -> Where {
        Where(stage.where(expression), in: database)
    }
}

extension QueryStage where Stage: GroupByRouter {
    /// Makes one row of all rows that are equal in these expressions.
    public func groupBy(_ expressions: any ExpressionProtocol...) -> GroupBy { groupBy(expressions) }

    /// Makes one row of all rows that are equal in these expressions.
    public func groupBy(_ expressions: [any ExpressionProtocol]) -> GroupBy {
        GroupBy(stage.groupBy(expressions), in: database)
    }
}

extension QueryStage where Stage: OrderByRouter {
    /// Sorts the rows, by the first ordering, then those equal in it by the second, and so on.
    public func orderBy(_ orderings: any OrderingProtocol...) -> OrderBy { orderBy(orderings) }

    /// Sorts the rows, by the first ordering, then those equal in it by the second, and so on.
    public func orderBy(_ orderings: [any OrderingProtocol]) -> OrderBy {
        OrderBy(stage.orderBy(orderings), in: database)
    }
}

extension QueryStage where Stage: LimitRouter {
    /// Returns at most this many rows.
    public func limit(_ limit: any ExpressionProtocol) -> Limit { self.limit(limit, offset: nil) }

    /// Returns at most this many rows, after leaving out as many as the offset says, which is none if it is nil.
    public func limit(_ limit: any ExpressionProtocol, offset: (any ExpressionProtocol)?) -> Limit {
        Limit(stage.limit(limit, offset: offset), in: database)
    }
}
