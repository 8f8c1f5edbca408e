import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatQuery
import LoveseatTesting
import Testing

/// What the builder makes, against the same query in text.
@Suite(.timeLimit(.minutes(1)))
struct QueryBuilderTreeTests {
    private let scratch: Scratch
    private let database: Database
    private let sights: LoveseatCore.Collection
    private let cities: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        sights = try database.createCollection(name: "sights", scope: "travel")
        cities = try database.createCollection(name: "cities")
    }

    @Test func `stages say what the clauses of the text say`() throws {
        let id = SelectResult.expression(Meta.id)
        let from = QueryBuilder.select(id).from(DataSource.collection(sights))
        let isLiked = Expression.property("likes").greaterThan(Expression.value(5))
        let city = Expression.property("city")
        let count = Function.count()
        let (s, c) = (DataSource.collection(sights).as("s"), DataSource.collection(cities).as("c"))
        let same = Expression.property("city").from("s").equalTo(Meta.id.from("c"))
        let joined = QueryBuilder.select(SelectResult.all().from("s"), SelectResult.all().from("c")).from(s)
        let queries: [(any BuiltQuery, String)] = [
            (from, "SELECT META().id FROM travel.sights"),
            (QueryBuilder.select().from(DataSource.collection(cities)), "SELECT * FROM cities"),
            (
                QueryBuilder.select(SelectResult.all()).from(
                    DataSource.collection(try database.defaultCollection())
                ), "SELECT * FROM _default"
            ),
            (
                QueryBuilder.selectDistinct(SelectResult.property("address.city").as("c"), id.as(nil)).from(
                    s
                ),
                "SELECT DISTINCT address.city AS c, META().id FROM travel.sights AS s"
            ),
            (from.where(isLiked), "SELECT META().id FROM travel.sights WHERE likes > 5"),
            (
                QueryBuilder.select(SelectResult.expression(city), SelectResult.expression(count).as("n"))
                    .from(DataSource.collection(sights)).where(isLiked).groupBy(
                        city,
                        Expression.property("x")
                    )
                    .having(count.greaterThan(Expression.value(1)))
                    .orderBy(Ordering.property("n").descending(), Ordering.expression(city).ascending())
                    .limit(Expression.value(2), offset: Expression.parameter("skip")),
                """
                SELECT city, COUNT(*) AS n FROM travel.sights WHERE likes > 5 GROUP BY city, x HAVING COUNT(*) > 1
                ORDER BY n DESC, city LIMIT 2 OFFSET $skip
                """
            ),
            (
                from.groupBy([]).orderBy([]).limit(Expression.value(1)),
                "SELECT META().id FROM travel.sights LIMIT 1"
            ),
            (
                joined.join(Join.innerJoin(c).on(same)).where(isLiked),
                "SELECT s.*, c.* FROM travel.sights AS s JOIN cities AS c ON s.city = META(c).id WHERE likes > 5"
            ),
            (
                joined.join(Join.leftOuterJoin(c).on(same), Join.crossJoin(s)).orderBy(
                    Ordering.property("s.likes")
                ),
                """
                SELECT s.*, c.* FROM travel.sights AS s LEFT OUTER JOIN cities AS c ON s.city = META(c).id
                CROSS JOIN travel.sights AS s ORDER BY s.likes
                """
            ),
            (
                joined.join(Join.innerJoin(c).on(same), Join.leftOuterJoin(c).on(same)).limit(
                    Expression.value(1)
                ),
                """
                SELECT s.*, c.* FROM travel.sights AS s JOIN cities AS c ON s.city = META(c).id
                LEFT JOIN cities AS c ON s.city = META(c).id LIMIT 1
                """
            ),
            (
                QueryBuilder.select(
                    SelectResult.expression(FullTextFunction.rank(Expression.fullTextIndex("words")))
                )
                .from(s).where(
                    FullTextFunction.match(Expression.fullTextIndex("words").from("s"), query: "a b").and(
                        isLiked
                    )
                ),
                "SELECT RANK(words) FROM travel.sights AS s WHERE MATCH(s.words, 'a b') AND likes > 5"
            ),
        ]
        for (query, text) in queries {
            #expect(try query.statement.tree == QueryParser.parse(text), "\(text)")
            #expect(try query.statement.tree == QueryParser.parse(query.statement.tree.text), "\(text)")
        }
    }

    @Test func `expressions say what the text says`() throws {
        let (a, b, one) = (Expression.property("a"), Expression.property("b.c[0]"), Expression.value(1))
        let v = ArrayExpression.variable("v")
        let text = Expression.value("it's")
        let expressions: [(any ExpressionProtocol, String)] = [
            (a.add(one).multiply(b.subtract(one)), "(a + 1) * (b.c[0] - 1)"),
            (a.divide(b).modulo(one), "a / b.c[0] % 1"), (a.lessThan(b), "a < b.c[0]"),
            (a.lessThanOrEqualTo(b), "a <= b.c[0]"), (a.greaterThanOrEqualTo(b), "a >= b.c[0]"),
            (a.notEqualTo(text), "a != 'it''s'"), (a.equalTo(a.equalTo(b)), "a = (a = b.c[0])"),
            (a.is(b), "a IS b.c[0]"), (a.isNot(b), "a IS NOT b.c[0]"),
            (a.is(Expression.value(nil)), "a IS NULL"), (a.isNot(Expression.value(nil)), "a IS NOT NULL"),
            (a.equalTo(Expression.value(nil)), "a = NULL"), (a.isValued(), "a IS VALUED"),
            (a.isNotValued(), "a IS NOT VALUED"), (a.between(one, and: b), "a BETWEEN 1 AND b.c[0]"),
            (a.in([one, text]), "a IN (1, 'it''s')"), (a.in([]), "a IN ()"), (a.like(text), "a LIKE 'it''s'"),
            (a.regex(text), "REGEXP_LIKE(a, 'it''s')"),
            (a.and(b).and(one), "a AND b.c[0] AND 1"), (a.and(b.or(one)), "a AND (b.c[0] OR 1)"),
            (a.or(b.or(one)), "a OR b.c[0] OR 1"), (Expression.not(a.or(b)), "NOT (a OR b.c[0])"),
            (Expression.not(a), "NOT a"), (Expression.parameter("p q"), "$`p q`"),
            (Expression.property("select.x y.a\\.b"), "`select`.`x y`.`a.b`"), (b.from("h"), "h.b.c[0]"),
            (Expression.property("[1].x").from("h"), "h[1].x"), (Expression.all().from("h"), "h.*"),
            (Meta.id, "META().id"), (Meta.revisionID.from("h"), "META(h).revisionID"),
            (Meta.sequence, "META().sequence"), (Meta.isDeleted, "META().deleted"),
            (Meta.expiration, "META().expiration"),
            (Expression.value(true), "TRUE"), (Expression.value(5.0), "5.0"),
            (Expression.value(Float(0.5)), "0.5"),
            (Expression.value(Int64.min), "-9223372036854775808"),
            (Expression.value(UInt64.max), "1.8446744073709552e19"),
            (Expression.value(Decimal(string: "1.25")), "1.25"), (Expression.value("x"), "'x'"),
            (Expression.value(Date(timeIntervalSince1970: 0)), "'1970-01-01T00:00:00.000Z'"),
            (Expression.value([1, "x", nil, [true]]), "[1, 'x', NULL, [TRUE]]"),
            (Expression.value(["b": 1, "a'": ["c": 2.5]]), "{'a''': {'c': 2.5}, 'b': 1}"),
            (ArrayExpression.any(v).in(b).satisfies(v.equalTo(one)), "ANY v IN b.c[0] SATISFIES v = 1 END"),
            (
                ArrayExpression.every(v).in(a).satisfies(ArrayExpression.variable("v.x").like(text)),
                "EVERY v IN a SATISFIES v.x LIKE 'it''s' END"
            ),
            (ArrayExpression.anyAndEvery(v).in(a).satisfies(v), "ANY AND EVERY v IN a SATISFIES v END"),
            (ArrayFunction.contains(a, value: text), "ARRAY_CONTAINS(a, 'it''s')"),
            (ArrayFunction.length(a), "ARRAY_LENGTH(a)"),
            (a.collate(Collation.ascii().ignoreCase(true)).equalTo(text), "a = 'it''s' COLLATE NOCASE"),
            (
                a.equalTo(b.collate(Collation.unicode().locale("sv").ignoreAccents(true))).and(b),
                "(a = b.c[0] COLLATE (UNICODE:sv NODIAC)) AND b.c[0]"
            ),
            (a.equalTo(b).collate(Collation.unicode().locale(nil)), "a = b.c[0] COLLATE UNICODE"),
            (
                Function.contains(a.collate(Collation.unicode().locale(nil)), substring: text),
                "CONTAINS(a, 'it''s') COLLATE UNICODE"
            ),
        ]
        for (expression, text) in expressions { expectSame(expression, text) }
    }

    @Test func `functions have the names of the text`() {
        let a = Expression.property("a")
        let functions: [(any ExpressionProtocol, String)] = [
            (Function.avg(a), "AVG(a)"), (Function.count(), "COUNT(*)"), (Function.count(a), "COUNT(a)"),
            (Function.min(a), "MIN(a)"), (Function.max(a), "MAX(a)"), (Function.sum(a), "SUM(a)"),
            (Function.abs(a), "ABS(a)"), (Function.acos(a), "ACOS(a)"), (Function.asin(a), "ASIN(a)"),
            (Function.atan(a), "ATAN(a)"), (Function.atan2(y: a, x: Expression.value(1)), "ATAN2(a, 1)"),
            (Function.ceil(a), "CEIL(a)"), (Function.cos(a), "COS(a)"), (Function.degrees(a), "DEGREES(a)"),
            (Function.e(), "E()"), (Function.exp(a), "EXP(a)"), (Function.floor(a), "FLOOR(a)"),
            (Function.ln(a), "LN(a)"), (Function.log(a), "LOG(a)"), (Function.pi(), "PI()"),
            (Function.power(base: a, exponent: Expression.value(2)), "POWER(a, 2)"),
            (Function.radians(a), "RADIANS(a)"), (Function.round(a), "ROUND(a)"),
            (Function.round(a, digits: 2), "ROUND(a, 2)"), (Function.sign(a), "SIGN(a)"),
            (Function.sin(a), "SIN(a)"), (Function.sqrt(a), "SQRT(a)"), (Function.tan(a), "TAN(a)"),
            (Function.trunc(a), "TRUNC(a)"), (Function.trunc(a, digits: -1), "TRUNC(a, -1)"),
            (Function.contains(a, substring: a), "CONTAINS(a, a)"), (Function.length(a), "LENGTH(a)"),
            (Function.lower(a), "LOWER(a)"), (Function.ltrim(a), "LTRIM(a)"), (Function.rtrim(a), "RTRIM(a)"),
            (Function.trim(a), "TRIM(a)"), (Function.upper(a), "UPPER(a)"),
            (Function.stringToMillis(a), "STR_TO_MILLIS(a)"), (Function.stringToUTC(a), "STR_TO_UTC(a)"),
            (Function.millisToString(a), "MILLIS_TO_STR(a)"), (Function.millisToUTC(a), "MILLIS_TO_UTC(a)"),
        ]
        for (expression, text) in functions { expectSame(expression, text) }
    }

    private func expectSame(_ expression: any ExpressionProtocol, _ text: String) {
        let query = QueryBuilder.select(SelectResult.expression(expression).as("x")).from(
            DataSource.collection(cities)
        )
        let parsed = try? QueryParser.parse("SELECT \(text) AS x FROM cities")
        #expect(parsed != nil, "\(text) and \(query.statement.tree.text)")
        #expect(query.statement.tree == parsed, "\(text) and \(query.statement.tree.text)")
    }
}
