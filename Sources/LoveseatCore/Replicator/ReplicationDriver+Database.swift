private import Foundation
private import Logging
package import LoveseatBLIPReplication
package import LoveseatReplication
package import LoveseatStorage
private import Synchronization

extension ReplicationRuntime {
    private static let start = ContinuousClock.now

    /// The wall clock, a serial queue for each driver, and for everything else threads that an app cannot block.
    package static let system = ReplicationRuntime(
        clock: TimerClock(),
        executor: BlockingThreads.shared,
        beginsOnDrivers: true,
        makeDriverExecutor: { QueueExecutor(label: "loveseat.replication") },
        unixTime: { Int64(Date().timeIntervalSince1970 * 1_000) },
        uptime: { start.duration(to: .now) },
        spread: { .random(in: -1...1) },
        usesLibrariesOfMachine: true
    )
}

extension ReplicationDriver {
    /// Creates a driver that observes a database's commits.
    ///
    /// `observed`: the collections whose changes the session is told of.
    package init(
        session: sending ReplicationSession,
        store: DocumentStore,
        observed: [CollectionHandle],
        connection: PeerConnection,
        runtime: ReplicationRuntime,
        compressionLevel: Int,
        hooks: ReplicationHooks,
        omissions: Omissions = []
    ) {
        var hooks = hooks
        let (deltas, report) = (DeltaLog(), hooks.report)
        hooks.report = { event in
            deltas.log(event)
            report(event)
        }
        hooks.observe = { notify in
            let tokens = observed.map { collection in
                store.changes.subscribe(collection: collection.number) { notify($0.collection) }
            }
            return { for token in tokens { store.changes.unsubscribe(token) } }
        }
        self.init(
            session: session,
            channel: connection.channel,
            negotiated: connection.negotiated,
            runtime: runtime,
            compressionLevel: compressionLevel,
            spill: SpillFile(folder: store.blobs.folder),
            deflater: runtime.usesLibrariesOfMachine && compressionLevel == 1 ? ISALDeflater() : nil,
            checksum: runtime.usesLibrariesOfMachine ? ISALDeflater.checksum : nil,
            hooks: hooks,
            omissions: omissions
        )
    }
}

/// Logs when documents travel as deltas, on either side of a connection.
private final class DeltaLog: Sendable {
    private let last = Mutex(ReplicationProgress().deltas)

    func log(_ report: ReplicationReport) {
        // Only activity is reported with the number of deltas.
        guard case .activity(_, let progress) = report else { return }
        let before = last.withLock { last in
            defer { last = progress.deltas }
            return last
        }
        if before == progress.deltas { return }
        LogDomain.replicator.log(
            .debug,
            "deltas on this connection: \(progress.deltas.sent) sent, \(progress.deltas.received) received, \(progress.deltas.bytesSaved) bytes saved"
        )
    }
}
