import Dispatch
import HTTPTypes
import Logging
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import Synchronization

/// Databases as a whole (protocol/couchdb.md §4).
extension CouchDBServer {
    func databaseRoute(_ name: String, _ exchange: Exchange) async throws -> Reply {
        switch exchange.method {
        case "GET", "HEAD": return .json(200, try info(of: entry(name, for: exchange)))
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
        default: throw CouchDBError.methodNotAllowed("DELETE,GET,HEAD,POST")
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

    func databaseEndpoint(_ name: String, _ rest: [String], _ entry: Databases.Entry, _ exchange: Exchange)
        async throws -> Reply
    {
        switch name {
        case "_all_docs" where rest == ["queries"]: return try await allDocumentQueries(entry, exchange)
        case _ where !rest.isEmpty && name != "_index":
            if exchange.method == "PUT" { try IncomingDocument.check(name) }
            throw CouchDBError.missing
        case "_all_docs": return try await allDocuments(entry, exchange, range: .all)
        case "_design_docs": return try await allDocuments(entry, exchange, range: .design)
        case "_local_docs": return try await localDocuments(entry, exchange)
        case "_changes": return try await changes(entry, exchange)
        case "_bulk_docs": return try await bulkDocuments(entry, exchange)
        case "_bulk_get": return try await bulkGet(entry, exchange)
        case "_revs_diff", "_missing_revs": return try await revisionsDifference(name, entry, exchange)
        case "_ensure_full_commit":
            try exchange.allow("POST")
            try Self.requireJSON(exchange)
            try await entry.store.writeFromTask(within: nil, durably: true) { _ in }
            return .json(201, ["ok": true, "instance_start_time": .string(startTime(entry))])
        case "_compact", "_view_cleanup":
            try exchange.allow("POST")
            try Self.requireJSON(exchange)
            if name == "_compact" {
                let database = databases.database
                // One more than waits already would change nothing, and block a thread.
                if !entry.store.isCompactionWaiting {
                    compactions.withLock { $0 += 1 }
                    DispatchQueue.global().async { [self] in
                        do throws(LoveseatError) { try database.performMaintenance(type: .compact) } catch {
                            // A database that was closed meanwhile is not compacted, and its client has its answer already.
                            if error.code != .notOpen {
                                LogDomain.listener.log(
                                    .error,
                                    "\(database.name): the compaction that a client asked for failed: \(error)"
                                )
                            }
                        }
                        compactions.withLock { $0 -= 1 }
                    }
                }
            }
            return .json(202, ["ok": true])
        case "_security": return try await security(entry, exchange)
        case "_revs_limit": return try await revisionsLimit(entry, exchange)
        case "_purge": return try await purge(entry, exchange)
        case "_purged_infos_limit":
            try exchange.allow("GET,HEAD")
            return .json(200, 1_000)
        case "_temp_view":
            throw CouchDBError(410, "gone", "Temporary views are not supported in CouchDB")
        case "_find" where rest.isEmpty: return try await find(entry, exchange)
        case "_explain": return try await explain(entry, exchange)
        case "_index": return try await index(entry, rest, exchange)
        default:
            // Another name that begins so is taken for a document's.
            if exchange.method == "PUT" { try IncomingDocument.check(name) }
            throw CouchDBError.missing
        }
    }

    private func security(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try exchange.allow("PUT,GET")
        let key = "couchdb-security:\(entry.handle.number)"
        guard exchange.method == "PUT" else {
            let stored = try entry.store.readRows { try $0.localCheckpoint(key) }
            let empty: JSONValue = ["names": [], "roles": []]
            return .json(
                200,
                bytes: stored?.bytes ?? JSONText(canonical: ["admins": empty, "members": empty]).bytes
            )
        }
        guard let body = try await json(exchange), body.kind == .object else {
            throw CouchDBError.badRequest("Request body must be a JSON object")
        }
        for group in ["admins", "members"] {
            guard let element = body[group] else { continue }
            for list in ["names", "roles"] {
                guard let names = element[list] else { continue }
                guard names.kind == .array, names.items.allSatisfy({ $0.kind == .string }) else {
                    throw CouchDBError.badRequest("\(group).\(list) must be a JSON list of strings")
                }
            }
            guard element.kind == .object else {
                throw CouchDBError.badRequest("\(group) must be a JSON object")
            }
        }
        let text = JSONText(canonical: body)
        try await entry.store.writeFromTask(within: nil) { try $0.saveLocalCheckpoint(key, text) }
        return .ok
    }

    private func revisionsLimit(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try exchange.allow("PUT,GET")
        guard exchange.method == "PUT" else { return .json(200, JSONValue(entry.store.revisionLimit)) }
        guard let limit = try await json(exchange)?.int, limit >= 1 else {
            throw CouchDBError.badRequest("`_revs_limit` must be a positive integer")
        }
        try await entry.store.writeFromTask(within: nil) { try $0.setRevisionLimit(min(limit, 1_000)) }
        return .ok
    }

    private func purge(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try exchange.allow("POST")
        try Self.requireJSON(exchange)
        guard let body = try await json(exchange), body.kind == .object else {
            throw CouchDBError.badRequest("Request body must be a JSON object")
        }
        guard body.count <= 100 else {
            throw CouchDBError.badRequest("Exceeded maximum number of documents.")
        }
        var wanted: [(String, [RevisionID])] = []
        for (id, list) in body.members {
            guard list.kind == .array else { throw CouchDBError.badRequest("Invalid list of revisions") }
            var revisions: [RevisionID] = []
            for item in list.items {
                guard let text = item.string else { throw CouchDBError.invalidRevision }
                revisions.append(try RevisionText.parse(text))
            }
            wanted.append((id, revisions))
        }
        let todo = wanted
        let purged = try await entry.store.writeFromTask(within: nil) { transaction in
            try todo.map { id, revisions in
                (id, try transaction.purgeBranches(revisions, of: id, in: entry.handle))
            }
        }
        var result: JSONValue = [:]
        for (id, revisions) in purged { result[id] = .array(revisions.map { .string($0.text) }) }
        return .json(201, ["purge_seq": nil, "purged": result])
    }
}
