import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Folders that were copied with the tools of the system (docs/decisions/0012-copied-folders.md).
@Suite struct CopiedFolderTests {
    private let scratch: Scratch
    private let files = FileManager.default

    init() throws { scratch = try Scratch() }

    private func folder(_ name: String) -> String { "\(scratch.path)/\(name).loveseat" }

    private func copy(_ name: String, to other: String) throws {
        if files.fileExists(atPath: folder(other)) { try files.removeItem(atPath: folder(other)) }
        try files.copyItem(atPath: folder(name), toPath: folder(other))
    }

    /// Copies "one" to "two".
    private func makeCopy(_ isByHand: Bool) throws {
        if isByHand { return try copy("one", to: "two") }
        try Database.copy(fromPath: folder("one"), toDatabase: "two", withConfig: scratch.config)
    }

    /// Opens a database, and closes it afterwards.
    private func open<T>(_ name: String, _ body: (Database, LoveseatCore.Collection) async throws -> T)
        async throws -> T
    {
        let database = try scratch.database(name)
        let result = try await body(database, try database.defaultCollection())
        try await database.close()
        return result
    }

    private func save(_ ids: String..., in name: String) async throws {
        try await open(name) { _, collection in for id in ids { try collection.save(Document(id: id)) } }
    }

    private func sync(_ name: String, with peer: String) async throws {
        try await open(name) { _, collection in
            try await open(peer) { far, _ in
                let replicator = Replicator(
                    ReplicatorConfiguration(
                        collections: [collection],
                        target: DatabaseEndpoint(database: far)
                    )
                )
                replicator.start()
                #expect(await replicator.waitUntilStopped().error == nil)
            }
        }
    }

    private func identity(of name: String) async throws -> String {
        try await open(name) { database, _ in try database.publicID }
    }

    private func documents(in name: String) async throws -> [String] {
        try await open(name) { _, collection in try collection.contents().keys.sorted() }
    }

    /// Both devices had one checkpoint at the peer, and one of them confirmed it for the other one.
    @Test func `two devices that begin with one copied folder lose nothing when their peer is put back`()
        async throws
    {
        try await save("common", in: "one")
        try await sync("one", with: "peer")
        try copy("one", to: "two")
        try copy("peer", to: "backup")
        try await save("of two", in: "two")
        try await sync("two", with: "peer")
        try copy("backup", to: "peer")
        try await save("of one", in: "one")
        try await sync("one", with: "peer")
        try await sync("two", with: "peer")
        try await sync("one", with: "peer")
        for name in ["one", "two", "peer"] {
            #expect(try await documents(in: name) == ["common", "of one", "of two"])
        }
    }

    @Test func `two devices that begin with one backup lose nothing when their peer is put back`()
        async throws
    {
        try await save("common", in: "lost")
        try await sync("lost", with: "peer")
        try copy("lost", to: "one")
        try copy("lost", to: "two")
        try copy("peer", to: "backup")
        try await save("of two", in: "two")
        try await sync("two", with: "peer")
        try copy("backup", to: "peer")
        try await save("of one", in: "one")
        try await sync("one", with: "peer")
        try await sync("two", with: "peer")
        #expect(try await documents(in: "peer") == ["common", "of one", "of two"])
    }

    /// What the original had pushed was marked in the copy, too.
    @Test(arguments: [true, false])
    func `a copy offers everything to a peer that has lost what the original pushed`(_ isByHand: Bool)
        async throws
    {
        try await save("common", in: "one")
        try await sync("one", with: "peer")
        try copy("peer", to: "backup")
        try await save("later", in: "one")
        try await sync("one", with: "peer")
        try makeCopy(isByHand)
        try copy("backup", to: "peer")
        try await sync("two", with: "peer")
        #expect(try await documents(in: "peer") == ["common", "later"])
    }

    @Test func `a copied folder gets an identity of its own once, and the original keeps its own`()
        async throws
    {
        let original = try await identity(of: "one")
        try copy("one", to: "two")
        let copied = try await identity(of: "two")
        #expect(copied != original)
        #expect(copied.count == 32)
        #expect(try await identity(of: "two") == copied)
        #expect(try await identity(of: "one") == original)
    }

    @Test func `a folder that is moved keeps its identity`() async throws {
        let original = try await identity(of: "one")
        try files.moveItem(atPath: folder("one"), toPath: folder("two"))
        #expect(try await identity(of: "two") == original)
    }

    @Test func `a folder that was moved away is not mistaken for the copy in its place`() async throws {
        let original = try await identity(of: "one")
        try files.moveItem(atPath: folder("one"), toPath: folder("two"))
        try copy("two", to: "one")
        #expect(try await identity(of: "one") != original)
        #expect(try await identity(of: "two") == original)
    }

    /// As `rsync --inplace` restores: the file stays, and its content is the earlier one.
    @Test func `a backup that is written into the same file keeps the identity, and loses nothing`()
        async throws
    {
        try await save("common", in: "one")
        try await sync("one", with: "peer")
        let original = try await identity(of: "one")
        let file = URL(filePath: folder("one") + "/db.sqlite")
        let backup = try Data(contentsOf: file)
        try await save("lost here", in: "one")
        try await sync("one", with: "peer")
        let handle = try FileHandle(forWritingTo: file)
        try handle.write(contentsOf: backup)
        try handle.truncate(atOffset: UInt64(backup.count))
        try handle.close()
        #expect(try await identity(of: "one") == original)
        try await save("new", in: "one")
        try await sync("one", with: "peer")
        for name in ["one", "peer"] {
            #expect(try await documents(in: name) == ["common", "lost here", "new"])
        }
    }

    @Test(arguments: [true, false])
    func `what was purged before the copy is given up for what the copy makes anew`(_ isByHand: Bool)
        async throws
    {
        try await open("one") { _, collection in
            var document = Document(id: "d", ["n": 1])
            try collection.save(&document)
            document["n"] = 2
            try collection.save(&document)
        }
        try await sync("one", with: "peer")
        try await open("one") { _, collection in try collection.purge(id: "d") }
        try makeCopy(isByHand)
        try await open("two") { _, collection in _ = try collection.save(Document(id: "d", ["n": 3])) }
        try await sync("two", with: "peer")
        for name in ["two", "peer"] {
            let value = try await open(name) { _, collection in try collection.document(id: "d")?["n"]?.int }
            #expect(value == 3)
        }
    }
}
