import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct IndexTests {
    private let world: World
    private var database: Database { world.database }
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws {
        world = try World()
        let data: [String: Any] = ["city": "Paris", "text": "Two towers", "tags": ["old", "high"]]
        try sights.save(document: MutableDocument(id: "notre-dame", data: data))
    }

    private func explanation(_ condition: String) throws -> String {
        try database.createQuery("SELECT meta().id FROM travel.sights WHERE \(condition)").explain()
    }

    private func ids(_ rest: String) throws -> [String?] {
        try database.createQuery("SELECT meta().id FROM travel.sights \(rest)").execute()
            .map { $0.string(at: 0) }
    }

    @Test func `a value index is used by queries until it is deleted`() throws {
        let config = ValueIndexConfiguration(["city", "LOWER(name)"])
        try sights.createIndex(withName: "cities", config: config)
        try sights.createIndex(withName: "cities", config: config)
        #expect(try sights.indexes() == ["cities"])
        #expect(try explanation("city = 'Paris'").contains("INDEX cities"))
        let index = try #require(try sights.index(withName: "cities"))
        #expect(index.name == "cities")
        #expect(index.collection === sights)
        try sights.deleteIndex(forName: "cities")
        try sights.deleteIndex(forName: "cities")
        #expect(try sights.indexes().isEmpty)
        #expect(try sights.index(withName: "cities") == nil)
        #expect(try !explanation("city = 'Paris'").contains("INDEX cities"))
    }

    @Test func `a full-text index finds words, and their stems in its language`() throws {
        let config = FullTextIndexConfiguration(["text"], ignoreAccents: true, language: "en")
        #expect(config.expressions == ["text"])
        #expect(config.where == nil)
        try sights.createIndex(withName: "words", config: config)
        #expect(try ids("WHERE MATCH(words, 'tower')") == ["notre-dame"])
        #expect(try ids("WHERE MATCH(words, 'bridge')").isEmpty)
        try sights.createIndex(
            withName: "words",
            config: FullTextIndexConfiguration(["text"], ignoreAccents: nil, language: "")
        )
        #expect(try ids("WHERE MATCH(words, 'tower')").isEmpty)
        #expect(try ids("WHERE MATCH(words, 'towers')") == ["notre-dame"])
    }

    @Test func `an array index serves UNNEST over its path`() throws {
        let config = ArrayIndexConfiguration(path: "tags")
        #expect(config.path == "tags")
        #expect(config.expressions == nil)
        try sights.createIndex(withName: "tags", config: config)
        #expect(try sights.indexes() == ["tags"])
        let query = try database.createQuery(
            "SELECT tag FROM travel.sights AS sight UNNEST sight.tags AS tag WHERE tag = 'old'"
        )
        #expect(try query.execute().allResults().map { $0.string(forKey: "tag") } == ["old"])
    }

    @Test func `indexes are built from items`() throws {
        let values = IndexBuilder.valueIndex(
            items: .property("city"),
            .expression(Function.lower(Expression.property("address.old name")))
        )
        try sights.createIndex(values, name: "places")
        let words = IndexBuilder.fullTextIndex(items: [.property("text")])
            .ignoreAccents(true).language("en")
        try sights.createIndex(words, name: "words")
        #expect(try sights.indexes() == ["places", "words"])
        #expect(try explanation("city = 'Paris'").contains("INDEX places"))
        #expect(try explanation("LOWER(address.`old name`) = 'x' AND city = 'y'").contains("INDEX places"))
        #expect(try ids("WHERE MATCH(words, 'tower')") == ["notre-dame"])
    }

    @Test func `the contents of indexes are told`() throws {
        let values = ValueIndexConfiguration(["city", "likes"], where: "likes > 3")
        try sights.createIndex(withName: "a", config: values)
        try sights.createIndex(withName: "b", config: ArrayIndexConfiguration(path: "tags"))
        let words = FullTextIndexConfiguration(["text"], language: "en")
        try sights.createIndex(withName: "c", config: words)
        let indexes = try #require(try sights.indexesInfo())
        #expect(indexes.map { $0["name"] as? String } == ["a", "b", "c"])
        #expect(indexes.map { $0["expr"] as? String } == ["city,likes", "", "text"])
        #expect(indexes.map { $0["type"] as? String } == ["value", "array", "fullText"])
        #expect(indexes[0]["where"] as? String == "likes > 3")
        #expect(indexes[1]["path"] as? String == "tags")
        #expect(indexes[2]["language"] as? String == "en")
        try database.inBatch {
            let indexes = try sights.indexesInfo()
            #expect(indexes?.count == 3)
        }
    }

    @Test func `indexes are listed by name, and one that is created again is the same or replaced`() throws {
        for number in [5, 3, 1, 2, 4] {
            let config = ValueIndexConfiguration(["property\(number)"])
            try sights.createIndex(withName: "index\(number)", config: config)
            try sights.createIndex(withName: "index\(number)", config: config)
        }
        #expect(try sights.indexes() == (1...5).map { "index\($0)" })
        try sights.createIndex(withName: "index1", config: ValueIndexConfiguration(["city"]))
        #expect(try sights.indexes().count == 5)
        #expect(try explanation("city = 'Paris'").contains("INDEX index1"))
    }

    @Test func `an index that was created in a batch is rolled back with it`() throws {
        struct Failure: Error {}
        expectError(CBLError.unexpectedError) {
            try database.inBatch {
                try sights.createIndex(withName: "city", config: ValueIndexConfiguration(["city"]))
                #expect(try sights.indexes() == ["city"])
                try sights.deleteIndex(forName: "none")
                throw Failure()
            }
        }
        #expect(try sights.indexes().isEmpty)
    }

    @Test func `an index that is not allowed is refused`() throws {
        struct Foreign: IndexConfiguration {}
        expectError(CBLError.invalidQuery) {
            try sights.createIndex(withName: "a", config: ValueIndexConfiguration(["city ="]))
        }
        expectError(CBLError.invalidParameter) {
            try sights.createIndex(withName: "", config: ValueIndexConfiguration(["city"]))
        }
        expectError(CBLError.invalidParameter) {
            try sights.createIndex(withName: "a", config: Foreign())
        }
        try database.deleteCollection(name: "sights", scope: "travel")
        expectError(CBLError.notOpen) { try sights.indexes() }
        expectError(CBLError.notOpen) { try sights.index(withName: "a") }
        expectError(CBLError.notOpen) { try sights.deleteIndex(forName: "a") }
    }
}
