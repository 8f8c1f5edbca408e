import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Access policies: what a client may not read does not exist for it. The app's policy is asked outside transactions.
extension CouchDBServer {
    /// A collection, with the rights of the client.
    ///
    /// - Throws: `not_found` for a collection that does not exist for the client.
    func entry(_ name: String, for exchange: Exchange) throws -> Databases.Entry {
        var entry = try databases.entry(name)
        guard let policy = settings.policy else { return entry }
        let access = CollectionAccess(
            PeerAccess(peer: exchange.peer, policy: policy),
            store: entry.store,
            collection: entry.handle
        )
        guard access.mayRead else { throw CouchDBError.noDatabase }
        entry.access = access
        return entry
    }

    /// The names of the databases that exist for a client.
    func names(for exchange: Exchange) throws -> [String] {
        let names = try databases.names()
        guard settings.policy != nil else { return names }
        return names.filter { (try? entry($0, for: exchange)) != nil }
    }

    /// Refuses what concerns all clients, where each has rights of its own.
    func requireOwner(_ exchange: Exchange) throws(CouchDBError) {
        guard settings.policy != nil, !exchange.isRead, exchange.path.count > 0 else { return }
        let name = exchange.path.count > 1 ? exchange.path[1] : ""
        let isManaging =
            ["_purge", "_compact", "_view_cleanup", "_security", "_revs_limit"].contains(name)
            || (name.isEmpty && exchange.method != "POST")
        guard isManaging else { return }
        // A replicator asks to create a database that may be there.
        if exchange.method == "PUT", name.isEmpty, (try? entry(exchange.path[0], for: exchange)) != nil {
            return
        }
        throw .forbidden("with an access policy, clients change documents only")
    }
}

extension Databases.Entry {
    /// The branches of a document that the client may read; nil if the document does not exist for it. Called outside transactions.
    func branches(of record: DocumentRecord) throws -> DocumentBranches? {
        guard let access else { return try DocumentBranches(of: record) }
        return try access.branches(of: record)
    }

    /// The records of documents that exist for the client.
    func visible(_ records: [DocumentRecord]) throws -> [DocumentRecord] {
        guard let access else { return records }
        return try records.filter { try access.mayRead($0) }
    }

    /// Remembers what the client was sent.
    func grant(_ ids: [String]) async throws {
        if !ids.isEmpty { try await access?.grant(ids) }
    }

    private static let maximumAttempts = 10

    /// Writes documents, if the client may.
    ///
    /// - Parameters:
    ///   - changes: What the policy is asked about.
    ///   - body: Gets whether each change is allowed.
    /// - Returns: What `body` returns.
    /// - Throws: what `body` throws; `service_unavailable` if others keep changing the documents.
    func write<Value: Sendable>(
        _ changes: [CollectionAccess.Change],
        _ body: @Sendable (StoreWriteTransaction, [Bool]) throws -> Value
    ) async throws -> Value {
        guard let access else {
            return try await store.writeFromTask(within: nil) {
                try body($0, changes.map { _ in true })
            }
        }
        for _ in 0..<Self.maximumAttempts {
            let records = try store.readRows { view in
                try changes.map { try view.record($0.id, in: handle) }
            }
            let verdicts = try zip(changes, records).map { try access.mayWrite($0, over: $1) }
            let sequences = records.map { $0?.sequence }
            let written = try await store.writeFromTask(within: nil) { transaction -> Value? in
                // What was judged must be what is changed.
                for (change, sequence) in zip(changes, sequences) {
                    guard try transaction.record(change.id, in: handle)?.sequence == sequence else {
                        return nil
                    }
                }
                let value = try body(transaction, verdicts)
                let ids = zip(changes, verdicts).compactMap { $1 ? $0.id : nil }
                if !ids.isEmpty { try transaction.grant(ids, in: handle, to: access.peerName) }
                return value
            }
            if let written { return written }
        }
        throw CouchDBError(503, "service_unavailable", "the documents keep changing: try again")
    }

    /// Refuses a change that the client may not make, before its attachments are received.
    ///
    /// - Throws: `forbidden` if the client may not.
    func requireRight(to change: CollectionAccess.Change) throws {
        guard let access else { return }
        let record = try store.readRows { try $0.record(change.id, in: handle) }
        guard try access.mayWriteContent(change, over: record) else {
            throw CouchDBError.forbidden("you may not write \"\(change.id)\"")
        }
    }

    /// Writes one document.
    ///
    /// - Throws: `forbidden` if the client may not.
    func write<Value: Sendable>(
        _ change: CollectionAccess.Change,
        _ body: @Sendable (StoreWriteTransaction) throws -> Value
    ) async throws -> Value {
        try await write([change]) { transaction, verdicts in
            guard verdicts.first == true else {
                throw CouchDBError.forbidden("you may not write \"\(change.id)\"")
            }
            return try body(transaction)
        }
    }
}

extension PreparedDocument {
    /// What a policy is asked about.
    var change: CollectionAccess.Change {
        var change = CollectionAccess.Change(id: id, history: history, isDeleted: isDeleted, body: body)
        change.received = received
        for attachment in attachments { if case .stub = attachment { change.hasStubs = true } }
        return change
    }
}
