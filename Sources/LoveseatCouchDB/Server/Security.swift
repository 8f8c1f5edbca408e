import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_security`, which is kept for clients that ask for it, and gives no rights.
struct SecurityResource: Resource {
    let server: CouchDBServer

    func security(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
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
        try await entry.store.writeFromTask(within: nil) {
            try $0.checkpointTables.saveLocalCheckpoint(key, text)
        }
        return .ok
    }
}
