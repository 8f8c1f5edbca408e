import Dispatch
import GRDB
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Reads whose task is cancelled while they run.
struct InterruptedReadTests {
    private let scratch: Scratch
    private let database: LoveseatCore.Database
    private let collection: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        collection = try database.defaultCollection()
    }

    @Test func `a cancelled task's read ends in the middle of a statement of minutes, and harms no other`()
        async throws
    {
        let other = try DatabaseQueue(path: "\(try #require(database.path))/db.sqlite")
        let table = "_default._default"
        try await other.write {
            // To count the documents means to count to a billion.
            try $0.execute(
                sql: """
                    ALTER TABLE "\(table)" RENAME TO kept;
                    CREATE VIEW "\(table)" AS SELECT 1 AS sequence, (
                        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000000)
                        SELECT count(*) FROM n
                    ) AS flags;
                    """
            )
        }
        // The store reads the collections again if the tables are others, unless it has looked.
        try database.performMaintenance(type: .optimize)
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let read = Task {
            try await database.read { transaction in
                begin.yield()
                return try transaction.count(in: collection)
            }
        }
        for await _ in begun { break }
        read.cancel()
        await #expect(throws: CancellationError.self) { try await read.value }
        try await other.write {
            try $0.execute(sql: "DROP VIEW \"\(table)\"; ALTER TABLE kept RENAME TO \"\(table)\"")
        }
        try database.performMaintenance(type: .optimize)
        try collection.save(Document(id: "a"))
        for _ in 0..<8 { #expect(try await database.read { try $0.count(in: collection) } == 1) }
    }

    @Test func `a cancelled task's read reads nothing more, whatever its closure catches`() async throws {
        try collection.save(Document(id: "a"))
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let goOn = DispatchSemaphore(value: 0)
        let read = Task {
            try await database.read { transaction in
                begin.yield()
                goOn.wait()
                let caught = try? transaction.document(id: "a", in: collection)
                #expect(caught == nil)
                return try transaction.count(in: collection)
            }
        }
        for await _ in begun { break }
        read.cancel()
        goOn.signal()
        await #expect(throws: CancellationError.self) { try await read.value }
        #expect(try await database.read { try $0.count(in: collection) } == 1)
    }

    @Test func `what a cancelled task's closure throws or returns itself stays what it is`() async throws {
        struct Own: Error, Equatable {}
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let goOn = DispatchSemaphore(value: 0)
        let reads = [true, false].map { throwsItsOwn in
            Task {
                try await database.read { _ in
                    begin.yield()
                    goOn.wait()
                    if throwsItsOwn { throw Own() }
                    return 7
                }
            }
        }
        var count = 0
        for await _ in begun {
            count += 1
            if count == 2 { break }
        }
        for read in reads {
            read.cancel()
            goOn.signal()
        }
        await #expect(throws: Own()) { try await reads[0].value }
        #expect(try await reads[1].value == 7)
    }
}
