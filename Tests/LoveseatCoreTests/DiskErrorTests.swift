import Foundation
import GRDB
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// What transactions do when SQLite fails, or another program has its file.
struct DiskErrorTests {
    private let scratch: Scratch
    private let database: LoveseatCore.Database
    private let collection: LoveseatCore.Collection
    /// Another program.
    private let other: DatabaseQueue

    init() throws {
        scratch = try Scratch()
        var config = scratch.config
        config.busyTimeout = .milliseconds(50)
        database = try LoveseatCore.Database(name: "trips", config: config)
        collection = try database.defaultCollection()
        other = try DatabaseQueue(path: "\(try #require(database.path))/db.sqlite")
    }

    @Test func `a transaction that SQLite rolled back fails, though the closure goes on`() throws {
        try other.writeWithoutTransaction {
            try $0.execute(
                sql: """
                    CREATE TRIGGER failure BEFORE INSERT ON "_default._default" WHEN NEW.doc_id = 'bad'
                    BEGIN SELECT RAISE(ROLLBACK, 'the disk failed'); END
                    """
            )
        }
        expectError(.init(1_811, domain: .sqlite)) {
            try database.write { transaction in
                try transaction.save(Document(id: "before"), in: collection)
                #expect((try? transaction.save(Document(id: "bad"), in: collection)) == nil)
                // Without a transaction this would be kept at once.
                #expect((try? transaction.save(Document(id: "after"), in: collection)) == nil)
            }
        }
        #expect(collection.count == 0)
        try collection.save(Document(id: "next"))
        #expect(try collection.document(id: "next")?.sequence == 1)
    }

    @Test func `another program that has the file locked makes writes busy, not reads`() throws {
        try collection.save(Document(id: "a"))
        try other.writeWithoutTransaction { other in
            try other.beginTransaction(.immediate)
            expectError(.busy) { try database.write { _ in } }
            expectError(.busy) { try collection.save(Document(id: "b")) }
            #expect(try database.read { try $0.count(in: collection) } == 1)
            #expect(try collection.document(id: "a") != nil)
            try other.rollback()
        }
        try collection.save(Document(id: "b"))
    }
}
