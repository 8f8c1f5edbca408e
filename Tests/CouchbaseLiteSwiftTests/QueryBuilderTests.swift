import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct QueryBuilderTests {
    private let world: World
    private var database: Database { world.database }
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws {
        world = try World()
        for (id, city, likes) in [("louvre", "Paris", 7), ("orsay", "Paris", 5), ("zoo", "Lyon", 9)] {
            let document = MutableDocument(id: id, data: ["city": city, "likes": likes])
            try sights.save(document: document.setArray(MutableArrayObject(data: [id]), forKey: "tags"))
        }
    }

    private var ids: From {
        QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.collection(sights))
    }

    private func texts(_ query: Query) throws -> [String?] { try query.execute().map { $0.string(at: 0) } }

    @Test func `the stages make a query`() throws {
        let query =
            ids
            .where(Expression.property("likes").greaterThan(Expression.int(5)))
            .orderBy(Ordering.property("likes").descending())
            .limit(Expression.int(1), offset: Expression.int(1))
        #expect(try texts(query) == ["louvre"])
        #expect(query.columnCount == 1)
        #expect("\(query)".contains("ORDER BY"))
        #expect(try query.explain().contains("SELECT"))
    }

    @Test func `rows are grouped, and groups filtered`() throws {
        let city = Expression.property("city")
        let query = QueryBuilder.select([
            SelectResult.property("city"), SelectResult.expression(Function.count()),
        ])
        .from(DataSource.collection(sights))
        .groupBy(city)
        .having(Function.count().greaterThan(Expression.int64(1)))
        .orderBy([Ordering.expression(city)])
        let rows = try query.execute().allResults()
        #expect(rows.map { $0.string(forKey: "city") } == ["Paris"])
        #expect(rows.map { $0.int(at: 1) } == [2])
        let cities = QueryBuilder.selectDistinct(SelectResult.property("city"))
            .from(DataSource.collection(sights))
            .orderBy(Ordering.property("city"))
        #expect(try texts(cities) == ["Lyon", "Paris"])
    }

    @Test func `collections are joined`() throws {
        let cities = try database.defaultCollection()
        try cities.save(document: MutableDocument(id: "Paris"))
        let query = QueryBuilder.select(SelectResult.expression(Meta.id.from("s")))
            .from(DataSource.collection(sights).as("s"))
            .join(
                Join.join(DataSource.collection(cities).as("c"))
                    .on(Expression.property("city").from("s").equalTo(Meta.id.from("c")))
            )
            .where(Expression.property("likes").from("s").lessThan(Expression.double(6.5)))
        #expect(try texts(query) == ["orsay"])
    }

    @Test func `values of all types are expressions`() throws {
        let date = Date(timeIntervalSince1970: 1_000)
        let boxed: Any = 4
        let query = QueryBuilder.select(
            SelectResult.expression(Expression.value(boxed)),
            SelectResult.expression(Expression.value("a")),
            SelectResult.expression(Expression.value(nil)),
            SelectResult.expression(Expression.number(2)),
            SelectResult.expression(Expression.float(1.5)),
            SelectResult.expression(Expression.boolean(true)),
            SelectResult.expression(Expression.date(date)).as("date"),
            SelectResult.expression(Expression.array([1, "b"])),
            SelectResult.expression(Expression.dictionary(["n": 1])),
            SelectResult.expression(Expression.negated(Expression.boolean(true)))
        )
        .from(DataSource.collection(sights)).limit(Expression.int(1))
        let row = try #require(try query.execute().next())
        #expect(row.int(at: 0) == 4)
        #expect(row.string(at: 1) == "a")
        #expect(row.value(at: 2) == nil)
        #expect(row.int(at: 3) == 2)
        #expect(row.float(at: 4) == 1.5)
        #expect(row.boolean(at: 5))
        #expect(row.date(forKey: "date") == date)
        #expect(row.array(at: 7)?.count == 2)
        #expect(row.dictionary(at: 8)?.int(forKey: "n") == 1)
        #expect(!row.boolean(at: 9))
    }

    @Test func `arrays and dictionaries may contain expressions`() throws {
        let parts: [String: Any] = ["likes": Expression.property("likes"), "fixed": [1, Meta.id] as [Any]]
        let query = QueryBuilder.select(
            SelectResult.expression(Expression.dictionary(parts)).as("parts"),
            SelectResult.expression(Expression.array([Expression.property("city"), "b"]))
        )
        .from(DataSource.collection(sights)).where(Meta.id.equalTo(Expression.string("zoo")))
        let row = try #require(try query.execute().next())
        #expect(row.dictionary(forKey: "parts")?.int(forKey: "likes") == 9)
        #expect(row["parts"]["fixed"][0].int == 1)
        #expect(row["parts"]["fixed"][1].string == "zoo")
        #expect(row.array(at: 1)?.toArray() as? [String] == ["Lyon", "b"])
    }

    @Test func `parameters and conditions on arrays`() throws {
        let tag = ArrayExpression.variable("tag")
        let query = ids.where(
            ArrayExpression.any(tag).in(Expression.property("tags"))
                .satisfies(tag.equalTo(Expression.parameter("tag")))
        )
        expectError(CBLError.invalidQueryParam) { try query.execute() }
        query.parameters = Parameters().setString("zoo", forName: "tag")
        #expect(try texts(query) == ["zoo"])
    }

    @Test func `a query of stages can be made and run in a batch`() throws {
        let query = ids
        try database.inBatch {
            try sights.purge(id: "zoo")
            #expect(try query.execute().allResults().count == 2)
        }
    }

    @Test func `a whole document is named like its collection, or by the alias`() throws {
        let all = QueryBuilder.select(SelectResult.all())
        let source = DataSource.collection(sights)
        #expect(try all.from(source).execute().next()?.dictionary(forKey: "sights")?.count == 3)
        #expect(try all.from(source.as("s")).execute().next()?.dictionary(forKey: "s")?.count == 3)
    }

    @Test func `expressions can be kept in variables of their protocols`() throws {
        let city: any PropertyExpressionProtocol = Expression.property("city")
        let id: any MetaExpressionProtocol = Meta.id
        let tag: any VariableExpressionProtocol = ArrayExpression.variable("tag")
        var condition: any ExpressionProtocol = city.from("s").equalTo(Expression.string("Paris"))
        let isLouvre = tag.equalTo(Expression.string("louvre"))
        condition = condition.and(
            ArrayExpression.any(tag).in(Expression.property("tags").from("s")).satisfies(isLouvre)
        )
        let query = QueryBuilder.select(SelectResult.expression(id.from("s")))
            .from(DataSource.collection(sights).as("s"))
            .where(condition.or(city.from(nil).equalTo(Expression.string("Lyon"))))
            .orderBy(Ordering.expression(id.from("s")))
        #expect(try texts(query) == ["louvre", "zoo"])
    }

    @Test func `full-text indexes can be kept in variables of their protocols`() throws {
        try sights.createIndex(withName: "cities", config: FullTextIndexConfiguration(["city"]))
        let named: any FullTextIndexExpressionProtocol = Expression.fullTextIndex("cities")
        let index: any IndexExpressionProtocol = named.from("s")
        let query = QueryBuilder.select(SelectResult.expression(Meta.id.from("s")))
            .from(DataSource.collection(sights).as("s"))
            .where(FullTextFunction.match(index, query: "lyon"))
            .orderBy(Ordering.expression(FullTextFunction.rank(index)).descending())
        #expect(try texts(query) == ["zoo"])
    }

    @Test func `a mistake is thrown when the query is run`() throws {
        let query = ids.where(Expression.property("a[").isValued())
        #expect(query.columnCount == 0)
        expectError(CBLError.invalidQuery) { try query.execute() }
        expectError(CBLError.invalidQuery) { try query.explain() }
    }
}
