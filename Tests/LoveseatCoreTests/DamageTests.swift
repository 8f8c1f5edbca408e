import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// What the disk did to stored documents, and how their files are kept.
struct DamageTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func file(_ database: String) -> String { "\(scratch.path)/\(database).loveseat/db.sqlite" }

    /// Changes bytes in the file of a database that is closed.
    private func change(_ old: String, to new: String, in database: String) throws {
        var data = try Data(contentsOf: URL(filePath: file(database)))
        let range = try #require(data.range(of: Data(old.utf8)))
        data.replaceSubrange(range, with: Data(new.utf8))
        try data.write(to: URL(filePath: file(database)))
    }

    private func push(_ near: Database, _ far: Database) async throws {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: DatabaseEndpoint(database: far)
        )
        configuration.replicatorType = .push
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    @Test func `a flipped byte in a body is found, and the document is not sent on`() async throws {
        let near = try scratch.database("near")
        let collection = try near.defaultCollection()
        try collection.save(Document(id: "new", ["city": "Paris"]))
        var edited = Document(id: "edited", ["n": 1])
        try collection.save(&edited)
        edited["city"] = "Geneva"
        try collection.save(&edited)
        try collection.save(Document(id: "good", ["city": "Oslo"]))
        // Marks of what a peer has change the row, and must not hide anything later.
        let before = try scratch.database("before")
        try await push(near, before)
        try near.performMaintenance(type: .integrityCheck)
        try await near.close()
        try change("Paris", to: "Pariz", in: "near")
        try change("Geneva", to: "Genova", in: "near")
        let damaged = try scratch.database("near")
        let error = #expect(throws: LoveseatError.self) {
            try damaged.performMaintenance(type: .integrityCheck)
        }
        #expect(error?.code == .corruptData)
        #expect(error?.message.hasPrefix("2 problems") == true)
        let far = try scratch.database("far")
        try await push(damaged, far)
        #expect(try Set(far.defaultCollection().contents().keys) == ["good"])
    }

    @Test func `a pulled body is checked where its revision is a digest, and left alone where it is not`()
        async throws
    {
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        try far.defaultCollection().save(Document(id: "ours", ["city": "Paris"]))
        let there = try far.defaultCollection()
        let foreign = try #require(RevisionID("1-" + String(repeating: "ab", count: 20)))
        _ = try far.store.write {
            try $0.insert(
                IncomingRecord(
                    documentID: "theirs",
                    history: [foreign],
                    isDeleted: false,
                    body: JSONText(canonical: ["city": "Geneva"]),
                    sender: .loveseat
                ),
                in: there.handle
            )
        }
        try far.performMaintenance(type: .integrityCheck)
        try await push(far, near)
        try near.performMaintenance(type: .integrityCheck)
        try await near.close()
        try change("Paris", to: "Pariz", in: "near")
        let damaged = try scratch.database("near")
        expectError(.corruptData) { try damaged.performMaintenance(type: .integrityCheck) }
    }

    @Test func `a database that is closed is in one file, also while another reads it`() throws {
        let database = try scratch.database("db")
        var config = scratch.config
        config.readOnly = true
        let reader = try Database(name: "db", config: config)
        for number in 0..<100 { try database.defaultCollection().save(Document(id: "\(number)")) }
        let log = file("db") + "-wal"
        func size() -> UInt64? {
            (try? FileManager.default.attributesOfItem(atPath: log))?[.size] as? UInt64
        }
        #expect(try #require(size()) > 0)
        try database.close()
        #expect((size() ?? 0) == 0)
        #expect(try reader.defaultCollection().count == 100)
        try reader.close()
    }

    @Test func `only the owner can read a database's folder and files`() throws {
        let database = try scratch.database("db")
        _ = try database.saveBlob([1, 2, 3])
        try database.defaultCollection().save(Document(id: "d"))
        let path = try #require(database.path)
        try Database.copy(fromPath: path, toDatabase: "copy", withConfig: scratch.config)
        let files = FileManager.default
        for folder in [path, "\(scratch.path)/copy.loveseat"] {
            for name in [""] + (try files.subpathsOfDirectory(atPath: folder)) {
                let attributes = try files.attributesOfItem(atPath: "\(folder)/\(name)")
                let mode = try #require(attributes[.posixPermissions] as? NSNumber).intValue
                let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
                #expect(mode == (isFolder ? 0o700 : 0o600), "\(name)")
            }
        }
        try database.close()
    }
}
