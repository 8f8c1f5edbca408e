import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Queries made by the builder.
@Suite(.timeLimit(.minutes(1)))
struct QueryBuilderTests {
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

    private func saveAll() throws {
        let rows: [(id: String, city: String, likes: Int, tags: JSONValue)] = [
            ("louvre", "paris", 7, ["art", "old"]), ("tower", "paris", 3, ["tall"]),
            ("prado", "madrid", 6, ["art"]),
            ("ruin", "nowhere", 1, []),
        ]
        for row in rows {
            try sights.save(
                Document(
                    id: row.id,
                    ["city": .string(row.city), "likes": JSONValue(row.likes), "tags": row.tags]
                )
            )
        }
        try cities.save(Document(id: "paris", ["name": "Paris", "country": "FR"]))
        try cities.save(Document(id: "madrid", ["name": "Madrid", "country": "ES"]))
    }

    private func ids(_ rows: [QueryRow]) -> [String] { rows.compactMap { $0["id"]?.string } }

    private func json(_ query: some BuiltQuery) throws -> [String] { try query.execute().map(\.json) }

    /// The documents of `sights` that have a condition, in the order of their IDs.
    private func found(_ condition: any ExpressionProtocol) throws -> [String] {
        let query = QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.collection(sights))
            .where(condition).orderBy(Ordering.expression(Meta.id))
        return ids(try query.execute())
    }

    // MARK: Rows

    @Test func `a built query runs as the text does`() async throws {
        try saveAll()
        var query = QueryBuilder.select(SelectResult.expression(Meta.id), SelectResult.property("likes"))
            .from(DataSource.collection(sights))
            .where(Expression.property("city").equalTo(Expression.parameter("city")))
            .orderBy(Ordering.property("likes").descending())
            .limit(Expression.value(10))
        query.parameters = ["city": "paris"]
        let rows = [#"{"id":"louvre","likes":7}"#, #"{"id":"tower","likes":3}"#]
        #expect(try json(query) == rows)
        #expect(try await query.execute().map(\.json) == rows)
        var streamed: [String] = []
        for try await row in try query.rows() { streamed.append(row.json) }
        #expect(streamed == rows)
        struct Sight: Codable, Equatable {
            var id: String
            var likes: Int
        }
        let typed = try await query.execute(as: Sight.self)
        #expect(typed == [Sight(id: "louvre", likes: 7), Sight(id: "tower", likes: 3)])
        let made = try query.makeQuery()
        #expect(made.columns == ["id", "likes"])
        #expect(
            made.text
                == "SELECT META().id, likes FROM travel.sights WHERE city = $city ORDER BY likes DESC LIMIT 10"
        )
        // The SQL, SQLite's plan and the text are those of the query that is made from text.
        let written = try database.createQuery(made.text)
        #expect(try query.explain() == written.explain())
        try await sights.createIndex(ValueIndexConfiguration(["city", "likes"]), withName: "cities")
        let plan = try query.explain()
        #expect(plan.contains("USING INDEX cities"), "\(plan)")
        #expect(try json(query) == rows)
        query.parameters["other"] = 1
        expectError(.invalidQueryParameter) { try query.execute() }
    }

    @Test func `a stage is a value that can be continued in several ways`() throws {
        try saveAll()
        let all = QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.collection(sights))
        let sorted = all.orderBy(Ordering.expression(Meta.id))
        #expect(ids(try sorted.execute()) == ["louvre", "prado", "ruin", "tower"])
        #expect(
            ids(try sorted.limit(Expression.value(2), offset: Expression.value(1)).execute()) == [
                "prado", "ruin",
            ]
        )
        #expect(try all.execute().count == 4)
        #expect(ids(try all.where(Meta.id.like(Expression.value("l%"))).execute()) == ["louvre"])
    }

    @Test func `conditions find the documents that they speak of`() throws {
        try saveAll()
        let (city, likes) = (Expression.property("city"), Expression.property("likes"))
        #expect(
            try found(likes.between(Expression.value(3), and: Expression.value(6))) == ["prado", "tower"]
        )
        #expect(
            try found(city.in([Expression.value("madrid"), Expression.value("nowhere")])) == [
                "prado", "ruin",
            ]
        )
        #expect(try found(city.equalTo(Expression.value("PARIS"))) == [])
        let nocase = Collation.ascii().ignoreCase(true)
        #expect(try found(city.collate(nocase).equalTo(Expression.value("PARIS"))) == ["louvre", "tower"])
        let accents = Collation.unicode().locale(nil).ignoreAccents(true).ignoreCase(true)
        #expect(
            try found(
                city.collate(accents).equalTo(Expression.value("Pàris")).and(
                    likes.lessThan(Expression.value(5))
                )
            )
                == ["tower"]
        )
        let tag = ArrayExpression.variable("tag")
        let tags = Expression.property("tags")
        #expect(
            try found(ArrayExpression.any(tag).in(tags).satisfies(tag.equalTo(Expression.value("art"))))
                == ["louvre", "prado"]
        )
        #expect(try found(ArrayFunction.length(tags).equalTo(Expression.value(0))) == ["ruin"])
        #expect(try found(Expression.property("nothing").isNotValued().and(likes.isValued())).count == 4)
        #expect(try found(Function.upper(city).regex(Expression.value("^M"))) == ["prado"])
        try sights.delete(try #require(try sights.document(id: "ruin")))
        #expect(try found(Meta.isDeleted) == ["ruin"])
        let hard = "it's `\u{301}'\u{301} OR 1 --"
        try sights.save(Document(id: "hard", ["a`b'c": .string(hard)]))
        #expect(try found(Expression.property("a`b'c").equalTo(Expression.value(hard))) == ["hard"])
    }

    @Test func `collections are joined, grouped and named`() throws {
        try saveAll()
        let joined = QueryBuilder.select(
            SelectResult.expression(Expression.property("name").from("c")),
            SelectResult.expression(Meta.id.from("s")).as("sight")
        )
        .from(DataSource.collection(sights).as("s"))
        .join(
            Join.leftOuterJoin(DataSource.collection(cities).as("c"))
                .on(Expression.property("city").from("s").equalTo(Meta.id.from("c")))
        )
        .orderBy(Ordering.expression(Meta.id.from("s")))
        #expect(
            try json(joined) == [
                #"{"name":"Paris","sight":"louvre"}"#, #"{"name":"Madrid","sight":"prado"}"#,
                #"{"sight":"ruin"}"#,
                #"{"name":"Paris","sight":"tower"}"#,
            ]
        )
        let grouped = QueryBuilder.select(
            SelectResult.property("city"),
            SelectResult.expression(Function.sum(Expression.property("likes"))).as("sum")
        )
        .from(DataSource.collection(sights))
        .groupBy(Expression.property("city"))
        .having(Function.count().greaterThan(Expression.value(1)))
        #expect(try json(grouped) == [#"{"city":"paris","sum":10}"#])
        let distinct = QueryBuilder.selectDistinct(SelectResult.property("city"))
            .from(DataSource.collection(sights)).orderBy(Ordering.property("city"))
        #expect(try distinct.execute().compactMap { $0["city"]?.string } == ["madrid", "nowhere", "paris"])
        let whole = QueryBuilder.select(SelectResult.all()).from(DataSource.collection(cities))
            .where(Meta.id.equalTo(Expression.value("paris")))
        #expect(try whole.execute().first?["cities"] == ["name": "Paris", "country": "FR"])
        let literal = QueryBuilder.select(SelectResult.expression(Expression.value("name")))
            .from(DataSource.collection(cities)).limit(Expression.value(1))
        #expect(try json(literal) == [#"{"$1":"name"}"#])
    }

    @Test func `a full-text index finds and ranks`() throws {
        try saveAll()
        try cities.createIndex(FullTextIndexConfiguration(["name", "country"]), withName: "my words")
        let index = Expression.fullTextIndex("my words")
        let query = QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.collection(cities))
            .where(FullTextFunction.match(index, query: "paris OR es"))
            .orderBy(Ordering.expression(FullTextFunction.rank(index)).descending())
        #expect(ids(try query.execute()).sorted() == ["madrid", "paris"])
        try cities.deleteIndex(forName: "my words")
        expectError(.missingIndex) { try query.execute() }
    }

    // MARK: Other ways to run

    @Test func `a transaction runs a built query and sees its own changes`() throws {
        let count = QueryBuilder.select(SelectResult.expression(Function.count()).as("n")).from(
            DataSource.collection(sights)
        )
        try database.write { transaction in
            try transaction.save(Document(id: "new"), in: sights)
            let rows = try transaction.execute(count.makeQuery(in: transaction))
            #expect(rows.first?["n"] == 1)
            expectError(.transactionNotClosed) { try count.execute() }
        }
    }

    @Test func `a built query is live`() async throws {
        let query = QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.collection(sights))
        var changes = try query.changes().makeAsyncIterator()
        #expect(await changes.next()?.results?.count == 0)
        try sights.save(Document(id: "new"))
        #expect(await changes.next()?.results?.count == 1)
    }

    // MARK: Mistakes

    @Test func `mistakes are thrown when the query is made`() throws {
        let from = QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.collection(sights))
        let (a, v) = (Expression.property("a"), ArrayExpression.variable("v.x"))
        let c = DataSource.collection(cities).as("c")
        let mistakes: [any BuiltQuery] = [
            from.where(Expression.property("a[").isValued()),
            from.where(Expression.property("[0]").isValued()),
            from.where(a.equalTo(Expression.value(Double.infinity))),
            from.where(a.equalTo(Expression.value(Data()))),
            from.where(ArrayExpression.any(v).in(a).satisfies(a)), from.where(Function.count()),
            from.where(Expression.not(FullTextFunction.match(Expression.fullTextIndex("i"), query: "a"))),
            from.groupBy([]).having(a), from.join(Join.innerJoin(c)),
            from.join(Join.crossJoin(c)).where(a), from.orderBy(Ordering.property("b].c[")),
            from.limit(Expression.property("x[y]")), from.orderBy(Ordering.expression(Expression.value(9))),
            QueryBuilder.select(SelectResult.property("a[b")).from(DataSource.collection(sights)),
        ]
        for query in mistakes { expectError(.invalidQuery) { try query.makeQuery() } }
        let error = #expect(throws: LoveseatError.self) {
            try from.where(Expression.property("a[").isValued()).execute()
        }
        #expect(error?.message.contains("a[") == true)
        let other = try scratch.database("other").createCollection(name: "cities")
        expectError(.invalidQuery) {
            try from.join(Join.crossJoin(DataSource.collection(other))).execute()
        }
        try database.deleteCollection(name: "sights", scope: "travel")
        expectError(.invalidQuery) { try from.execute() }
    }

    @Test func `a join with a collection of a closed database says that it is closed`() throws {
        try saveAll()
        let second = try scratch.database("trips")
        let source = DataSource.collection(try #require(try second.collection(name: "cities"))).as("c")
        let from = QueryBuilder.select(SelectResult.expression(Meta.id.from("s")))
            .from(DataSource.collection(sights).as("s"))
        #expect(try from.join(Join.crossJoin(source)).execute().count == 8)
        try second.close()
        let error = #expect(throws: LoveseatError.self) {
            try from.join(Join.crossJoin(source)).execute()
        }
        #expect(error?.code == .notOpen)
        #expect(error?.message.contains("trips") == true)
    }

    @Test func `long chains are run, and deep expressions are refused`() throws {
        try saveAll()
        let likes = Expression.property("likes")
        var chain = likes.equalTo(Expression.value(-1))
        for number in 0..<2_000 { chain = chain.or(likes.equalTo(Expression.value(number + 7))) }
        #expect(try found(chain) == ["louvre"])
        var deep = likes.add(Expression.value(1))
        for _ in 0..<100_000 { deep = Function.abs(deep) }
        expectError(.invalidQuery) { try found(deep) }
        var wide = likes.add(likes)
        for _ in 0..<100 { wide = wide.add(wide) }
        expectError(.invalidQuery) { try found(wide) }
    }
}
