import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

struct AsyncTransactionTests {
    private let scratch: Scratch
    private let database: Database
    private let collection: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        var config = scratch.config
        // Other tests may keep Swift's pool busy for long.
        config.busyTimeout = .seconds(120)
        database = try Database(name: "trips", config: config)
        collection = try database.defaultCollection()
    }

    /// A transaction that stays open until it is told to end.
    private final class Held: Sendable {
        private let goOn = DispatchSemaphore(value: 0)
        private let transaction: Task<Void, any Error>

        init(_ database: Database) async {
            let (begun, begin) = AsyncStream<Void>.makeStream()
            transaction = Task { [goOn] in
                try await database.write { _ in
                    begin.yield()
                    goOn.wait()
                }
            }
            for await _ in begun { break }
        }

        func end() async throws {
            goOn.signal()
            try await transaction.value
        }
    }

    private func expectError(_ code: LoveseatError.Code, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("nothing was thrown")
        } catch { #expect((error as? LoveseatError)?.code == code) }
    }

    @Test func `200 tasks that wait to write block no thread of Swift's pool`() async throws {
        let held = await Held(database)
        let (started, start) = AsyncStream<Void>.makeStream()
        let counts = try await withThrowingTaskGroup(of: UInt64.self) { group in
            for number in 0..<200 {
                group.addTask {
                    start.yield()
                    return try await database.write { transaction in
                        try transaction.save(Document(id: "doc\(number)"), in: collection)
                        return try transaction.count(in: collection)
                    }
                }
            }
            // Were a thread blocked by each, not all of them would begin.
            var waiting = 0
            for await _ in started {
                waiting += 1
                if waiting == 200 { break }
            }
            #expect(collection.count == 0)
            #expect(try await database.read { try $0.count(in: collection) } == 0)
            try await held.end()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(counts.sorted() == Array(1...200))
        #expect(collection.count == 200)
    }

    /// An app's actor that writes both ways.
    private actor Clerk {
        private let database: Database
        private let collection: LoveseatCore.Collection

        init(_ database: Database, _ collection: LoveseatCore.Collection) {
            (self.database, self.collection) = (database, collection)
        }

        func write(_ begin: AsyncStream<Void>.Continuation) async throws {
            begin.yield()
            try await database.write { [collection] in try $0.save(Document(id: "waited"), in: collection) }
        }

        func saveAtOnce(_ begin: AsyncStream<Void>.Continuation) throws {
            begin.yield()
            try collection.save(Document(id: "blocked"))
        }
    }

    @Test func `a task that waits does not need its actor, which a save blocks that waits behind it`()
        async throws
    {
        let held = await Held(database)
        let clerk = Clerk(database, collection)
        let (begun, begin) = AsyncStream<Void>.makeStream()
        var steps = begun.makeAsyncIterator()
        let first = Task { try await clerk.write(begin) }
        await steps.next()
        let second = Task { try await clerk.saveAtOnce(begin) }
        await steps.next()
        try await held.end()
        try await first.value
        try await second.value
        #expect(collection.count == 2)
    }

    @Test func `20 tasks read, four at a time`() async throws {
        try collection.save(Document(id: "a", ["n": 1]))
        let sums = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await database.read { try $0.document(id: "a", in: collection)?["n"]?.int ?? 0 }
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(sums == 20)
    }

    @Test func `a task that is cancelled before its write begins writes nothing`() async throws {
        let held = await Held(database)
        let write = Task {
            try await database.write { try $0.save(Document(id: "cancelled"), in: collection) }
        }
        write.cancel()
        // It ends although the database is still busy.
        await #expect(throws: CancellationError.self) { try await write.value }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await database.read { try $0.count(in: collection) }
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        try await held.end()
        try await database.write { try $0.save(Document(id: "next"), in: collection) }
        #expect(collection.count == 1)
    }

    @Test func `a write that has begun is kept though its task is cancelled, and knows of it`() async throws {
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let goOn = DispatchSemaphore(value: 0)
        let write = Task {
            try await database.write { transaction in
                begin.yield()
                goOn.wait()
                #expect(Task.isCancelled)
                try transaction.save(Document(id: "kept"), in: collection)
            }
        }
        for await _ in begun { break }
        write.cancel()
        goOn.signal()
        try await write.value
        #expect(collection.count == 1)
    }

    @TaskLocal private static var traveller = "nobody"

    @Test func `the closure runs within the calling task`() async throws {
        let seen = try await Self.$traveller.withValue("ana") {
            [
                try await database.read { _ in Self.traveller },
                try await database.write { _ in Self.traveller },
            ]
        }
        #expect(seen == ["ana", "ana"])
    }

    @Test func `a write that waits until its deadline gets busy, and the others go on waiting`() async throws
    {
        var config = scratch.config
        config.busyTimeout = .milliseconds(50)
        let hasty = try Database(name: "trips", config: config)
        let held = await Held(database)
        let patient = Task {
            try await database.write { try $0.save(Document(id: "patient"), in: collection) }
        }
        await expectError(.busy) { try await hasty.write { _ in } }
        await expectError(.busy) { try await hasty.write { _ in } }
        // Reading waits for no writer.
        #expect(try await hasty.read { try $0.count(in: collection) } == 0)
        config.busyTimeout = .zero
        let impatient = try Database(name: "trips", config: config)
        await expectError(.busy) { try await impatient.write { _ in } }
        try await held.end()
        _ = try await patient.value
        try await hasty.write { _ in }
        #expect(collection.count == 1)
    }

    @Test func `a fifth long read gets busy at its deadline`() async throws {
        var config = scratch.config
        config.busyTimeout = .milliseconds(50)
        let hasty = try Database(name: "trips", config: config)
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let goOn = DispatchSemaphore(value: 0)
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    try await database.read { _ in
                        begin.yield()
                        goOn.wait()
                    }
                }
            }
            var reading = 0
            for await _ in begun {
                reading += 1
                if reading == 4 { break }
            }
            await expectError(.busy) { try await hasty.read { _ in } }
            // Single documents are read and saved all the same.
            try collection.save(Document(id: "a"))
            #expect(try collection.document(id: "a") != nil)
            for _ in 0..<4 { goOn.signal() }
            try await group.waitForAll()
        }
        try await hasty.read { _ in }
    }

    @Test func `a write that waits for a database that closes is told so`() async throws {
        let held = await Held(database)
        let late = Task { try await database.write { try $0.save(Document(id: "late"), in: collection) } }
        let closing = Task { try await database.close() }
        try await held.end()
        try await closing.value
        // It came before the close or after it.
        do { _ = try await late.value } catch let error as LoveseatError { #expect(error.code == .notOpen) }
        await expectError(.notOpen) { try await database.write { _ in } }
    }
}
