import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct SavingTests {
    private let world: World
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws { world = try World() }

    @Test func `a document carries its revision and sequence after a save`() throws {
        let document = MutableDocument(id: "tower", data: ["n": 1])
        #expect(document.revisionID == nil)
        #expect(document.sequence == 0)
        #expect(document.timestamp == 0)
        #expect(document.collection == nil)
        #expect(document._getRevisionHistory() == nil)
        try sights.save(document: document)
        let first = try #require(document.revisionID)
        #expect(document.sequence == 1)
        #expect(document.collection === sights)
        let stored = try #require(try sights.document(id: "tower"))
        #expect(stored.revisionID == first)
        #expect(stored.sequence == 1)
        #expect(stored.timestamp == document.timestamp)
        #expect(stored.timestamp == 1)
        document.setInt(2, forKey: "n")
        try sights.save(document: document)
        #expect(document.revisionID != first)
        #expect(document.sequence == 2)
        #expect(document.timestamp > stored.timestamp)
        let history = try #require(document._getRevisionHistory())
        #expect(history.hasPrefix(try #require(document.revisionID)))
        #expect(sights.count == 1)
    }

    @Test func `a document without an ID gets one, and an empty ID is refused`() throws {
        let ids = Set([MutableDocument(), MutableDocument(id: nil)].map(\.id))
        #expect(ids.count == 2)
        #expect(!ids.contains(""))
        expectError(CBLError.badDocID) { try sights.save(document: MutableDocument(id: "")) }
        expectError(CBLError.badDocID) { try sights.document(id: "") }
        let odd = "`~@#$%^&*()+{}|\\][=-/.,<>?\":;' é"
        try sights.save(document: MutableDocument(id: odd))
        #expect(try sights.document(id: odd)?.id == odd)
        #expect(try sights.document(id: "nowhere") == nil)
    }

    @Test func `the last save wins, unless it is to fail`() throws {
        try sights.save(document: MutableDocument(id: "tower", data: ["n": 1]))
        let one = try #require(try sights.document(id: "tower")).toMutable().setInt(2, forKey: "n")
        let other = try #require(try sights.document(id: "tower")).toMutable().setInt(3, forKey: "n")
        try sights.save(document: one)
        #expect(try !sights.save(document: other, concurrencyControl: .failOnConflict))
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 2)
        #expect(try sights.save(document: other, concurrencyControl: .lastWriteWins))
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 3)
        #expect(try sights.save(document: other, concurrencyControl: .failOnConflict))
    }

    @Test func `two new documents of one ID conflict`() throws {
        try sights.save(document: MutableDocument(id: "tower", data: ["n": 1]))
        let twin = MutableDocument(id: "tower", data: ["n": 2])
        #expect(try !sights.save(document: twin, concurrencyControl: .failOnConflict))
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 1)
    }

    @Test func `a handler merges into the same object, and is asked again after another conflict`() throws {
        try sights.save(document: MutableDocument(id: "tower", data: ["n": 1]))
        let stale = try #require(try sights.document(id: "tower")).toMutable().setInt(10, forKey: "n")
        try bump(to: 2)
        var calls = 0
        let isSaved = try sights.save(document: stale) { document, stored in
            calls += 1
            #expect(document === stale)
            #expect(stored?.int(forKey: "n") == calls + 1)
            if calls == 1 { #expect(throws: Never.self) { try bump(to: 3) } }
            document.setInt(10 + (stored?.int(forKey: "n") ?? 0), forKey: "n")
            return true
        }
        #expect(isSaved)
        #expect(calls == 2)
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 13)
    }

    private func bump(to number: Int) throws {
        let document = try #require(try sights.document(id: "tower")).toMutable()
        try sights.save(document: document.setInt(number, forKey: "n"))
    }

    @Test func `a handler that gives up leaves the stored document`() throws {
        try sights.save(document: MutableDocument(id: "tower", data: ["n": 1]))
        let stale = try #require(try sights.document(id: "tower")).toMutable().setInt(10, forKey: "n")
        try bump(to: 2)
        #expect(try !sights.save(document: stale) { _, _ in false })
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 2)
    }

    @Test
    func `a handler gets nil for a document that was deleted, and is not asked about one that was purged`()
        throws
    {
        let document = MutableDocument(id: "tower", data: ["n": 1])
        try sights.save(document: document)
        let stale = try #require(try sights.document(id: "tower")).toMutable().setInt(10, forKey: "n")
        let staler = try #require(try sights.document(id: "tower")).toMutable().setInt(20, forKey: "n")
        try sights.delete(document: document)
        #expect(try sights.save(document: stale) { _, stored in stored == nil })
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 10)
        try sights.purge(id: "tower")
        expectError(CBLError.notFound) { try sights.save(document: staler) { _, _ in true } }
    }

    @Test func `a deleted document keeps its content, and can be saved again`() throws {
        let document = MutableDocument(id: "tower", data: ["n": 1, "map": ["a": 1]])
        try sights.save(document: document)
        let map = document.dictionary(forKey: "map")
        try sights.delete(document: document)
        #expect(try sights.document(id: "tower") == nil)
        #expect(sights.count == 0)
        #expect(document.int(forKey: "n") == 1)
        #expect(map?.int(forKey: "a") == 1)
        #expect(document.sequence == 2)
        try sights.save(document: document)
        #expect(document.sequence == 3)
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 1)
    }

    @Test func `deleting again makes another tombstone only through the same object`() throws {
        let document = MutableDocument(id: "tower")
        try sights.save(document: document)
        let stale = try #require(try sights.document(id: "tower"))
        try sights.delete(document: document)
        let revision = document.revisionID
        try sights.delete(document: stale)
        #expect(try sights.delete(document: stale, concurrencyControl: .failOnConflict))
        try sights.delete(document: document)
        #expect(document.sequence == 3)
        #expect(document.revisionID != revision)
    }

    @Test func `a stale document is deleted unless that is to fail`() throws {
        try sights.save(document: MutableDocument(id: "tower", data: ["n": 1]))
        let stale = try #require(try sights.document(id: "tower"))
        try bump(to: 2)
        #expect(try !sights.delete(document: stale, concurrencyControl: .failOnConflict))
        #expect(try sights.document(id: "tower") != nil)
        try sights.delete(document: stale)
        #expect(try sights.document(id: "tower") == nil)
    }

    @Test func `a document that was never saved or was purged cannot be deleted or purged`() throws {
        let document = MutableDocument(id: "tower")
        expectError(CBLError.notFound) { try sights.delete(document: document) }
        expectError(CBLError.notFound) { try sights.purge(document: document) }
        try sights.save(document: document)
        try sights.purge(document: document)
        #expect(document.revisionID == nil)
        expectError(CBLError.notFound) { try sights.purge(document: document) }
        expectError(CBLError.notFound) { try sights.delete(document: document) }
        expectError(CBLError.notFound) { try sights.purge(id: "tower") }
    }

    @Test func `a tombstone can be purged`() throws {
        let document = MutableDocument(id: "tower")
        try sights.save(document: document)
        try sights.delete(document: document)
        try sights.purge(document: document)
        expectError(CBLError.notFound) { try sights.purge(id: "tower") }
    }

    @Test func `a document of another collection or instance is refused`() throws {
        let document = MutableDocument(id: "tower")
        try sights.save(document: document)
        let again = try Database(name: "trips", config: world.config)
        let others = [
            try world.database.defaultCollection(),
            try #require(try again.collection(name: "sights", scope: "travel")),
        ]
        for other in others {
            expectError(CBLError.invalidParameter) { try other.save(document: document) }
            expectError(CBLError.invalidParameter) { try other.delete(document: document) }
            expectError(CBLError.invalidParameter) { try other.purge(document: document) }
        }
        let same = try #require(try world.database.collection(name: "sights", scope: "travel"))
        try same.save(document: document)
    }
}
