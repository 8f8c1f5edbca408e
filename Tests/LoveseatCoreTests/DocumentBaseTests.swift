import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Documents whose base revision the caller keeps, and folders with another ending.
struct DocumentBaseTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    @Test func `a tombstone gets another one only from a document that is at it`() throws {
        var document = Document(id: "tower", ["n": 1])
        try sights.save(&document)
        let (first, second, third) = try database.write { transaction in
            let first = try #require(try transaction.deleting(document, in: sights))
            let second = try #require(try transaction.deleting(document, in: sights))
            return (first, second, try transaction.deleting(first, in: sights))
        }
        #expect(first.revisionID?.generation == 2)
        #expect(second.revisionID == document.revisionID)
        #expect(third?.revisionID?.generation == 3)
        #expect(third?.sequence == 3)
        try database.read { transaction in
            let current = try #require(try transaction.current(id: "tower", in: sights))
            #expect(current.document == nil)
            #expect(current.revision == third?.revisionID)
            #expect(try transaction.history(id: "tower", in: sights).first == current.revision)
            #expect(try transaction.current(id: "nowhere", in: sights) == nil)
            #expect(try transaction.history(id: "nowhere", in: sights).isEmpty)
        }
        expectError(.notFound) {
            try database.write { try $0.deleting(Document(id: "tower"), in: sights) }
        }
    }

    @Test func `the timestamp is the number of edits, and later the time of the version`() throws {
        var document = Document(id: "tower", ["n": 1])
        #expect(document.timestamp == 0)
        try sights.save(&document)
        #expect(document.timestamp == 1)
        try sights.openStore().beginVersions()
        document["n"] = 2
        try sights.save(&document)
        let time = document.timestamp
        // A time since 2020, in nanoseconds.
        #expect(time > 1_577_836_800_000_000_000)
        #expect(try sights.document(id: "tower")?.timestamp == time)
        try database.write { transaction in
            document["n"] = 3
            try transaction.save(&document, in: sights)
            #expect(try transaction.document(id: "tower", in: sights)?.timestamp == document.timestamp)
        }
        #expect(document.timestamp > time)
        #expect(document.revisionID?.generation == 3)
    }

    @Test func `a document that was changed is not deleted if that is to fail`() throws {
        var document = Document(id: "tower", ["n": 1])
        try sights.save(&document)
        let stale = document
        try sights.save(&document)
        let (refused, deleted) = try database.write { transaction in
            (
                try transaction.deleting(stale, in: sights, concurrencyControl: .failOnConflict),
                try transaction.deleting(document, in: sights, concurrencyControl: .failOnConflict)
            )
        }
        #expect(refused == nil)
        #expect(deleted?.revisionID?.generation == 3)
        #expect(try sights.document(id: "tower") == nil)
    }

    @Test func `a document with another one's base is saved over that`() throws {
        var stored = Document(id: "tower", ["n": 1])
        try sights.save(&stored)
        let same = Document(id: "tower", ["n": 2])
            .belonging(to: sights, at: stored.revisionID, stored.sequence)
        #expect(try sights.save(same, concurrencyControl: .failOnConflict))
        #expect(try !sights.save(same, concurrencyControl: .failOnConflict))
        let other = try database.defaultCollection()
        expectError(.invalidParameter) { try other.save(same) }
    }

    @Test func `the ending of a database's folder is a setting`() throws {
        var config = scratch.config
        config.folderExtension = "other"
        let other = try Database(name: "trips", config: config)
        #expect(other.path?.hasSuffix("/trips.other") == true)
        #expect(other.path != database.path)
        try other.close()
        let folder = try DatabaseFolder(name: "trips", config)
        #expect(folder.hasDatabase)
        try folder.removeUnused()
        #expect(!folder.hasDatabase)
        #expect(Database.exists(withName: "trips", inDirectory: scratch.path))
        expectError(.invalidParameter) { try DatabaseFolder(name: "a/b", config) }
    }
}
