import Foundation
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

extension CouchDBServer {
    /// Finds what a path names, and answers.
    func route(_ exchange: Exchange) async throws -> Reply {
        guard let first = exchange.path.first else { return try root(exchange) }
        if first.beginsExactly(with: "_") { return try await serverRoute(first, exchange) }
        try requireAccess(exchange)
        if exchange.path.count == 1 { return try await databaseRoute(first, exchange) }
        let entry = try entry(first, for: exchange)
        var rest = Array(exchange.path.dropFirst())
        let name = rest.removeFirst()
        switch name {
        case "_design" where !rest.isEmpty, "_local" where !rest.isEmpty:
            return try await documentRoute("\(name)/\(rest.removeFirst())", rest, entry, exchange)
        case _
        where name.beginsExactly(with: "_") && !name.beginsExactly(with: "_design/")
            && !name.beginsExactly(with: "_local/"):
            return try await databaseEndpoint(name, rest, entry, exchange)
        default: return try await documentRoute(name, rest, entry, exchange)
        }
    }

    /// The replications that a client may see: with an access policy, its own.
    private func tasks(for exchange: Exchange) -> JSONValue {
        let all = databases.database.replicationTasks
        let shown =
            settings.policy == nil
            ? all : all.filter { $0.user != nil && $0.user.isExactly(exchange.peer.name) }
        return .array(shown.map { ReplicatingClients.json($0) })
    }

    private func serverRoute(_ name: String, _ exchange: Exchange) async throws -> Reply {
        guard exchange.path.count == 1 || ["_scheduler"].contains(name) else { throw CouchDBError.missing }
        switch name {
        case "_up":
            try exchange.allow("GET,HEAD")
            return .json(200, ["status": "ok", "seeds": [:]])
        case "_session": return try await session(exchange)
        case "_all_dbs": return try allDatabases(exchange)
        case "_dbs_info": return try await databaseInfos(exchange)
        case "_uuids": return try uuids(exchange)
        case "_active_tasks":
            try exchange.allow("GET,HEAD")
            return .json(200, tasks(for: exchange))
        case "_membership":
            try exchange.allow("GET,HEAD")
            return .json(200, ["all_nodes": ["loveseat@127.0.0.1"], "cluster_nodes": ["loveseat@127.0.0.1"]])
        case "_scheduler":
            return .json(200, ["total_rows": 0, "offset": 0, "jobs": [], "docs": []])
        case "_replicate": return try await replicate(exchange)
        default:
            if exchange.isRead { throw CouchDBError.noDatabase }
            throw CouchDBError(
                400,
                "illegal_database_name",
                "Name: '\(name)'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter."
            )
        }
    }

    /// Lets through what a read-only or write-only listener allows.
    private func requireAccess(_ exchange: Exchange) throws(CouchDBError) {
        let second = exchange.path.count > 1 ? exchange.path[1] : ""
        try requireOwner(exchange)
        if settings.isWriteOnly { try requireWrite(second, exchange) }
        if !settings.isReadOnly || exchange.isRead { return }
        if second == "_local" || second.beginsExactly(with: "_local/"), exchange.method == "PUT" { return }
        let reads: Set = [
            "_all_docs", "_changes", "_revs_diff", "_bulk_get", "_find", "_explain", "_missing_revs",
            "_ensure_full_commit", "_design_docs", "_local_docs",
        ]
        guard exchange.method == "POST", reads.contains(second) else {
            throw .forbidden("this listener is read-only")
        }
    }

    /// Lets through what a client needs that pushes.
    private func requireWrite(_ second: String, _ exchange: Exchange) throws(CouchDBError) {
        let isLocal = second == "_local" || second.beginsExactly(with: "_local/")
        let posts: Set = ["", "_bulk_docs", "_revs_diff", "_missing_revs", "_ensure_full_commit"]
        let isAllowed =
            switch exchange.method {
            case "GET", "HEAD": second.isEmpty || isLocal
            case "POST": posts.contains(second)
            case "PUT", "DELETE":
                !second.isEmpty
                    && (!second.beginsExactly(with: "_") || second.hasPrefix("_design") || isLocal)
            default: false
            }
        guard isAllowed else { throw .forbidden("this listener is write-only") }
    }

    private func root(_ exchange: Exchange) throws -> Reply {
        try exchange.allow("GET,HEAD")
        return .json(
            200,
            [
                "couchdb": "Welcome", "version": .string(Self.version), "uuid": .string(uuid), "features": [],
                "vendor": ["name": .string(Self.product)],
            ]
        )
    }

    private func allDatabases(_ exchange: Exchange) throws -> Reply {
        try exchange.allow("GET,HEAD")
        var names = try names(for: exchange)
        let query = exchange.query
        if try query.flag("descending") ?? false { names.reverse() }
        let isDescending = try query.flag("descending") ?? false
        if let start = try query.json("startkey", "start_key")?.string {
            names = names.filter { isDescending ? $0 <= start : $0 >= start }
        }
        if let end = try query.json("endkey", "end_key")?.string {
            names = names.filter { isDescending ? $0 >= end : $0 <= end }
        }
        names = Array(names.dropFirst(try query.count("skip") ?? 0))
        if let limit = try query.count("limit") { names = Array(names.prefix(limit)) }
        return .json(200, .array(names.map { .string($0) }))
    }

    private func databaseInfos(_ exchange: Exchange) async throws -> Reply {
        try exchange.allow("GET,HEAD,POST")
        var names = try names(for: exchange)
        if exchange.method == "POST" {
            guard let keys = try await json(exchange)?["keys"], keys.kind == .array else {
                throw CouchDBError.badRequest("`keys` member must exist.")
            }
            guard keys.count <= 100 else {
                throw CouchDBError.badRequest("`keys` array length must not exceed 100")
            }
            names = keys.items.map { $0.string ?? "" }
        }
        let infos = try names.map { name -> JSONValue in
            do {
                let info = try info(of: entry(name, for: exchange))
                return ["key": .string(name), "info": info]
            } catch {
                let error = Self.error(error)
                // A database that cannot be read is not missing.
                guard error.status < 500 else { throw error }
                return ["key": .string(name), "error": "not_found"]
            }
        }
        return .json(200, .array(infos))
    }

    private func uuids(_ exchange: Exchange) throws -> Reply {
        try exchange.allow("GET,HEAD")
        let text = exchange.query["count"] ?? "1"
        guard let count = Int(text), count >= 0 else {
            throw CouchDBError.badRequest("count must be a positive integer")
        }
        guard count <= 1_000 else { throw CouchDBError.badRequest("count parameter too large") }
        let all = (0..<count).map { _ in JSONValue.string(Self.newUUID()) }
        return .json(
            200,
            ["uuids": .array(all)],
            headers: [
                ("Pragma", "no-cache"), ("Cache-Control", "must-revalidate, no-cache"),
                ("Expires", "Fri, 01 Jan 1990 00:00:00 GMT"), ("ETag", "\"\(Self.newUUID())\""),
            ]
        )
    }

    static func newUUID() -> String { UUID().uuidString.lowercased().replacing("-", with: "") }
}
