import HummingbirdCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_changes` (protocol/couchdb.md §5).
struct ChangesResource: Resource {
    let server: CouchDBServer

    func changes(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        var body: JSONElement?
        if exchange.method == "POST" {
            try Self.requireJSON(exchange)
            body = try await json(exchange, isNeeded: false)
            if let body, body.kind != .object {
                throw CouchDBError.badRequest("Request body must be a JSON object")
            }
        }
        let request = try await ChangesRequest(exchange, body, entry) { id in
            guard let (branches, _) = try await self.branches(of: id, in: entry, for: exchange),
                !branches.winner.isDeleted
            else {
                return nil
            }
            return branches.winner.body.map { JSONElement($0) }
        }
        let feed = ChangesFeed(request: request, entry: entry, resource: self, exchange: exchange)
        // Other readers of a feed want the winners alone.
        let replicates = request.allLeaves && exchange.method != "HEAD"
        let clients = server.clients
        if replicates { clients.note(.pull, entry, exchange, isContinuous: request.feed != .normal) }
        func noted(_ write: @escaping Reply.Stream) -> Reply {
            guard replicates else { return .stream { try await write(&$0) } }
            return .stream { writer in
                clients.noteFeed(entry, exchange, isOpen: true)
                defer { clients.noteFeed(entry, exchange, isOpen: false) }
                try await write(&writer)
            }
        }
        switch request.feed {
        case .normal: return .stream { try await feed.writeAll(to: &$0) }
        case .longpoll: return noted { try await feed.writeLongpoll(to: &$0, exchange.channel) }
        case .continuous:
            return noted { try await feed.writeContinuous(to: &$0, exchange.channel) }
        case .eventsource:
            return .stream(type: "text/event-stream", headers: [("Cache-Control", "no-cache")]) {
                try await feed.writeContinuous(to: &$0, exchange.channel)
            }
        }
    }
}
