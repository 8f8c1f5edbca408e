import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct CollectionTests {
    private let world: World
    private var database: Database { world.database }

    init() throws { world = try World() }

    @Test func `the default scope and collection exist always`() throws {
        let collection = try database.defaultCollection()
        #expect(collection.name == "_default")
        #expect(collection.fullName == "_default._default")
        #expect(collection.scope.name == "_default")
        #expect(collection.database === database)
        #expect(collection.scope.database === database)
        #expect(try database.defaultCollection() === collection)
        #expect(try database.defaultScope().name == Database.defaultScopeName)
        #expect(try database.scope(name: "_default") != nil)
    }

    @Test func `a scope exists while it contains a collection`() throws {
        #expect(Set(try database.scopes().map(\.name)) == ["_default", "travel"])
        #expect(try database.scope(name: "travel")?.collections().map(\.name) == ["sights"])
        #expect(try database.scope(name: "travel")?.collection(name: "sights") === world.sights)
        try database.deleteCollection(name: "sights", scope: "travel")
        #expect(try database.scopes().map(\.name) == ["_default"])
        #expect(try database.scope(name: "travel") == nil)
        #expect(try database.collections(scope: "travel").isEmpty)
        #expect(try database.collections(scope: nil).map(\.name) == ["_default"])
    }

    @Test func `creating a collection again returns it, and an absent one is nil`() throws {
        #expect(try database.createCollection(name: "sights", scope: "travel") == world.sights)
        #expect(try database.collection(name: "sights", scope: "travel") === world.sights)
        #expect(try database.collection(name: "sights") == nil)
        try database.deleteCollection(name: "nowhere")
        expectError(CBLError.invalidParameter) { try database.deleteCollection(name: "_default") }
    }

    @Test(arguments: ["", "_a", "%a", "a b", "a.b", "ä", String(repeating: "a", count: 252)])
    func `a name that is not allowed is refused`(name: String) {
        expectError(CBLError.invalidParameter) { try database.createCollection(name: name) }
        expectError(CBLError.invalidParameter) { try database.createCollection(name: "a", scope: name) }
    }

    @Test func `names are case-sensitive, and may begin with a hyphen`() throws {
        let names = ["-a", "A", "a", "0%_-"]
        for name in names { _ = try database.createCollection(name: name) }
        #expect(Set(try database.collections().map(\.name)) == Set(names + ["_default"]))
    }

    @Test func `a collection that was deleted throws notOpen, and is equal to none`() throws {
        let document = MutableDocument(id: "tower")
        try world.sights.save(document: document)
        try database.deleteCollection(name: "sights", scope: "travel")
        expectNotOpen(document)
        let anew = try database.createCollection(name: "sights", scope: "travel")
        #expect(anew.count == 0)
        #expect(anew != world.sights)
        expectNotOpen(document)
        #expect(Set([anew]).contains(anew))
    }

    @Test func `a collection of a closed database throws notOpen`() throws {
        let document = MutableDocument(id: "tower")
        try world.sights.save(document: document)
        try database.close()
        expectNotOpen(document)
    }

    private func expectNotOpen(_ document: MutableDocument) {
        let sights = world.sights
        #expect(sights.count == 0)
        expectError(CBLError.notOpen) { try sights.document(id: "tower") }
        expectError(CBLError.notOpen) { try sights.save(document: document) }
        expectError(CBLError.notOpen) {
            try sights.save(document: document, concurrencyControl: .failOnConflict)
        }
        expectError(CBLError.notOpen) { try sights.save(document: document) { _, _ in true } }
        expectError(CBLError.notOpen) { try sights.delete(document: document) }
        expectError(CBLError.notOpen) {
            try sights.delete(document: document, concurrencyControl: .failOnConflict)
        }
        expectError(CBLError.notOpen) { try sights.purge(document: document) }
        expectError(CBLError.notOpen) { try sights.purge(id: "tower") }
        expectError(CBLError.notOpen) { try sights.setDocumentExpiration(id: "tower", expiration: nil) }
        expectError(CBLError.notOpen) { try sights.getDocumentExpiration(id: "tower") }
        sights.addChangeListener { _ in }.remove()
        #expect(!sights["tower"].exists)
    }

    @Test func `an expiration is set, read and removed`() throws {
        try world.sights.save(document: MutableDocument(id: "tower"))
        #expect(try world.sights.getDocumentExpiration(id: "tower") == nil)
        #expect(try world.sights.getDocumentExpiration(id: "nowhere") == nil)
        let date = Date(timeIntervalSinceNow: 1_000)
        try world.sights.setDocumentExpiration(id: "tower", expiration: date)
        let read = try #require(try world.sights.getDocumentExpiration(id: "tower"))
        #expect(abs(read.timeIntervalSince(date)) < 0.002)
        try world.sights.setDocumentExpiration(id: "tower", expiration: nil)
        #expect(try world.sights.getDocumentExpiration(id: "tower") == nil)
        expectError(CBLError.notFound) {
            try world.sights.setDocumentExpiration(id: "nowhere", expiration: date)
        }
    }

    @Test func `an expired document is purged`() async throws {
        try world.sights.save(document: MutableDocument(id: "tower"))
        try world.sights.setDocumentExpiration(id: "tower", expiration: Date(timeIntervalSinceNow: 0.05))
        try await eventually { try world.sights.document(id: "tower") == nil }
        expectError(CBLError.notFound) { try world.sights.purge(id: "tower") }
    }
}
