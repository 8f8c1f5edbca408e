import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct DatabaseTests {
    private let world: World

    init() throws { world = try World() }

    @Test func `a database has a folder of its name, which its path ends with a slash`() throws {
        let path = try #require(world.database.path)
        #expect(path.hasSuffix("/trips.cblite2/"))
        #expect(FileManager.default.fileExists(atPath: path))
        #expect(world.database.name == "trips")
        #expect(world.database.config.directory == world.scratch.path)
        #expect(Database.exists(withName: "trips", inDirectory: world.scratch.path))
        #expect(!Database.exists(withName: "nowhere", inDirectory: world.scratch.path))
        #expect(!Database.exists(withName: "", inDirectory: world.scratch.path))
    }

    @Test func `a database without a name is refused`() {
        expectError(CBLError.invalidParameter) { try Database(name: "", config: world.config) }
    }

    @Test func `a folder of Couchbase Lite is refused rather than begun anew`() throws {
        let folder = "\(world.scratch.path)/old.cblite2"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data().write(to: URL(filePath: "\(folder)/db.sqlite3"))
        expectError(CBLError.cantUpgradeDatabase) { try Database(name: "old", config: world.config) }
    }

    @Test func `two instances see each other's commits`() throws {
        let again = try Database(name: "trips", config: world.config)
        try world.sights.save(document: MutableDocument(id: "tower", data: ["n": 1]))
        let sights = try #require(try again.collection(name: "sights", scope: "travel"))
        #expect(try sights.document(id: "tower")?.int(forKey: "n") == 1)
        #expect(sights == world.sights)
        #expect(sights.count == 1)
    }

    @Test func `closing twice does nothing, and afterwards there is no path`() throws {
        try world.database.close()
        try world.database.close()
        #expect(world.database.path == nil)
        expectError(CBLError.notOpen) { try world.database.defaultCollection() }
        expectError(CBLError.notOpen) { try world.database.scopes() }
        expectError(CBLError.notOpen) { try world.database.inBatch {} }
        expectError(CBLError.notOpen) { try world.database.delete() }
    }

    @Test func `deleting removes the folder, unless somebody else has it open`() throws {
        let again = try Database(name: "trips", config: world.config)
        expectError(CBLError.busy) { try world.database.delete() }
        expectError(CBLError.busy) {
            try Database.delete(withName: "trips", inDirectory: world.scratch.path)
        }
        try again.close()
        try world.database.delete()
        #expect(!Database.exists(withName: "trips", inDirectory: world.scratch.path))
        try Database.delete(withName: "trips", inDirectory: world.scratch.path)
    }

    @Test func `a copy has the documents and blobs, and leaves nothing if it fails`() throws {
        let blob = Blob(contentType: "text/plain", data: Data("hello".utf8))
        try world.sights.save(document: MutableDocument(id: "tower").setBlob(blob, forKey: "b"))
        let path = try #require(world.database.path)
        try Database.copy(fromPath: path, toDatabase: "copy", withConfig: world.config)
        let copy = try Database(name: "copy", config: world.config)
        let sights = try #require(try copy.collection(name: "sights", scope: "travel"))
        #expect(try sights.document(id: "tower")?.blob(forKey: "b")?.content == Data("hello".utf8))
        expectError(CBLError.notFound) {
            try Database.copy(
                fromPath: "\(world.scratch.path)/nowhere",
                toDatabase: "none",
                withConfig: world.config
            )
        }
        #expect(!Database.exists(withName: "none", inDirectory: world.scratch.path))
    }

    @Test func `a copy has the indexes, and lives on its own`() throws {
        try world.sights.save(document: MutableDocument(id: "tower"))
        try world.sights.createIndex(withName: "cities", config: ValueIndexConfiguration(["city"]))
        let path = try #require(world.database.path)
        try Database.copy(fromPath: path, toDatabase: "copy", withConfig: world.config)
        let copy = try Database(name: "copy", config: world.config)
        let sights = try #require(try copy.collection(name: "sights", scope: "travel"))
        #expect(try sights.indexes() == ["cities"])
        #expect(sights != world.sights)
        try sights.purge(id: "tower")
        #expect(sights.count == 0)
        #expect(world.sights.count == 1)
    }

    @Test(arguments: [MaintenanceType.compact, .reindex, .integrityCheck, .optimize, .fullOptimize])
    func `maintenance succeeds`(type: MaintenanceType) throws {
        try world.database.performMaintenance(type: type)
    }

    @Test func `a configuration is copied`() throws {
        var config = world.config
        config.fullSync = true
        let copy = DatabaseConfiguration(config: config)
        #expect(copy.fullSync)
        #expect(copy.directory == config.directory)
        #expect(DatabaseConfiguration(config: nil).directory == DatabaseConfiguration().directory)
        #expect(!DatabaseConfiguration.defaultFullSync)
    }
}
