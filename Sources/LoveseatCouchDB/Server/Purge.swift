import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_purge`.
struct PurgeResource: Resource {
    let server: CouchDBServer

    func purge(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        guard let body = try await json(exchange), body.kind == .object else {
            throw CouchDBError.badRequest("Request body must be a JSON object")
        }
        guard body.count <= 100 else {
            throw CouchDBError.badRequest("Exceeded maximum number of documents.")
        }
        let wanted = try RevisionsResource.revisionLists(body)
        let purged = try await entry.store.writeFromTask(within: nil) { transaction in
            try wanted.map { id, revisions in
                (id, try transaction.purgeBranches(revisions, of: id, in: entry.handle))
            }
        }
        var result: JSONValue = [:]
        for (id, revisions) in purged { result[id] = .array(revisions.map { .string($0.text) }) }
        return .json(201, ["purge_seq": nil, "purged": result])
    }
}
