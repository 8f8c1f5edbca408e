import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct QueryTests {
    private let world: World
    private var database: Database { world.database }
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws {
        world = try World()
        for (id, likes) in [("louvre", 7), ("orsay", 5), ("tower", 9)] {
            try sights.save(document: MutableDocument(id: id, data: ["likes": likes, "city": "Paris"]))
        }
    }

    private func query(_ text: String) throws -> Query { try database.createQuery(text) }

    @Test func `rows are read once, by iterating or as an array`() throws {
        let query = try query("SELECT meta().id FROM travel.sights ORDER BY likes")
        #expect(query.columnCount == 1)
        let results = try query.execute()
        #expect(results.next()?.string(forKey: "id") == "orsay")
        #expect(results.allResults().map { $0.string(at: 0) } == ["louvre", "tower"])
        #expect(results.next() == nil)
        #expect(results.allResults().isEmpty)
    }

    @Test func `a result is of the moment of its run`() throws {
        let results = try query("SELECT meta().id FROM travel.sights").execute()
        try sights.purge(id: "tower")
        #expect(results.allResults().count == 3)
    }

    @Test func `a column that is MISSING has no key, and one that is null has`() throws {
        try sights.save(document: MutableDocument(id: "null", data: ["note": NSNull()]))
        let text =
            "SELECT note, other, likes + 1, meta().id FROM travel.sights WHERE meta().id IN ['null', 'tower'] ORDER BY meta().id"
        let rows = try query(text).execute().allResults()
        let (null, tower) = (rows[0], rows[1])
        #expect(null.count == 4)
        #expect(null.keys == ["note", "other", "$1", "id"])
        #expect(null.value(forKey: "note") == nil)
        #expect(null.value(at: 0) == nil)
        #expect(null.contains(key: "note"))
        #expect(!null.contains(key: "other"))
        #expect(null.toDictionary()["note"] is NSNull)
        #expect(null.toDictionary()["other"] == nil)
        #expect(null.toArray().filter { $0 is NSNull }.count == 3)
        #expect(!null["note"].exists)
        #expect(tower.int(forKey: "$1") == 10)
        #expect(tower["$1"].int == 10)
        #expect(tower.value(at: 9) == nil)
        #expect(Array(tower) == tower.keys)
    }

    @Test func `a row hands out documents, dictionaries, arrays and blobs`() throws {
        let document = MutableDocument(id: "shop")
        document.setArray(MutableArrayObject(data: [1, 2]), forKey: "tags")
        document.setDictionary(MutableDictionaryObject(data: ["n": 1]), forKey: "part")
        document.setBlob(Blob(contentType: "text/plain", data: Data("hello".utf8)), forKey: "photo")
        try database.defaultCollection().save(document: document)
        let row = try #require(try query("SELECT *, tags, part, photo FROM _").execute().next())
        #expect(row.array(forKey: "tags")?.toArray() as? [Int] == [1, 2])
        #expect(row.dictionary(at: 2)?.int(forKey: "n") == 1)
        #expect(row.dictionary(at: 2) === row.dictionary(forKey: "part"))
        #expect(row.blob(forKey: "photo")?.content == Data("hello".utf8))
        #expect(row.dictionary(forKey: "_")?.array(forKey: "tags")?.count == 2)
        let text = try query("SELECT part FROM _").execute().next()?.toJSON()
        #expect(text == #"{"part":{"n":1}}"#)
    }

    @Test func `a row's numbers cast to every type that represents them`() throws {
        let data: [String: Any] = ["int": 7, "large": Int64.max, "double": 2.0, "yes": true, "list": [1]]
        try database.defaultCollection().save(document: MutableDocument(data: data))
        let row = try #require(try query("SELECT int, large, double, yes, list FROM _").execute().next())
        let values: [Any?] = [
            row.value(at: 0), row.value(forKey: "int"), row.toArray()[0], row.toDictionary()["int"],
        ]
        for value in values {
            #expect(value as? Int == 7)
            #expect(value as? Int64 == 7)
            #expect(value as? Float == 7)
        }
        #expect(row.toArray()[1] as? Int64 == .max)
        #expect(row["double"].value as? Int == 2)
        #expect(row.value(at: 3) as? Bool == true)
        #expect((row.toDictionary()["list"] as? [Any])?.first as? Int32 == 1)
    }

    @Test func `the default collection has four names`() throws {
        try database.defaultCollection().save(document: MutableDocument(id: "a"))
        for name in ["_", "_default", "trips", "_default._default"] {
            #expect(try query("SELECT meta().id FROM \(name)").execute().allResults().count == 1)
        }
    }

    @Test func `a query that is none, or of an unknown collection, is refused`() throws {
        expectError(CBLError.invalidQuery) { try database.createQuery("SELECT") }
        expectError(CBLError.invalidQuery) { try database.createQuery("SELECT 1 FROM nowhere") }
        expectError(CBLError.invalidQuery) { try database.createQuery("SELECT 1") }
        let query = try query("SELECT 1 FROM _")
        try database.close()
        expectError(CBLError.notOpen) { try query.execute() }
        expectError(CBLError.notOpen) { try database.createQuery("SELECT 1 FROM _") }
    }

    @Test func `parameters are copied, and all have to have a value`() throws {
        let query = try query("SELECT meta().id FROM travel.sights WHERE likes > $least AND city = $city")
        expectError(CBLError.invalidQueryParam) { try query.execute() }
        let parameters = Parameters().setInt(6, forName: "least")
        query.parameters = parameters
        expectError(CBLError.invalidQueryParam) { try query.execute() }
        parameters.setString("Paris", forName: "city")
        #expect(query.parameters?.value(forName: "city") == nil)
        query.parameters = parameters
        #expect(query.parameters?.value(forName: "least") as? Int == 6)
        #expect(try query.execute().allResults().count == 2)
        query.parameters = Parameters(parameters: parameters).setValue(1, forName: "other")
        expectError(CBLError.invalidQueryParam) { try query.execute() }
    }

    @Test func `parameters have values of all types`() throws {
        let date = Date(timeIntervalSince1970: 1_000)
        let parameters = Parameters()
            .setInt64(.max, forName: "int64").setFloat(1.5, forName: "float").setDouble(
                2.5,
                forName: "double"
            )
            .setBoolean(true, forName: "boolean").setDate(date, forName: "date")
            .setArray(MutableArrayObject(data: [1]), forName: "array")
            .setDictionary(MutableDictionaryObject(data: ["n": 1]), forName: "dictionary")
        let query = try query(
            "SELECT $int64, $float, $double, $boolean, $date, $array, $dictionary FROM travel.sights LIMIT 1"
        )
        query.parameters = parameters
        let row = try #require(try query.execute().next())
        #expect(row.int64(at: 0) == .max)
        #expect(row.float(at: 1) == 1.5)
        #expect(row.double(at: 2) == 2.5)
        #expect(row.boolean(at: 3))
        #expect(row.date(at: 4) == date)
        #expect(row.array(at: 5)?.int(at: 0) == 1)
        #expect(row.dictionary(at: 6)?.int(forKey: "n") == 1)
    }

    @Test func `a query in a batch sees what the batch changed`() throws {
        let query = try query("SELECT meta().id FROM travel.sights")
        try database.inBatch {
            try sights.save(document: MutableDocument(id: "bridge"))
            #expect(try query.execute().allResults().count == 4)
            #expect(try query.explain().contains("SELECT"))
            #expect(try database.createQuery("SELECT 1 FROM travel.sights").execute().allResults().count == 4)
        }
    }

    @Test func `64 columns are possible, and OFFSET without LIMIT`() throws {
        let columns = (0..<64).map { "likes + \($0)" }.joined(separator: ", ")
        let rows = try query("SELECT \(columns) FROM travel.sights ORDER BY likes OFFSET 1").execute()
            .allResults()
        #expect(rows.map { $0.int(at: 63) } == [70, 72])
    }

    @Test func `a query can be made of another one's JSON`() throws {
        let query = try query("SELECT meta().id FROM travel.sights WHERE likes > $least ORDER BY likes")
        let copy = Query(database: database, JSONRepresentation: query.json)
        copy.parameters = Parameters().setInt(6, forName: "least")
        #expect(try copy.execute().map { $0.string(at: 0) } == ["louvre", "tower"])
        #expect(copy.json == query.json)
        let built = QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.collection(sights))
        let sameBuilt = Query(database: database, JSONRepresentation: built.json)
        #expect(try sameBuilt.execute().allResults().count == 3)
        let other = Query(database: database, JSONRepresentation: Data("[]".utf8))
        expectError(CBLError.invalidQuery) { try other.execute() }
    }

    @Test func `a query explains itself`() throws {
        let query = try query("SELECT likes FROM travel.sights WHERE likes > $least")
        #expect(try query.explain().contains("SELECT"))
        #expect("\(query)".contains("$least"))
    }
}
