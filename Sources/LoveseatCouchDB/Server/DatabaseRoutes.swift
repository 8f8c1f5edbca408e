import HTTPTypes
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import Synchronization

/// Databases as a whole (protocol/couchdb.md §4).
struct DatabaseResource: Resource {
    let server: CouchDBServer

    func answer(_ name: String, _ exchange: Exchange) async throws -> Reply {
        switch exchange.method {
        case "PUT":
            try await create(name)
            return .json(201, ["ok": true], headers: [("Location", exchange.location([name]))])
        case "DELETE":
            let entry = try server.databases.entry(name)
            let isGuarded =
                exchange.query.has("rev") || exchange.header("If-Match") != nil
                || (exchange.headers[.contentLength].flatMap { Int($0) } ?? 0) > 0
            guard !isGuarded else {
                throw CouchDBError.badRequest(
                    "You tried to DELETE a database with a ?rev= parameter. Did you mean to DELETE a document instead?"
                )
            }
            try await server.databases.delete(entry.name)
            return .ok
        case "POST":
            let entry = try server.entry(name, for: exchange)
            return try await DocumentResource(server).createDocument(in: entry, exchange)
        default: return .json(200, try info(of: server.entry(name, for: exchange)))
        }
    }

    /// - Throws: `file_exists`; `forbidden` if clients may not create databases; an error for a name that no database can have.
    func create(_ name: String) async throws {
        try await server.databases.create(name)
        let entry = try server.databases.entry(name)
        try await entry.store.writeFromTask(within: nil) { try $0.setRevisionLimit(1_000) }
    }

    func info(of entry: Databases.Entry) throws -> JSONValue {
        let (count, deleted) = try server.caches.visibleCounts.counts(of: entry)
        let last = entry.store.lastSequence(entry.handle)
        return [
            "db_name": .string(entry.name), "doc_count": JSONValue(count),
            "doc_del_count": JSONValue(deleted),
            "update_seq": entry.sequence(last), "purge_seq": 0,
            "compact_running": .bool(server.compactions.withLock { $0 > 0 }), "disk_format_version": 8,
            "instance_start_time": .string(entry.startTime),
            "sizes": try server.caches.visibleCounts.sizes(of: entry), "props": [:],
            "cluster": ["q": 1, "n": 1, "w": 1, "r": 1],
        ]
    }
}

extension Databases.Entry {
    /// The fixed text by which replicators see that a database was not made anew.
    var startTime: String { "\(handle.number)" }
}
