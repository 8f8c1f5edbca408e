import LoveseatCouchDBReplication
import LoveseatModel

extension CouchDBServer {
    /// Finds the resource that a path names, and answers as the table of endpoints says.
    func route(_ exchange: Exchange) async throws -> Reply {
        let target = try Endpoint.find(exchange)
        let endpoint = target.endpoint
        try require(endpoint.right(for: exchange.method), exchange)
        switch endpoint.handler {
        case .server(let answer):
            try endpoint.checkMethod(exchange.method)
            return try await answer(self, exchange)
        case .database(let answer):
            try endpoint.checkMethod(exchange.method)
            return try await answer(self, exchange.path[0], exchange)
        case .collection(let answer):
            let entry = try entry(for: target, exchange)
            return try await answer(self, entry, exchange)
        case .document(let answer):
            let entry = try entry(for: target, exchange)
            return try await answer(self, target.path, entry, exchange)
        }
    }

    /// The database of a path. Clients to whom it does not exist learn nothing about its resources.
    private func entry(for target: Endpoint.Target, _ exchange: Exchange) throws -> Databases.Entry {
        let entry = try entry(exchange.path[0], for: exchange)
        if target.isMissing {
            // Another name that begins so is taken for a document's.
            if exchange.method == "PUT" { try IncomingDocument.check(target.path.id) }
            throw CouchDBError.missing
        }
        try target.endpoint.validate(target.path)
        try target.endpoint.checkMethod(exchange.method)
        return entry
    }

    /// Lets through what the listener's settings allow its clients.
    private func require(_ right: EndpointRight, _ exchange: Exchange) throws(CouchDBError) {
        if right == .own, settings.policy != nil {
            // A replicator asks to create a database that may be there.
            let isThere =
                exchange.method == "PUT" && exchange.path.count == 1
                && (try? entry(exchange.path[0], for: exchange)) != nil
            guard isThere else { throw .forbidden("with an access policy, clients change documents only") }
        }
        if settings.isWriteOnly, !right.isForWriters { throw .forbidden("this listener is write-only") }
        if settings.isReadOnly, !right.isForReaders { throw .forbidden("this listener is read-only") }
    }
}
