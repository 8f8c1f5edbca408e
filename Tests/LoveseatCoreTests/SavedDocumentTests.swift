import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// What `save` accepts, everybody accepts: `check`, `import` and every peer.
struct SavedDocumentTests {
    private let scratch: Scratch
    private let database: Database
    private let collection: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        collection = try database.defaultCollection()
    }

    @Test(arguments: [
        JSONNumber.double(.nan), .double(.infinity), .text("hello"), .text(""), .text("01"), .text("1e400"),
        .text("1,\"x\":2"), .text("\"x\""),
    ])
    func `a number that JSON or a double cannot hold is refused`(_ number: JSONNumber) throws {
        expectError(.encodingError) { try collection.save(Document(id: "d", ["n": [.number(number)]])) }
        #expect(collection.count == 0)
    }

    @Test func `a number in text that overflows a double is refused, and a literal that does is null`() throws
    {
        expectError(.encodingError) { try collection.save(Document(id: "d", json: "{\"n\":1e400}")) }
        for digits in [309, 310, 400] {
            let number = String(repeating: "9", count: digits)
            expectError(.encodingError) { try collection.save(Document(id: "d", json: "{\"n\":-\(number)}")) }
        }
        try collection.save(Document(id: "long", json: "{\"n\":1\(String(repeating: "0", count: 308))}"))
        let infinite: JSONValue = .init(floatLiteral: .infinity)
        #expect(infinite == .null)
        try collection.save(Document(id: "d", ["n": .number(.text("-0")), "m": .number(.text("1e2"))]))
        #expect(try collection.document(id: "d")?.json.description == "{\"m\":100.0,\"n\":-0.0}")
    }

    @Test func `long numbers are kept as they are`() throws {
        let text = "{\"n\":123456789012345678901234567890}"
        try collection.save(Document(id: "d", json: text))
        #expect(try collection.document(id: "d")?.json.description == text)
        try database.performMaintenance(type: .integrityCheck)
    }

    private func nested(_ levels: Int) -> JSONValue {
        var value: JSONValue = 1
        for _ in 0..<levels { value = [value] }
        return value
    }

    @Test func `nesting is allowed as deep as it can be read again, and no deeper`() throws {
        try collection.save(Document(id: "deep", ["a": nested(127)]))
        try database.performMaintenance(type: .integrityCheck)
        let text = try #require(try collection.document(id: "deep")).json.description
        _ = try Document(id: "again", json: text)
        for levels in [128, 20_000] {
            expectError(.encodingError) { try collection.save(Document(id: "deeper", ["a": nested(levels)])) }
        }
        #expect(collection.count == 1)
    }

    private struct Nest: Encodable, Identifiable {
        var id = "nest"
        let levels: Int

        private struct Inner: Encodable {
            let levels: Int
            func encode(to encoder: any Encoder) throws {
                var container = encoder.unkeyedContainer()
                if levels > 0 { try container.encode(Inner(levels: levels - 1)) }
            }
        }

        func encode(to encoder: any Encoder) throws {
            try ["inner": Inner(levels: levels)].encode(to: encoder)
        }
    }

    @Test func `a Codable value that nests too deeply is refused`() throws {
        try collection.save(Nest(levels: 100))
        expectError(.encodingError) { try collection.save(Nest(levels: 20_000)) }
    }

    @Test func `text that repeats a key is refused, and two Unicode forms of a key are two keys`() throws {
        expectJSONError(JSONError(.duplicateKey, at: 18)) {
            try Document(id: "d", json: "{\"a\":1,\"b\":{\"c\":1,\"\\u0063\":2}}")
        }
        let text = "{\"e\u{301}\":1,\"\u{e9}\":2}"
        try collection.save(Document(id: "d", json: text))
        #expect(Array(try #require(try collection.document(id: "d")).json.bytes) == Array(text.utf8))
    }

    @Test func `bytes that are not UTF-8 are refused`() throws {
        expectJSONError(JSONError(.invalidUTF8, at: 6)) {
            try Document(id: "d", json: Array("{\"a\":\"".utf8) + [0xFF, 0x22, 0x7D])
        }
    }

    @Test func `a document larger than the limit is refused`() throws {
        var config = scratch.config
        config.maximumDocumentBytes = 100
        let small = try Database(name: "small", config: config)
        let collection = try small.defaultCollection()
        try collection.save(Document(id: "fits", ["t": .string(String(repeating: "x", count: 92))]))
        expectError(.invalidParameter) {
            try collection.save(Document(id: "larger", ["t": .string(String(repeating: "x", count: 93))]))
        }
        #expect(collection.count == 1)
        config.maximumDocumentBytes = 24 << 20
        expectError(.invalidParameter) { try Database(name: "other", config: config) }
    }

    @Test(arguments: ["_id", "_rev", "_exp", "_mine"])
    func `a top-level name that replication takes away is refused`(_ name: String) throws {
        expectError(.invalidParameter) { try collection.save(Document(id: "d", [name: 1])) }
        try collection.save(Document(id: "d", ["inner": [.object([name: 1])]]))
    }

    @Test func `a table of attachments may be saved`() throws {
        try collection.save(Document(id: "d", ["_attachments": [:]]))
    }

    @Test func `a blob that is not in the database is refused`() throws {
        let other = try scratch.database("other")
        let blob = try other.saveBlob(Array("hello".utf8))
        expectError(.unexpectedError) { try collection.save(Document(id: "d", ["list": [blob.json]])) }
        _ = try database.saveBlob(Array("hello".utf8))
        try collection.save(Document(id: "d", ["list": [blob.json]]))
        try database.performMaintenance(type: .integrityCheck)
    }

    @Test func `a document of another collection or Database is refused`() throws {
        var document = Document(id: "d", ["n": 1])
        try collection.save(&document)
        let sights = try database.createCollection(name: "sights")
        let again = try scratch.database("trips").defaultCollection()
        for other in [sights, again] {
            expectError(.invalidParameter) { try other.save(&document) }
            expectError(.invalidParameter) { try other.delete(document) }
            expectError(.invalidParameter) { try other.purge(document) }
            let read = try #require(try collection.document(id: "d"))
            expectError(.invalidParameter) { try other.save(read) }
        }
        try database.defaultCollection().save(&document)
        try sights.save(Document(id: document.id, document.properties))
    }

    @Test func `the default collection cannot be deleted`() throws {
        try collection.save(Document(id: "d"))
        expectError(.invalidParameter) { try database.deleteCollection(name: "_default") }
        #expect(collection.count == 1)
    }

    @Test func `a collection that was deleted and made anew goes on counting`() throws {
        let short = try database.createCollection(name: "short")
        for number in 0..<5 { try short.save(Document(id: "\(number)")) }
        try database.deleteCollection(name: "short")
        var document = Document(id: "a")
        try database.createCollection(name: "short").save(&document)
        #expect(document.sequence == 6)
        try database.deleteCollection(name: "short")
        try database.close()
        let reopened = try scratch.database("trips")
        document = Document(id: "b")
        try reopened.createCollection(name: "short").save(&document)
        #expect(document.sequence == 7)
    }

    /// What it wrote about the new one would be kept under the number of the old one, where nobody looks.
    @Test func `a connection that holds a deleted collection does not go on with one made anew`() throws {
        let first = try database.createCollection(name: "tasks")
        try first.save(Document(id: "old"))
        let replicas = DatabaseReplicas(
            store: try database.store,
            collections: [first.handle],
            checkpointIDs: ["cp"],
            remote: 1,
            nowMilliseconds: { 0 }
        )
        let replica = replicas.replica(of: 0)
        try database.deleteCollection(name: "tasks")
        try database.createCollection(name: "tasks").save(Document(id: "new"))
        let error = #expect(throws: LoveseatError.self) {
            try replica.changes(ChangeQuery(since: 0, limit: 10))
        }
        #expect(error?.code == .notOpen)
        #expect(error?.message.contains("deleted") == true)
    }

    @Test func `the first documents of a collection that was made anew are replicated`() async throws {
        let other = try scratch.database("other")
        func sync() async throws {
            let target = DatabaseEndpoint(database: other)
            let collections = [try database.createCollection(name: "short")]
            try other.createCollection(name: "short")
            let replicator = Replicator(ReplicatorConfiguration(collections: collections, target: target))
            replicator.start()
            let status = await replicator.waitUntilStopped()
            #expect(status.error == nil)
        }
        let short = try database.createCollection(name: "short")
        for number in 0..<5 { try short.save(Document(id: "old\(number)")) }
        try await sync()
        for database in [database, other] { try database.deleteCollection(name: "short") }
        try database.createCollection(name: "short").save(Document(id: "mine"))
        try other.createCollection(name: "short").save(Document(id: "theirs"))
        try await sync()
        for database in [database, other] {
            let collection = try #require(try database.collection(name: "short"))
            #expect(try Set(collection.contents().keys) == ["mine", "theirs"])
        }
    }
}
