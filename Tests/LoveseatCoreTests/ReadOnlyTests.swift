import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// A database that is opened for reading only, while this process or nobody writes to it.
struct ReadOnlyTests {
    private let scratch: Scratch
    private let config: DatabaseConfiguration

    init() throws {
        scratch = try Scratch()
        var config = scratch.config
        config.readOnly = true
        self.config = config
    }

    private func fill() throws {
        let database = try scratch.database("db")
        let collection = try database.defaultCollection()
        try collection.save(Document(id: "a"))
        // No document refers to it.
        _ = try database.saveBlob([1, 2, 3])
        try database.close()
    }

    /// The folder's files with their content, without those that SQLite makes to read.
    private func files() throws -> [String: Data] {
        let folder = "\(scratch.path)/db.loveseat"
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
            .filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }
        return Dictionary(uniqueKeysWithValues: names.map { ($0, Data()) }).merging(
            names.compactMap { name in
                FileManager.default.contents(atPath: "\(folder)/\(name)").map { (name, $0) }
            }
        ) { $1 }
    }

    @Test func `everything that would write is refused, and nothing on the disk changes`() async throws {
        try fill()
        let before = try files()
        let database = try Database(name: "db", config: config)
        let collection = try database.defaultCollection()
        let document = try #require(try collection.document(id: "a"))
        let file = URL(filePath: "\(scratch.path)/file")
        try Data([4, 5]).write(to: file)

        expectError(.notWriteable) { try database.saveBlob([4, 5]) }
        expectError(.notWriteable) { try database.saveBlob(fileURL: file) }
        let stream = AsyncStream<[UInt8]> {
            $0.yield([4, 5])
            $0.finish()
        }
        let error = await #expect(throws: LoveseatError.self) { try await database.saveBlob(stream: stream) }
        #expect(error?.code == .notWriteable)
        expectError(.notWriteable) { try collection.save(Document(id: "b")) }
        expectError(.notWriteable) { try collection.delete(document) }
        expectError(.notWriteable) { try collection.purge(id: "a") }
        expectError(.notWriteable) { try collection.setDocumentExpiration(id: "a", expiration: .now) }
        expectError(.notWriteable) { try database.createCollection(name: "made") }
        expectError(.notWriteable) { try database.deleteCollection(name: "made") }
        expectError(.notWriteable) { try database.write { _ in } }
        for type in [MaintenanceType.compact, .reindex, .optimize, .fullOptimize] {
            expectError(.notWriteable) { try database.performMaintenance(type: type) }
        }
        try database.performMaintenance(type: .integrityCheck)
        expectError(.notWriteable) {
            try database.addPairedPeer(PairedPeer(name: "x", fingerprint: "00", urls: [], isNameGiven: false))
        }
        expectError(.notWriteable) { try database.removePairedPeer(fingerprint: "00") }
        expectError(.notWriteable) { try database.delete() }

        let other = try scratch.database("other")
        let replicator = Replicator(
            ReplicatorConfiguration(collections: [collection], target: DatabaseEndpoint(database: other))
        )
        replicator.start()
        #expect(await replicator.waitUntilStopped().error?.code == .notWriteable)
        #expect(try collection.document(id: "a") != nil)
        try await database.close()
        #expect(try files() == before)
    }

    @Test func `full sync may be asked for by those who only read`() throws {
        try fill()
        var strict = config
        strict.fullSync = true
        let readers = try [config, strict].map { try Database(name: "db", config: $0) }
        for reader in readers {
            #expect(try reader.defaultCollection().count == 1)
            try reader.close()
        }
    }

    @Test func `a database is not deleted while this process reads it`() async throws {
        try fill()
        let writer = try scratch.database("db")
        let reader = try Database(name: "db", config: config)
        expectError(.busy) { try writer.delete() }
        let error = await #expect(throws: LoveseatError.self) { try await writer.delete() }
        #expect(error?.code == .busy)
        // A refusal leaves the database open.
        try writer.defaultCollection().save(Document(id: "b"))
        try await writer.close()
        expectError(.busy) { try Database.delete(withName: "db", inDirectory: scratch.path) }
        #expect(try reader.defaultCollection().count == 2)
        try await reader.close()
        try Database.delete(withName: "db", inDirectory: scratch.path)
        #expect(!Database.exists(withName: "db", inDirectory: scratch.path))
    }

    /// A folder that was removed in parts would be opened as a database without its log, or without its blobs.
    @Test func `nobody opens a database while it is being deleted`() async throws {
        for _ in 0..<50 {
            try fill()
            let database = try scratch.database("db")
            let opening = Task.detached { [scratch, config] in
                (0..<20).map { number in
                    let opened = number % 2 == 0 ? config : scratch.config
                    return Result<Void, any Error> { try Database(name: "db", config: opened).close() }
                }
            }
            do { try await database.delete() } catch { #expect(error.code == .busy) }
            for case .failure(let error as LoveseatError) in await opening.value {
                #expect(error.code == .busy || error.code == .cantOpenFile, "\(error.message)")
            }
            try await database.close()
            while Database.exists(withName: "db", inDirectory: scratch.path) {
                try Database.delete(withName: "db", inDirectory: scratch.path)
            }
        }
    }
}
