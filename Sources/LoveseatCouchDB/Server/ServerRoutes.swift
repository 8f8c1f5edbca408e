import Foundation
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel

/// Resources of the server as a whole.
struct ServerResource: Resource {
    let server: CouchDBServer

    var welcome: Reply {
        .json(
            200,
            [
                "couchdb": "Welcome", "version": .string(CouchDBServer.version), "uuid": .string(server.uuid),
                "features": [],
                "vendor": ["name": .string(CouchDBServer.product)],
            ]
        )
    }

    var membership: Reply {
        .json(200, ["all_nodes": ["loveseat@127.0.0.1"], "cluster_nodes": ["loveseat@127.0.0.1"]])
    }

    /// The replications that a client may see: with an access policy, its own.
    func tasks(for exchange: Exchange) -> Reply {
        let all = server.databases.database.session.replicationTasks
        let shown =
            server.settings.policy == nil
            ? all : all.filter { $0.user != nil && $0.user.isExactly(exchange.peer.name) }
        return .json(200, .array(shown.map { ReplicatingClients.json($0) }))
    }

    func allDatabases(_ exchange: Exchange) throws -> Reply {
        var names = try server.names(for: exchange)
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

    func databaseInfos(_ exchange: Exchange) async throws -> Reply {
        var names = try server.names(for: exchange)
        if exchange.method == "POST" {
            guard let keys = try await json(exchange)?["keys"], keys.kind == .array else {
                throw CouchDBError.badRequest("`keys` member must exist.")
            }
            guard keys.count <= 100 else {
                throw CouchDBError.badRequest("`keys` array length must not exceed 100")
            }
            names = keys.items.map { $0.string ?? "" }
        }
        let databases = DatabaseResource(server)
        let infos = try names.map { name -> JSONValue in
            do {
                let info = try databases.info(of: server.entry(name, for: exchange))
                return ["key": .string(name), "info": info]
            } catch {
                let error = CouchDBServer.error(error)
                // A database that cannot be read is not missing.
                guard error.status < 500 else { throw error }
                return ["key": .string(name), "error": "not_found"]
            }
        }
        return .json(200, .array(infos))
    }

    func uuids(_ exchange: Exchange) throws -> Reply {
        let text = exchange.query["count"] ?? "1"
        guard let count = Int(text), count >= 0 else {
            throw CouchDBError.badRequest("count must be a positive integer")
        }
        guard count <= 1_000 else { throw CouchDBError.badRequest("count parameter too large") }
        let all = (0..<count).map { _ in JSONValue.string(CouchDBServer.newUUID()) }
        return .json(
            200,
            ["uuids": .array(all)],
            headers: [
                ("Pragma", "no-cache"), ("Cache-Control", "must-revalidate, no-cache"),
                ("Expires", "Fri, 01 Jan 1990 00:00:00 GMT"), ("ETag", "\"\(CouchDBServer.newUUID())\""),
            ]
        )
    }

}

extension CouchDBServer {
    static func newUUID() -> String { UUID().uuidString.lowercased().replacing("-", with: "") }
}
