import LoveseatCore
package import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import Synchronization

/// Counts and lists the documents that are pending at the connected peers.
extension PeerMonitor {
    /// How long a report waits for peers that are slow to count.
    private static let patience = Duration.milliseconds(300)
    /// How many changes that a connection has not looked at yet are counted.
    private static let maximumUnread = 100_000
    /// How many of them are looked at for a list.
    private static let maximumListed = 10_000

    /// The documents that are on their way over a connection; nil if it is not known, or cannot tell.
    private func transfers(over key: String, listing limit: Int, unread: Int) async -> PendingTransfers? {
        let (listener, replicator) = observed.withLock { ($0.listener, $0.replicators[key]) }
        if let replicator { return await replicator.pending(listing: limit, unread: unread) }
        guard let number = PeerSighting.number(of: key) else { return nil }
        return await listener?.pending(of: number, listing: limit, unread: unread)
    }

    /// Counts for every connection. One that takes longer is counted for the next report.
    func countPending() async {
        let counts = table.withLock { $0.keys }.map { key in Task { await count(key) } }
        let (end, signal) = AsyncStream<Void>.makeStream()
        let all = Task {
            for count in counts { await count.value }
            signal.finish()
        }
        let timer = Task {
            // The sleep fails when all are counted in time.
            try? await Task.sleep(for: Self.patience)
            signal.finish()
        }
        for await _ in end {}
        timer.cancel()
        all.cancel()
    }

    private func count(_ key: String) async {
        // The count for an earlier report has not ended.
        guard observed.withLock({ $0.counting.insert(key).inserted }) else { return }
        defer { observed.withLock { _ = $0.counting.remove(key) } }
        guard let transfers = await transfers(over: key, listing: 0, unread: 0) else {
            return table.withLock { $0.notePending(nil, on: key, at: Self.now) }
        }
        var outgoing = transfers.outgoing
        if !transfers.unread.isEmpty {
            let database = database
            // A database that is closing cannot be read: then only what is on its way is counted.
            let unread = try? await Reading.run {
                try transfers.unread.reduce(0) {
                    try $0
                        + PendingChanges(database).changeCount(
                            of: $1.key,
                            after: $1.value,
                            limit: Self.maximumUnread
                        )
                }
            }
            outgoing += unread ?? 0
        }
        let pending = ConnectionTable.Pending(outgoing: outgoing, incoming: transfers.incoming)
        table.withLock { $0.notePending(pending, on: key, at: Self.now) }
    }

    /// The documents that are pending at a connected peer, with the reasons, as `/api/pending` has them.
    ///
    /// - Throws: `LoveseatError`: `notFound` if there is no such connection.
    package func pending(over key: String) async throws -> JSONValue {
        guard let failures = table.withLock({ $0.failures(on: key) }) else {
            throw LoveseatError(.notFound, "the peer is not connected any more")
        }
        var list = PendingList()
        if let replicator = observed.withLock({ $0.replicators[key] }) {
            // The database also knows the changes that the session has not looked at.
            if var transfers = await replicator.pending(listing: Self.maximumListed, unread: 0) {
                transfers.unread = [:]
                list.add(transfers)
            }
            list = try await Reading.run { [list] in
                var list = list
                try replicator.forEachPending { list.add($0) }
                return list
            }
        } else if let transfers = await transfers(
            over: key,
            listing: Self.maximumListed,
            unread: Self.maximumListed
        ) {
            list.add(transfers)
            list.add(failures)
        } else {
            throw LoveseatError(
                .unsupported,
                "what is pending at this peer is not known: over CouchDB's wire, only the client knows its place"
            )
        }
        var json = list.json
        json["peer"] = .string(key)
        return json
    }
}
