import GRDB
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Replication while another program holds a database's file for longer than `busyTimeout`.
struct LockedFileTests {
    private let scratch: Scratch
    private let near: LoveseatCore.Database
    private let far: LoveseatCore.Database
    private let here: LoveseatCore.Collection
    private let there: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        var config = scratch.config
        config.busyTimeout = .milliseconds(50)
        near = try LoveseatCore.Database(name: "near", config: config)
        far = try LoveseatCore.Database(name: "far", config: config)
        here = try near.defaultCollection()
        there = try far.defaultCollection()
    }

    /// The other program, which can write until it lets go.
    private final class Lock {
        private let queue: DatabaseQueue

        init(_ database: LoveseatCore.Database) throws {
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let path = "\(try #require(database.path))/db.sqlite"
            queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        }

        func release() throws { try queue.writeWithoutTransaction { try $0.execute(sql: "COMMIT") } }
    }

    private func replicator(isContinuous: Bool, maxAttempts: UInt? = nil) -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: here)],
            target: DatabaseEndpoint(database: far)
        )
        configuration.continuous = isContinuous
        if let maxAttempts { configuration.maxAttempts = maxAttempts }
        configuration.maxAttemptWaitTime = 1
        return Replicator(configuration)
    }

    private func firstError(of replicator: Replicator) async -> Replicator.Status? {
        for await status in replicator.statuses where status.error != nil { return status }
        return nil
    }

    @Test(arguments: [false, true])
    func `a continuous replicator goes offline while its file is locked, and goes on afterwards`(
        _ knowsPeer: Bool
    ) async throws {
        if knowsPeer {
            let first = replicator(isContinuous: false)
            first.start()
            #expect(await first.waitUntilStopped().error == nil)
        }
        try there.save(Document(id: "theirs"))
        let lock = try Lock(near)
        let replicator = replicator(isContinuous: true)
        let statuses = replicator.statuses
        replicator.start()
        let status = await firstError(of: replicator)
        #expect(status?.activity == .offline)
        #expect(status?.error?.code == .busy)
        let message = status?.error?.message ?? ""
        #expect(message.contains("\"near\""), "\(message)")
        #expect(message.contains("another program"), "\(message)")
        try lock.release()
        for await status in statuses where status.activity == .idle { break }
        #expect(try here.document(id: "theirs") != nil)
        replicator.stop()
        _ = await replicator.waitUntilStopped()
    }

    @Test func `a replicator of one pass tries as often as it may, then says who holds the file`()
        async throws
    {
        try there.save(Document(id: "theirs"))
        let lock = try Lock(near)
        let patient = replicator(isContinuous: false)
        let impatient = replicator(isContinuous: false, maxAttempts: 2)
        impatient.start()
        #expect(await impatient.waitUntilStopped().error?.code == .busy)
        patient.start()
        #expect(await firstError(of: patient)?.activity == .offline)
        try lock.release()
        #expect(await patient.waitUntilStopped().error == nil)
        #expect(try here.document(id: "theirs") != nil)
    }

    @Test func `a peer whose file is locked gets what is pushed to it later`() async throws {
        try here.save(Document(id: "ours"))
        let lock = try Lock(far)
        let replicator = replicator(isContinuous: false)
        replicator.start()
        let status = await firstError(of: replicator)
        #expect(status?.activity == .offline)
        #expect(
            status?.error?.message.contains("another program") == true,
            "\(String(describing: status?.error))"
        )
        try lock.release()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(try there.document(id: "ours") != nil)
    }

    @Test func `messages name the database and the call`() throws {
        func message(_ body: () throws -> Void) -> String {
            do { try body() } catch { return (error as? LoveseatError)?.message ?? "" }
            return ""
        }
        let lock = try Lock(near)
        for (call, body) in [
            ("save", { try here.save(Document(id: "a")) }), ("write", { try near.write { _ in } }),
            ("createCollection", { _ = try near.createCollection(name: "a") }),
        ] as [(String, () throws -> Void)] {
            #expect(message(body).contains("database \"near\" is too busy for `\(call)`"), "\(message(body))")
        }
        try lock.release()
        try near.write { _ in
            #expect(message { _ = try here.document(id: "a") }.contains("`document`"))
            #expect(message { try here.save(Document(id: "a")) }.contains("`save`"))
            #expect(
                message { try near.close() }.contains(
                    "`close` was called inside a transaction of database \"near\""
                )
            )
            let waited = message {
                try Database(name: "near", config: near.config).write { _ in }
            }
            #expect(waited.contains("`write`"), "\(waited)")
        }
    }
}
