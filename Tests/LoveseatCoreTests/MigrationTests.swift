import Foundation
import GRDB
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Databases that earlier versions wrote (Tests/Fixtures/databases).
struct MigrationTests {
    private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Fixtures/databases").standardized

    private static let stored: [Int] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: fixtures.path)) ?? []
        return names.compactMap { Int($0.trimmingPrefix("version-")) }.sorted()
    }()

    private let scratch: Scratch
    private let folder: String

    init() throws {
        scratch = try Scratch()
        folder = "\(scratch.path)/old.loveseat"
    }

    private func copy(version: Int) throws {
        try FileManager.default.copyItem(
            at: Self.fixtures.appending(path: "version-\(version)"),
            to: URL(filePath: folder)
        )
    }

    /// Runs SQL in the file of a database that is not open, as an earlier version or another program would.
    private func execute(_ sql: String) throws {
        let queue = try DatabaseQueue(path: "\(folder)/db.sqlite")
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }

    private func version(of folder: String) throws -> Int? {
        var configuration = Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: "\(folder)/db.sqlite", configuration: configuration)
        defer { try? queue.close() }
        return try queue.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }
    }

    /// The version that this code writes.
    private func currentVersion() throws -> Int {
        let new = try scratch.database("new")
        try new.close()
        return try #require(try version(of: "\(scratch.path)/new.loveseat"))
    }

    private static let documents = [
        "edited": #"3-3ad66ccfd98c13883ef657b1afc52d50e132f143 {"n":3,"text":"version 3"}"#,
        "kept":
            #"1-ddc0fd61f296ca023316962e7279d18e5ef0d77c {"city":"Oslo","list":[1,null,true,"ä"],"n":1.5}"#,
        "gone": "2-5cf7cc4f7e5fa4d1ff8bd3aa5f475802c2dab7b6 deleted",
        "photo":
            #"1-fbc12f68f5abf5c387f49f0462f76f5250ef5b33 {"picture":{"@type":"blob","content_type":"text/plain","digest":"sha1-JkdIWkY2BDADxPZ6hntWliQRFRE=","length":21}}"#,
        "expiring": #"1-f4f6d5cf5aef1b38c279aa13109584954e37feb7 {"n":1}"#,
        "both": #"2-ac049e8f95b10a675f8a5fdfacffdad1eea588ff {"text":"there"}"#,
        "waits": #"2-ac049e8f95b10a675f8a5fdfacffdad1eea588ff {"text":"there"}"#,
        "clash": #"3-98d55f52911b9f64044228e70c04a626aeb233d4 {"text":"here 3"}"#,
    ]

    /// A document's revisions with their flags.
    private func revisions(of id: String, _ collection: LoveseatCore.Collection) throws -> [String] {
        try CollectionHistory(collection).revisions(of: id).map {
            "\($0.id.text.prefix(5)) \($0.flags.joined(separator: " "))"
        }
    }

    private func expectContents(_ database: LoveseatCore.Database, version: Int) throws {
        let collection = try database.defaultCollection()
        #expect(try collection.contents() == Self.documents)
        let sights = try #require(try database.collection(name: "sights", scope: "travel"))
        #expect(try sights.document(id: "tower")?.json.description == #"{"likes":3}"#)
        #expect(
            try revisions(of: "edited", collection) == ["3-3ad current leaf", "2-f85 ", "1-dc3 "]
        )
        #expect(try revisions(of: "gone", collection) == ["2-5cf current leaf deleted", "1-f4f "])
        // Version 2 closed what a resolver gave up. Since version 3 it remains a candidate that lost.
        let loser = version < 3 ? "closed" : "candidate"
        #expect(
            try revisions(of: "both", collection) == ["2-ac0 current leaf", "2-33c leaf \(loser)", "1-e59 "]
        )
        #expect(try CollectionConflicts(collection).unresolvedIDs() == ["waits"])
        #expect(
            try revisions(of: "waits", collection) == ["2-ac0 current leaf", "2-33c leaf conflict", "1-e59 "]
        )
        let pending = try #require(RevisionID("2-33c9ec69fb34dea19042d024a19f02bb3ed02254"))
        #expect(
            try CollectionHistory(collection).body(of: "waits", revision: pending).description
                == #"{"text":"here"}"#
        )
        let blob = try #require(
            try collection.document(id: "photo")?["picture"].flatMap { BlobReference($0) }
        )
        #expect(try database.blobContent(blob) == Data("a blob of a few bytes".utf8))
        let expiration = try collection.getDocumentExpiration(id: "expiring")
        #expect(expiration == Date(timeIntervalSince1970: 4_102_444_800))
        #expect(try DatabaseInspection(database).problems() == [])
    }

    @Test func `every version up to the current one has a stored database`() throws {
        #expect(Self.stored == Array(1...(try currentVersion())))
    }

    @Test(arguments: stored)
    func `a database of an earlier version opens with all that it had, and becomes a current one`(
        _ version: Int
    ) async throws {
        try copy(version: version)
        #expect(try self.version(of: folder) == version)
        let database = try scratch.database("old")
        try expectContents(database, version: version)
        let collection = try database.defaultCollection()
        let grants = try database.store.read { try $0.grants(in: collection.handle, to: "ana") }
        #expect(grants.map(\.id) == (version < 2 ? [] : ["kept"]))
        #expect(grants.allSatisfy { !$0.isLost })
        try await database.close()
        #expect(try self.version(of: folder) == currentVersion())
        let again = try scratch.database("old")
        try expectContents(again, version: version)
        try await again.close()
    }

    @Test(arguments: stored)
    func `a database of an earlier version can be edited, settles its conflict, and replicates`(
        _ version: Int
    ) async throws {
        try copy(version: version)
        let database = try scratch.database("old")
        let collection = try database.defaultCollection()
        for id in ["edited", "both", "clash"] {
            var document = try #require(try collection.document(id: id))
            document["again"] = true
            try collection.save(&document)
        }
        try collection.delete(try #require(try collection.document(id: "kept")))
        try collection.save(Document(id: "gone", ["n": 2]))
        try collection.save(Document(id: "new"))
        #expect(try DatabaseInspection(database).problems() == [])

        let other = try scratch.database("other")
        var entry = CollectionConfiguration(collection: collection)
        entry.conflictResolver = ConflictResolver.custom { conflict in
            var merged = conflict.localDocument ?? Document(id: conflict.documentID)
            merged["other"] = conflict.remoteDocument?["text"]
            return merged
        }
        let replicator = Replicator(
            ReplicatorConfiguration(collections: [entry], target: DatabaseEndpoint(database: other))
        )
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(try CollectionConflicts(collection).unresolvedIDs() == [])
        #expect(
            try collection.document(id: "waits")?.json.canonical.description
                == #"{"other":"here","text":"there"}"#
        )
        #expect(try other.defaultCollection().contents() == collection.contents())
        #expect(try DatabaseInspection(other).problems() == [])
        #expect(try DatabaseInspection(database).problems() == [])
    }

    @Test(arguments: stored)
    func `a database of an earlier version is read without being changed`(_ version: Int) async throws {
        try copy(version: version)
        var config = scratch.config
        config.readOnly = true
        let database = try LoveseatCore.Database(name: "old", config: config)
        try expectContents(database, version: version)
        try await database.close()
        #expect(try self.version(of: folder) == version)
    }

    @Test(arguments: [false, true])
    func `a database of a newer version is refused with both versions, and stays as it is`(
        _ readsOnly: Bool
    ) throws {
        let current = try currentVersion()
        // The version of a database that stores version vectors.
        let newest = current + 1
        try copy(version: current)
        try execute("PRAGMA user_version = \(newest + 1)")
        var config = scratch.config
        config.readOnly = readsOnly
        let error = #expect(throws: LoveseatError.self) {
            try LoveseatCore.Database(name: "old", config: config)
        }
        #expect(error?.code == .databaseTooNew)
        #expect(error?.message.contains("format \(newest + 1)") == true)
        #expect(error?.message.contains("supports \(newest)") == true)
        #expect(try version(of: folder) == newest + 1)
        // The refusal leaves nothing locked.
        try execute("PRAGMA user_version = \(current)")
        let database = try scratch.database("old")
        #expect(try database.defaultCollection().contents() == Self.documents)
    }

    @Test func `a migration that fails in its last step leaves the earlier version, and can be repeated`()
        throws
    {
        try copy(version: 1)
        // The last step makes an index of this name.
        try execute("CREATE TABLE losses (x)")
        let error = #expect(throws: LoveseatError.self) { try scratch.database("old") }
        #expect(error?.code == .init(1, domain: .sqlite))
        #expect(try version(of: folder) == 1)
        // An earlier step made this table.
        try execute("DROP TABLE losses; CREATE TABLE grants (x); DROP TABLE grants")
        try expectContents(try scratch.database("old"), version: 1)
    }

    @Test func `a migration whose process was killed is done when the database is opened again`() throws {
        try copy(version: 1)
        // What a killed process leaves: pages of a transaction without its end.
        let dying = try DatabaseQueue(path: "\(folder)/db.sqlite")
        try dying.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    PRAGMA cache_size = 1;
                    BEGIN IMMEDIATE;
                    CREATE TABLE grants (peer TEXT NOT NULL);
                    UPDATE "_default._default" SET revision = 'x', tree = zeroblob(20000);
                    UPDATE info SET value = 'x';
                    """
            )
            let log = try Data(contentsOf: URL(filePath: "\(folder)/db.sqlite-wal"))
            #expect(log.count > 20_000)
            try FileManager.default.copyItem(atPath: folder, toPath: "\(scratch.path)/killed.loveseat")
            try db.execute(sql: "ROLLBACK")
        }
        let database = try scratch.database("killed")
        try expectContents(database, version: 1)
        try database.close()
        #expect(try version(of: "\(scratch.path)/killed.loveseat") == currentVersion())
    }
}
