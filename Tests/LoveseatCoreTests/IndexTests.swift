import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

import class GRDB.DatabaseQueue

/// Indexes of collections.
@Suite(.timeLimit(.minutes(2)))
struct IndexTests {
    private let scratch: Scratch
    private let database: Database
    private let sights: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        sights = try database.createCollection(name: "sights")
        for number in 0..<200 {
            try sights.save(Self.document(number))
        }
    }

    private static func document(_ number: Int) -> Document {
        Document(
            id: "s\(number)",
            [
                "city": .string("city \(number % 10)"), "likes": JSONValue(number),
                "text": .string(number % 20 == 0 ? "a brown fox runs" : "nothing"),
                "tags": .array([.string("t\(number % 7)"), .string("all")]),
            ]
        )
    }

    private static let byCity = "SELECT meta().id FROM sights WHERE city = 'city 3'"
    private static let byWord = "SELECT meta().id FROM sights WHERE MATCH(words, 'fox')"
    private static let byTag = "SELECT meta(s).id FROM sights AS s UNNEST s.tags AS t WHERE t = 't1'"

    private func createAll() throws {
        try sights.createIndex(ValueIndexConfiguration(["city", "likes"]), withName: "cities")
        try sights.createIndex(FullTextIndexConfiguration(["text"]), withName: "words")
        try sights.createIndex(ArrayIndexConfiguration(path: "tags"), withName: "tags")
    }

    private func ids(_ text: String, in database: Database? = nil) throws -> [String] {
        try (database ?? self.database).createQuery(text).execute().compactMap { $0["id"]?.string }.sorted()
    }

    private func expected(_ numbers: some Sequence<Int>) -> [String] { numbers.map { "s\($0)" }.sorted() }

    private func expectAll(in database: Database? = nil) throws {
        #expect(try ids(Self.byCity, in: database) == expected((0..<200).filter { $0 % 10 == 3 }))
        #expect(try ids(Self.byWord, in: database) == expected((0..<200).filter { $0 % 20 == 0 }))
        #expect(try ids(Self.byTag, in: database) == expected((0..<200).filter { $0 % 7 == 1 }))
        let plan = try (database ?? self.database).createQuery(Self.byCity).explain()
        #expect(plan.contains("USING INDEX cities"), "\(plan)")
        let tags = try (database ?? self.database).createQuery(Self.byTag).explain()
        #expect(tags.contains("INDEX tags"), "\(tags)")
    }

    @Test func `indexes are used, listed, and kept over reopening, copying and maintenance`() async throws {
        try createAll()
        #expect(try sights.indexes() == ["cities", "tags", "words"])
        try expectAll()
        for type in MaintenanceType.allCases { try database.performMaintenance(type: type) }
        try expectAll()
        try await database.close()
        let again = try scratch.database("trips")
        try expectAll(in: again)
        let collection = try #require(try again.collection(name: "sights"))
        #expect(
            try collection.index(withName: "cities") as? ValueIndexConfiguration
                == ValueIndexConfiguration(["city", "likes"])
        )
        #expect(
            try collection.index(withName: "tags") as? ArrayIndexConfiguration
                == ArrayIndexConfiguration(path: "tags")
        )
        #expect(
            try collection.index(withName: "words") as? FullTextIndexConfiguration
                == FullTextIndexConfiguration(["text"])
        )
        #expect(try collection.index(withName: "none") == nil)
        try Database.copy(fromPath: try #require(again.path), toDatabase: "copy", withConfig: scratch.config)
        try expectAll(in: try scratch.database("copy"))
    }

    @Test func `indexes follow saves, deletions, purges and what a peer sends`() async throws {
        try createAll()
        try sights.delete(id: "s3")
        try sights.purge(id: "s13")
        try sights.update(id: "s23") { $0["city"] = "elsewhere" }
        try sights.save(Self.document(203))
        #expect(try ids(Self.byCity) == expected((24..<204).filter { $0 % 10 == 3 }))
        try sights.update(id: "s20") { $0["text"] = "a cat" }
        try sights.delete(id: "s40")
        #expect(try ids(Self.byWord) == expected([0, 60, 80, 100, 120, 140, 160, 180]))
        try sights.update(id: "s1") { $0["tags"] = ["other"] }
        try sights.purge(id: "s8")
        #expect(try ids(Self.byTag) == expected((9..<200).filter { $0 % 7 == 1 }))
        try sights.save(Self.document(3))
        #expect(try ids(Self.byCity).contains("s3"))

        let peer = try scratch.database("peer")
        let remote = try peer.createCollection(name: "sights")
        try remote.save(Document(id: "sent", ["city": "city 3", "text": "the fox", "tags": ["t1"]]))
        let configuration = ReplicatorConfiguration(
            collections: [sights],
            target: DatabaseEndpoint(database: peer)
        )
        let replicator = Replicator(configuration)
        let statuses = replicator.statuses
        replicator.start()
        for await _ in statuses {}
        for text in [Self.byCity, Self.byWord, Self.byTag] { #expect(try ids(text).contains("sent")) }
        try remote.delete(id: "sent")
        let second = Replicator(configuration)
        let more = second.statuses
        second.start()
        for await _ in more {}
        for text in [Self.byCity, Self.byWord, Self.byTag] { #expect(try !ids(text).contains("sent")) }
        try database.performMaintenance(type: .integrityCheck)
    }

    @Test func `the same definition again does nothing, and another one replaces`() throws {
        try sights.createIndex(ValueIndexConfiguration(["city"]), withName: "i")
        try sights.createIndex(ValueIndexConfiguration(["city"]), withName: "i")
        #expect(try database.createQuery(Self.byCity).explain().contains("USING INDEX i"))
        try sights.createIndex(ValueIndexConfiguration(["likes"], where: "likes > 5"), withName: "i")
        #expect(try sights.indexes() == ["i"])
        #expect(try !database.createQuery(Self.byCity).explain().contains("USING INDEX i"))
        let partial = try database.createQuery("SELECT meta().id FROM sights WHERE likes > 5 AND likes = 7")
        let plan = try partial.explain()
        #expect(plan.contains("INDEX i"), "\(plan)")
        try sights.createIndex(FullTextIndexConfiguration(["text"]), withName: "i")
        #expect(try ids("SELECT meta().id FROM sights WHERE MATCH(i, 'fox')").count == 10)
        try sights.deleteIndex(forName: "i")
        try sights.deleteIndex(forName: "i")
        #expect(try sights.indexes().isEmpty)
    }

    @Test func `a join on an ID uses the index of the property that refers to it, from either side`() throws {
        let visits = try database.createCollection(name: "visits")
        try visits.createIndex(ValueIndexConfiguration(["sight"]), withName: "visited")
        try database.createCollection(name: "numbers").save(Document(id: "7", [:]))
        try visits.save([
            Document(id: "v1", ["sight": "s1"]), Document(id: "v2", ["sight": "s1"]),
            Document(id: "v3", ["sight": 7]), Document(id: "v4", ["sight": .null]), Document(id: "v5", [:]),
        ])
        for condition in ["v.sight = meta(s).id", "meta(s).id = v.sight"] {
            let all = try database.createQuery(
                """
                SELECT meta(s).id, COUNT(meta(v).id) AS n FROM sights AS s LEFT JOIN visits AS v ON \(condition)
                GROUP BY meta(s).id HAVING COUNT(meta(v).id) > 0
                """
            )
            let plan = try all.explain()
            #expect(plan.contains("SEARCH v USING INDEX visited"), "\(plan)")
            #expect(try all.execute().map(\.json) == [#"{"id":"s1","n":2}"#])
            let back = try database.createQuery(
                "SELECT meta(v).id FROM visits AS v LEFT JOIN sights AS s ON \(condition) WHERE s.likes = 1"
            )
            #expect(try back.explain().contains("by doc_id (doc_id=?)"))
            #expect(try back.execute().map { $0["id"]?.string } == ["v1", "v2"])
            // A number is not the text of an ID.
            #expect(try ids("SELECT meta(v).id FROM numbers AS s JOIN visits AS v ON \(condition)").isEmpty)
        }
    }

    @Test func `items of arrays inside arrays are indexed, however deep they are`() throws {
        let paths = ["a", "a[].b", "a[].b[].c", "a[].b[].c[].d"]
        for number in 0..<30 {
            func items(_ count: Int, _ item: (Int) -> String) -> String {
                "[" + (0..<count).map(item).joined(separator: ",") + "]"
            }
            let text = items(number % 3 + 1) { a in
                let b = items(number % 4) { b in
                    let c = items(2) { c in "{\"d\":\(items(b + 1) { "\"v\((number + a + c + $0) % 9)\"" })}"
                    }
                    return "{\"c\":\(c)}"
                }
                return "{\"b\":\(b)}"
            }
            try sights.save(Document(id: "deep\(number)", json: "{\"a\":\(text)}"))
        }
        let query = try database.createQuery(
            """
            SELECT meta(s).id, v FROM sights AS s UNNEST s.a AS a UNNEST a.b AS b UNNEST b.c AS c UNNEST c.d AS v
            WHERE v = 'v3' ORDER BY meta(s).id
            """
        )
        let before = try query.execute().map(\.json)
        #expect(before.count > 20)
        for (number, path) in paths.enumerated() {
            try sights.createIndex(ArrayIndexConfiguration(path: path), withName: "level\(number)")
        }
        #expect(try query.execute().map(\.json) == before)
        let plan = try query.explain()
        #expect(
            plan.contains("USING COVERING INDEX level3") || plan.contains("USING INDEX level3"),
            "\(plan)"
        )
        try sights.save(Document(id: "deep1", json: #"{"a":[{"b":[{"c":[{"d":["v3"]}]}]}]}"#))
        try sights.delete(try #require(try sights.document(id: "deep2")))
        let after = try query.execute().map(\.json)
        for number in paths.indices { try sights.deleteIndex(forName: "level\(number)") }
        #expect(try query.execute().map(\.json) == after)
        #expect(after != before)
        let tooDeep = (0..<33).map { "p\($0)" }.joined(separator: "[].")
        for path in [tooDeep, "matrix[]", "matrix[][]", "a[]b", "a].b", "[].a", "a[].", "a..b", "order"] {
            expectError(.invalidQuery) {
                try sights.createIndex(ArrayIndexConfiguration(path: path), withName: "x")
            }
        }
    }

    @Test func `a query for the items of an indexed array does not look at their rows`() throws {
        try createAll()
        let plan = try database.createQuery(Self.byTag).explain()
        #expect(plan.contains("USING COVERING INDEX tags"), "\(plan)")
        // Booleans and null come as they are.
        try sights.save(Document(id: "odd", json: #"{"tags":[true,null,1,{"a":2},[3]]}"#))
        let odd = try database.createQuery(
            "SELECT t FROM sights AS s UNNEST s.tags AS t WHERE t > 0 AND meta(s).id = 'odd' OR t IS NULL ORDER BY t"
        )
        let rows = try odd.execute().map(\.json)
        try sights.deleteIndex(forName: "tags")
        #expect(try odd.execute().map(\.json) == rows)
        #expect(rows.contains(#"{"t":true}"#), "\(rows)")
        #expect(rows.contains(#"{"t":null}"#), "\(rows)")
    }

    @Test(arguments: [0, 1, 2]) func `creating an index says how far it is`(_ kind: Int) async throws {
        try await database.write { transaction in
            for number in 200..<8_000 { try transaction.save(Self.document(number), in: sights) }
        }
        let configurations: [any IndexConfiguration] = [
            ValueIndexConfiguration(["city", "likes"]), FullTextIndexConfiguration(["text"]),
            ArrayIndexConfiguration(path: "tags"),
        ]
        let shares = Mutex<[Double]>([])
        try await sights.createIndex(configurations[kind], withName: "i") { share in
            shares.withLock { $0.append(share) }
        }
        let seen = shares.withLock { $0 }
        #expect(seen.count > 2, "\(seen)")
        #expect(seen == seen.sorted(), "\(seen)")
        #expect(seen.first.map { $0 < 0.5 } == true, "\(seen)")
        #expect(seen.last == 1, "\(seen)")
    }

    @Test(arguments: ["STR_TO_MILLIS(d)", "STR_TO_UTC(d)", "STR_TO_TZ(d, 60)", "LOWER(MILLIS_TO_STR(m))"])
    func `an index cannot depend on the time zone of the machine`(_ expression: String) throws {
        expectError(.invalidQuery) {
            try sights.createIndex(ValueIndexConfiguration([expression]), withName: "when")
        }
        expectError(.invalidQuery) {
            try sights.createIndex(ValueIndexConfiguration(["d"], where: expression), withName: "when")
        }
        #expect(try sights.indexes().isEmpty)
    }

    @Test func `a damaged text index is found by a check, and rebuilt`() throws {
        try createAll()
        try database.performMaintenance(type: .integrityCheck)
        let file = try DatabaseQueue(path: "\(try #require(database.path))/db.sqlite")
        try file.write { db in
            let table = try #require(
                try String.fetchOne(db, sql: "SELECT name FROM sqlite_schema WHERE name LIKE '%items_data'")
            )
            try db.execute(sql: "DELETE FROM \"\(table)\" WHERE id > 10")
            #expect(db.changesCount > 0)
        }
        try file.close()
        expectError(.corruptData) { try database.performMaintenance(type: .integrityCheck) }
        try database.performMaintenance(type: .reindex)
        try database.performMaintenance(type: .integrityCheck)
        try expectAll()
    }

    @Test func `names of indexes belong to their collections, and may be odd`() throws {
        let other = try database.createCollection(name: "other")
        let names = ["a", "A", "by doc_id", "deleted", "it's", "ü 🦀", "a/b", "sqlite_x", "x;--"]
        for name in names {
            try sights.createIndex(ValueIndexConfiguration(["city"]), withName: name)
            try other.createIndex(ValueIndexConfiguration(["likes"]), withName: name)
        }
        #expect(Swift.Set(try sights.indexes()) == Swift.Set(names))
        #expect(
            try sights.index(withName: "a") as? ValueIndexConfiguration == ValueIndexConfiguration(["city"])
        )
        for name in ["", "a\"b"] {
            expectError(.invalidParameter) {
                try sights.createIndex(ValueIndexConfiguration(["city"]), withName: name)
            }
        }
        expectError(.invalidParameter) { try sights.createIndex(ValueIndexConfiguration([]), withName: "e") }
        expectError(.invalidParameter) {
            try sights.createIndex(ArrayIndexConfiguration(path: ""), withName: "e")
        }
        expectError(.invalidQuery) {
            try sights.createIndex(ValueIndexConfiguration(["a = = 1"]), withName: "e")
        }
        expectError(.invalidQuery) {
            try sights.createIndex(FullTextIndexConfiguration(["LOWER(text)"]), withName: "e")
        }
        #expect(try !sights.indexes().contains("e"))
        try database.deleteCollection(name: "other")
        #expect(try sights.indexes().count == names.count)
        let again = try database.createCollection(name: "other")
        #expect(try again.indexes().isEmpty)
    }

    @Test func `an index whose creation is cancelled or fails leaves nothing`() async throws {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await sights.createIndex(ValueIndexConfiguration(["city"]), withName: "i")
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try sights.indexes().isEmpty)
        try await sights.createIndex(ValueIndexConfiguration(["city"]), withName: "i")
        #expect(try sights.indexes() == ["i"])
    }
}
