import Foundation
import GRDB
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Databases that are opened and closed beside each other.
@Suite(.timeLimit(.minutes(1)))
struct SlowOpeningTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func `a database is opened and closed while another one waits for its file`() async throws {
        let (slow, other) = ("slow", "other")
        try await scratch.database(slow).close()
        // An earlier version, which has to be migrated, in a file that another program has locked.
        let path = "\(scratch.path)/\(slow).loveseat/db.sqlite"
        let version = try await DatabaseQueue(path: path).write { db in
            let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            try db.execute(sql: "PRAGMA user_version = \(version - 1)")
            return version
        }
        #expect(version > 1)
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let lock = try DatabaseQueue(path: path, configuration: configuration)
        try await lock.writeWithoutTransaction { try $0.execute(sql: "BEGIN EXCLUSIVE") }
        let scratch = scratch
        let opening = Task.detached { try? scratch.database(slow) }
        try await Task.sleep(for: .milliseconds(100))
        let start = ContinuousClock.now
        for _ in 0..<3 {
            let database = try scratch.database(other)
            try database.defaultCollection().save(Document(id: "a"))
            try await database.close()
        }
        #expect(start.duration(to: .now) < .seconds(5))
        try await lock.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        _ = await opening.value
    }

    @Test func `threads that open and close the same folders share one instance of each`() async throws {
        let scratch = scratch
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    for round in 0..<40 {
                        do {
                            let database = try scratch.database("db\((number + round) % 3)")
                            try database.defaultCollection().save(
                                Document(id: "d\(number)", ["n": JSONValue(round)])
                            )
                            try await database.close()
                        } catch { Issue.record("\(error)") }
                    }
                }
            }
        }
        for number in 0..<3 { #expect(try scratch.database("db\(number)").defaultCollection().count == 8) }
    }
}
