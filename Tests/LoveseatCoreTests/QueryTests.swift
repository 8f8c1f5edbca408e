import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Running queries.
@Suite(.timeLimit(.minutes(2)))
struct QueryTests {
    private let scratch: Scratch
    private let database: Database
    private let sights: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        sights = try database.createCollection(name: "sights", scope: "travel")
    }

    private struct Sight: Codable, Identifiable, Equatable {
        var id: String
        var city: String
        var likes: Int
    }

    private static let three = [
        Sight(id: "louvre", city: "Paris", likes: 7), Sight(id: "prado", city: "Madrid", likes: 6),
        Sight(id: "tower", city: "Paris", likes: 3),
    ]

    private func query(_ text: String, _ parameters: QueryParameters = [:]) throws -> Query {
        var query = try database.createQuery(text)
        query.parameters = parameters
        return query
    }

    private func rows(_ text: String, _ parameters: QueryParameters = [:]) throws -> [String] {
        try query(text, parameters).execute().map(\.json)
    }

    @Test func `a parameter that is no number of rows is a mistake in the query`() throws {
        try sights.save(Self.three)
        let text = "SELECT city FROM travel.sights LIMIT $n"
        #expect(try rows(text, ["n": 2]).count == 2)
        for value in [5.5, "2", nil] as [JSONValue] {
            let error = #expect(throws: LoveseatError.self) { try rows(text, ["n": value]) }
            #expect(error?.code == .invalidQuery, "\(value)")
            #expect(error?.message.contains("LIMIT and OFFSET take whole numbers") == true)
        }
    }

    @Test func `rows have their columns in order, as values and as types`() async throws {
        try sights.save(Self.three)
        try sights.save(
            Document(id: "odd", ["city": nil, "list": [1, ["a": true]], "big": .number(.unsigned(.max))])
        )
        let query = try query(
            "SELECT meta().id, city, likes, list, big, nothing FROM travel.sights ORDER BY meta().id"
        )
        #expect(query.columns == ["id", "city", "likes", "list", "big", "nothing"])
        let rows = try await query.execute()
        #expect(rows.map { $0["id"]?.string } == ["louvre", "odd", "prado", "tower"])
        #expect(rows[0].json == #"{"id":"louvre","city":"Paris","likes":7}"#)
        #expect(rows[1]["city"] == .null)
        #expect(rows[1]["likes"] == nil)
        #expect(rows[1]["list"] == [1, ["a": true]])
        #expect(rows[1]["big"] == .number(.unsigned(.max)))
        #expect(rows[1][0] == "odd")
        #expect(rows[1][9] == nil)
        #expect(rows[1]["no such column"] == nil)
        let likes: Int? = rows[0]["likes"]
        #expect(likes == 7)
        #expect(rows[0].properties == ["id": "louvre", "city": "Paris", "likes": 7])
        #expect(try rows[3].decode(Sight.self) == Self.three[2])
        expectError(.invalidQuery) {
            try self.query("SELECT city FROM travel.sights").execute(as: Sight.self)
        }
        expectError(.decodingError) {
            try self.query("SELECT city AS id, city, city AS likes FROM travel.sights").execute(
                as: Sight.self
            )
        }
    }

    @Test func `whole documents are decoded with their IDs`() async throws {
        try sights.save(Self.three)
        let query = try query("SELECT meta().id, * FROM travel.sights WHERE likes > 5 ORDER BY likes")
        #expect(query.columns == ["id", "sights"])
        let found = try await query.execute(as: Sight.self, dataKey: "sights")
        #expect(found == [Self.three[1], Self.three[0]])
        struct Page: Codable, Identifiable, Equatable {
            var id: UUID
            var n: Int
        }
        let pages = try database.createCollection(name: "pages")
        let page = Page(id: UUID(), n: 1)
        try pages.save(page)
        #expect(
            try await database.createQuery("SELECT meta().id, n FROM pages").execute(as: Page.self) == [page]
        )
    }

    @Test func `a row that lacks a property says where the property is, or how to get it`() throws {
        try sights.save(Self.three)
        try sights.save(Document(id: "bare", ["city": "Oslo"]))
        func problem(_ text: String, _ key: String? = nil) throws -> LoveseatError? {
            let query = try query(text)
            return #expect(throws: LoveseatError.self) { try query.execute(as: Sight.self, dataKey: key) }
        }
        for (text, key, code, part) in [
            ("SELECT meta().id, * FROM travel.sights", nil, .invalidQuery, #"pass "sights""#),
            ("SELECT * FROM travel.sights", "sights", .invalidQuery, "select meta().id"),
            (
                "SELECT meta().id, * FROM travel.sights AS s", "sights", .invalidQuery,
                #"no column "sights": use the name of one of "id", "s""#
            ),
            ("SELECT meta().id, city FROM travel.sights", nil, .invalidQuery, "select it"),
            (
                "SELECT meta().id, city, likes FROM travel.sights", nil, .decodingError,
                #"no value in column "likes""#
            ),
            (
                "SELECT meta().id, * FROM travel.sights", "sights", .decodingError,
                #"a document has no property "likes""#
            ),
        ] as [(String, String?, LoveseatError.Code, String)] {
            let error = try problem(text, key)
            #expect(error?.code == code, "\(text)")
            #expect(error?.message.contains(part) == true, "\(error?.message ?? "")")
        }
    }

    @Test func `what is too deep for SQLite is refused when the query is created, and not when it runs`()
        throws
    {
        for count in 1...12 {
            let inner = String(repeating: "EXISTS (SELECT 1 FROM travel.sights AS s WHERE ", count: count)
            let text = "SELECT \(inner)true\(String(repeating: ")", count: count)) AS x FROM travel.sights"
            do { _ = try database.createQuery(text).execute() } catch {
                #expect(error.code == .invalidQuery, "\(error)")
                expectError(.invalidQuery) { try query(text) }
            }
        }
    }

    @Test func `parameters are values of any kind, and MISSING without one`() throws {
        try sights.save(Self.three)
        let text = "SELECT meta().id FROM travel.sights WHERE city = $city AND likes >= $likes"
        var query = try query(text, ["city": "Paris", "likes": 7])
        #expect(try query.execute().map { $0["id"] } == ["louvre"])
        let least = 3
        query.parameters["likes"] = least
        #expect(try query.execute().count == 2)
        query.parameters["likes"] = nil
        #expect(try query.execute().isEmpty)
        query.parameters["likes"] = .null
        #expect(try query.execute().isEmpty)
        query.parameters["other"] = 1
        expectError(.invalidQueryParameter) { try query.execute() }
        let kinds = try self.query(
            "SELECT $a AS a, $b AS b, $c AS c, $d AS d, $e AS e FROM travel.sights LIMIT 1"
        )
        var all = kinds
        all.parameters = ["a": [1, "x"], "b": ["k": nil], "c": true, "d": 1.5, "e": "it's \"\u{10FFFF}"]
        let row = try #require(try all.execute().first)
        #expect(row["a"] == [1, "x"])
        #expect(row["b"] == ["k": nil])
        #expect(row["c"] == true)
        #expect(row["d"] == 1.5)
        #expect(row["e"] == "it's \"\u{10FFFF}")
        all.parameters["a"] = Date(timeIntervalSince1970: 0)
        #expect(try all.execute().first?["a"] == "1970-01-01T00:00:00.000Z")
    }

    @Test func `mistakes are found when the query is created, with their place`() throws {
        for text in [
            "", "SELECT", "SELECT a FROM", "SELECT a FROM _ WHERE", "DELETE FROM _", "SELECT a FROM nothing",
        ] {
            expectError(.invalidQuery) { try database.createQuery(text) }
        }
        let error = #expect(throws: LoveseatError.self) {
            try database.createQuery("SELECT a FROM _ WHERE a = = 1")
        }
        #expect(error?.message.contains("character") == true, "\(error?.message ?? "")")
        expectError(.missingIndex) { try database.createQuery("SELECT a FROM _ WHERE MATCH(no, 'x')") }
    }

    @Test func `a query sees one snapshot, and the changes of its own transaction`() throws {
        try sights.save(Self.three)
        let count = try query("SELECT COUNT(*) AS n FROM travel.sights")
        try database.write { transaction in
            try transaction.save(Sight(id: "new", city: "Rome", likes: 1), in: sights)
            try transaction.delete(id: "tower", in: sights)
            try transaction.save(Sight(id: "newer", city: "Rome", likes: 1), in: sights)
            #expect(try transaction.execute(count).first?["n"] == 4)
            let own = try transaction.createQuery("SELECT meta().id FROM travel.sights WHERE city = 'Rome'")
            #expect(try transaction.execute(own).count == 2)
            var seen = 0
            try transaction.forEachRow(of: own) { _ in
                // The same query runs while it runs.
                let again = try transaction.execute(own)
                #expect(again.count == 2)
                seen += 1
                return true
            }
            #expect(seen == 2)
            expectError(.transactionNotClosed) { try count.execute() }
            expectError(.transactionNotClosed) { try database.createQuery("SELECT a FROM _") }
        }
        try database.read { transaction in
            let before = try transaction.execute(count)
            let saved = DispatchSemaphore(value: 0)
            let collection = sights
            Thread.detachNewThread {
                _ = try? collection.save(Document(id: "later"))
                saved.signal()
            }
            saved.wait()
            #expect(try transaction.execute(count).map(\.json) == before.map(\.json))
        }
        #expect(try count.execute().first?["n"] == 5)
    }

    @Test func `a query outlives changes of collections and indexes`() throws {
        try sights.save(Self.three)
        let query = try query("SELECT meta().id FROM travel.sights WHERE city = 'Paris' ORDER BY meta().id")
        #expect(try query.execute().count == 2)
        try sights.createIndex(ValueIndexConfiguration(["city"]), withName: "city")
        #expect(try query.execute().count == 2)
        #expect(try query.explain().contains("USING INDEX city"))
        try sights.deleteIndex(forName: "city")
        #expect(try query.execute().count == 2)
        try database.deleteCollection(name: "sights", scope: "travel")
        expectError(.invalidQuery) { try query.execute() }
        let again = try database.createCollection(name: "sights", scope: "travel")
        try again.save(Self.three[0])
        #expect(try query.execute().count == 1)
    }

    // MARK: Interruptions

    /// A query that would run for hours.
    private func endless() throws -> Query {
        try sights.save((0..<2_000).map { Sight(id: "\($0)", city: "c", likes: $0) })
        return try query(
            "SELECT COUNT(*) FROM travel.sights AS a CROSS JOIN travel.sights AS b CROSS JOIN travel.sights AS c WHERE a.likes + b.likes + c.likes < 0"
        )
    }

    @Test func `cancelling the task interrupts the query`() async throws {
        let query = try endless()
        let task = Task { try await query.execute() }
        try await Task.sleep(for: .milliseconds(100))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let stream = Task { for try await _ in query.rows() {} }
        try await Task.sleep(for: .milliseconds(100))
        stream.cancel()
        await #expect(throws: CancellationError.self) { try await stream.value }
        // Readers are free again.
        for _ in 0..<8 { #expect(try await self.query("SELECT 1 FROM _").execute().isEmpty) }
    }

    @Test func `a query that takes too long is interrupted`() async throws {
        var query = try endless()
        query.deadline = .milliseconds(200)
        let asynchronous = await #expect(throws: LoveseatError.self) { try await query.execute() }
        #expect(asynchronous?.code == .timeout)
        expectErrorOf(.timeout, query)
        query = try self.query("SELECT COUNT(*) AS n FROM travel.sights")
        query.deadline = .seconds(60)
        #expect(try await query.execute().first?["n"] == 2_000)
    }

    private func expectErrorOf(_ code: LoveseatError.Code, _ query: Query) {
        expectError(code) { try query.execute() }
    }

    @Test func `a refusal of a function is an error of the run`() throws {
        try sights.save(Sight(id: "a", city: "x", likes: 1))
        let query = try query("SELECT POWER(city, 2) FROM travel.sights")
        let error = #expect(throws: LoveseatError.self) { try query.execute() }
        #expect(error?.code.domain == .sqlite)
        #expect(try rows("SELECT likes FROM travel.sights") == [#"{"likes":1}"#])
    }
}
