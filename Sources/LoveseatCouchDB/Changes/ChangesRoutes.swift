import HummingbirdCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_changes` (protocol/couchdb.md §5).
extension CouchDBServer {
    func changes(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try exchange.allow("GET,HEAD,POST")
        var body: JSONElement?
        if exchange.method == "POST" {
            body = try await json(exchange, isNeeded: false)
            if let body, body.kind != .object {
                throw CouchDBError.badRequest("Request body must be a JSON object")
            }
        }
        let request = try ChangesRequest(
            exchange,
            body,
            last: entry.store.lastSequence(entry.handle)
        ) { id in
            guard let (branches, _) = try self.branches(of: id, in: entry), !branches.winner.isDeleted else {
                return nil
            }
            return branches.winner.body.map { JSONElement($0) }
        }
        let feed = ChangesFeed(request: request, entry: entry)
        switch request.feed {
        case .normal: return .stream { try await feed.writeAll(to: &$0) }
        case .longpoll: return .stream { try await feed.writeLongpoll(to: &$0, exchange.channel) }
        case .continuous: return .stream { try await feed.writeContinuous(to: &$0, exchange.channel) }
        case .eventsource:
            return .stream(type: "text/event-stream", headers: [("Cache-Control", "no-cache")]) {
                try await feed.writeContinuous(to: &$0, exchange.channel)
            }
        }
    }
}
