import Logging
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import Synchronization

/// Commits, compactions and limits of a database.
struct MaintenanceResource: Resource {
    let server: CouchDBServer

    func fullCommit(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        try await entry.store.writeFromTask(within: nil, durably: true) { _ in }
        return .json(201, ["ok": true, "instance_start_time": .string(entry.startTime)])
    }

    /// Drops the SQL indexes of Mango's indexes whose design documents are gone, and which would still take time with each write.
    func cleanUpViews(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        let described = Set(try entry.indexes().map { ExactText($0.sqlName) })
        let (collection, store) = (entry.collection, entry.store)
        let forgotten = try collection.indexes()
            .filter { $0.beginsExactly(with: "_design/") && !described.contains(ExactText($0)) }
        if !forgotten.isEmpty {
            try await store.writeFromTask(within: nil) { transaction in
                for name in forgotten { try transaction.indexTable.delete(name, in: collection.handle) }
            }
        }
        return .json(202, ["ok": true])
    }

    func compact(_ entry: Databases.Entry, _ exchange: Exchange) throws -> Reply {
        try Self.requireJSON(exchange)
        let accepted = Reply.json(202, ["ok": true])
        // One more than waits already would change nothing, and block a thread.
        if entry.store.isCompactionWaiting { return accepted }
        let database = server.databases.database
        server.compactions.withLock { $0 += 1 }
        Task(executorPreference: BlockingThreads.shared) { [self] in
            do throws(LoveseatError) { try database.performMaintenance(type: .compact) } catch {
                // A database that was closed meanwhile is not compacted, and its client has its answer already.
                if error.code != .notOpen {
                    LogDomain.listener.log(
                        .error,
                        "\(database.name): the compaction that a client asked for failed: \(error)"
                    )
                }
            }
            server.compactions.withLock { $0 -= 1 }
        }
        return accepted
    }

    func revisionsLimit(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        guard exchange.method == "PUT" else { return .json(200, JSONValue(entry.store.revisionLimit)) }
        guard let limit = try await json(exchange)?.int, limit >= 1 else {
            throw CouchDBError.badRequest("`_revs_limit` must be a positive integer")
        }
        try await entry.store.writeFromTask(within: nil) { try $0.setRevisionLimit(min(limit, 1_000)) }
        return .ok
    }
}
