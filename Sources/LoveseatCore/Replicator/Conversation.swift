private import Foundation
private import Logging
package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage
private import Synchronization

/// One connection's replication, active or passive, from its first message to its last.
package final class Conversation: Sendable {
    private let driver: ReplicationDriver
    private let store: DocumentStore
    private let collections: [CollectionHandle]
    private let changed = Mutex<Set<CollectionName>>([])

    /// `collections`: those whose changes the session wants to hear of.
    package init(
        session: ReplicationSession,
        replica: sending StoreReplica,
        store: DocumentStore,
        collections: [CollectionHandle],
        channel: any MessageChannel,
        compressionLevel: Int,
        resolve: @escaping @Sendable (ConflictNotice) async -> LoveseatError?,
        fetch: @escaping @Sendable (FetchNotice) async -> Bool = { _ in false },
        report: @escaping @Sendable (ReplicationReport) -> Void
    ) {
        self.store = store
        self.collections = collections
        let deltas = DeltaLog()
        driver = ReplicationDriver(
            session: session,
            store: replica,
            channel: channel,
            executor: QueueExecutor(label: "loveseat.replication"),
            compressionLevel: compressionLevel,
            spill: SpillFile(folder: store.blobs.folder),
            hooks: ReplicationDriver.Hooks(
                resolve: resolve,
                fetch: fetch,
                report: { event in
                    deltas.note(event)
                    report(event)
                },
                now: { Int64(Date().timeIntervalSince1970) }
            )
        )
    }

    /// Replicates until there is no more to do or the connection ends; returns why if that is an error.
    package func run(_ negotiated: ReplicationProtocol) async -> LoveseatError? {
        let tokens = collections.map { collection in
            store.changes.subscribe(collection: collection.number) { self.noteChange(in: $0.collection) }
        }
        defer { for token in tokens { store.changes.unsubscribe(token) } }
        return await driver.run(negotiated)
    }

    /// Ends it in good order, without waiting long for the peer.
    package func stop() async { await driver.stop() }

    /// What the peer may have changed.
    package func accessChanged() async { await driver.accessChanged() }

    /// Any number of commits until the driver gets to it are one message to it.
    private func noteChange(in collection: CollectionName) {
        let isFirst = changed.withLock { changed in
            defer { changed.insert(collection) }
            return changed.isEmpty
        }
        guard isFirst else { return }
        Task {
            let names = changed.withLock { changed in
                defer { changed = [] }
                return changed
            }
            await driver.localChange(names)
        }
    }
}

/// Logs when documents travel as deltas, on either side of a connection.
private final class DeltaLog: Sendable {
    private let last = Mutex(ReplicationProgress().deltas)

    func note(_ report: ReplicationReport) {
        guard case .activity(_, let progress) = report else { return }
        let before = last.withLock { last in
            defer { last = progress.deltas }
            return last
        }
        guard before != progress.deltas else { return }
        LogDomain.replicator.log(
            .debug,
            "deltas on this connection: \(progress.deltas.sent) sent, \(progress.deltas.received) received, \(progress.deltas.bytesSaved) bytes saved"
        )
    }
}
