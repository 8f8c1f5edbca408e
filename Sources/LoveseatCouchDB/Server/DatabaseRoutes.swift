import Dispatch
import HTTPTypes
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import Synchronization

/// Databases as a whole (protocol/couchdb.md §4).
extension CouchDBServer {
    func databaseRoute(_ name: String, _ exchange: Exchange) async throws -> Reply {
        switch exchange.method {
        case "PUT":
            try await createDatabase(name)
            return .json(201, ["ok": true], headers: [("Location", exchange.location([name]))])
        case "DELETE":
            let entry = try databases.entry(name)
            let isGuarded =
                exchange.query.has("rev") || exchange.header("If-Match") != nil
                || (exchange.headers[.contentLength].flatMap { Int($0) } ?? 0) > 0
            guard !isGuarded else {
                throw CouchDBError.badRequest(
                    "You tried to DELETE a database with a ?rev= parameter. Did you mean to DELETE a document instead?"
                )
            }
            let databases = databases
            try await Self.blocking { try databases.delete(entry.name) }
            return .ok
        case "POST": return try await createDocument(in: try entry(name, for: exchange), exchange)
        default: return .json(200, try info(of: entry(name, for: exchange)))
        }
    }

    /// - Throws: `file_exists`; `forbidden` if clients may not create databases; an error for a name that no database can have.
    func createDatabase(_ name: String) async throws {
        let databases = databases
        try await Self.blocking { try databases.create(name) }
        let entry = try databases.entry(name)
        try await entry.store.writeFromTask(within: nil) { try $0.setRevisionLimit(1_000) }
    }

    /// Runs a call that may block its thread. Tasks share few threads: if all of them waited for the right to write, no writer could go on.
    private static func blocking(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// The fixed text by which replicators see that a database was not made anew.
    func startTime(_ entry: Databases.Entry) -> String { "\(entry.handle.number)" }

    func info(of entry: Databases.Entry) throws -> JSONValue {
        let (count, deleted) = try counts(of: entry)
        let last = entry.store.lastSequence(entry.handle)
        return [
            "db_name": .string(entry.name), "doc_count": JSONValue(count),
            "doc_del_count": JSONValue(deleted),
            "update_seq": entry.sequence(last), "purge_seq": 0,
            "compact_running": .bool(compactions.withLock { $0 > 0 }), "disk_format_version": 8,
            "instance_start_time": .string(startTime(entry)),
            "sizes": ["file": 0, "external": 0, "active": 0], "props": [:],
            "cluster": ["q": 1, "n": 1, "w": 1, "r": 1],
        ]
    }
}
