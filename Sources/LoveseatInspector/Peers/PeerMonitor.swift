import Foundation
package import LoveseatCore
import LoveseatIdentity
package import LoveseatModel
package import LoveseatNetwork
import LoveseatReplication
import Synchronization

/// Observes the connections of this process, for the inspector and `loveseat top`.
package final class PeerMonitor: Sendable {
    let database: Database
    let table: Mutex<ConnectionTable>
    private let tasks = Mutex<[Task<Void, Never>]>([])
    let observed = Mutex(Observed())
    /// How often the peers of earlier connections are recorded, in seconds.
    private static let recordEvery = 10

    /// The listener and the replicators that are asked for pending documents.
    struct Observed {
        var listener: URLEndpointListener?
        /// By the keys of their connections.
        var replicators: [String: Replicator] = [:]
        /// The connections whose documents are being counted.
        var counting: Set<String> = []
    }

    /// `database`: open for writing.
    package init(_ database: Database) throws {
        self.database = database
        table = Mutex(ConnectionTable(past: try PeerRecords(database).connections()))
    }

    static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Begins to observe. Call it before the listener starts.
    package func observe(_ listener: URLEndpointListener) {
        let (changes, failures) = (listener.peerChanges, listener.failures)
        observed.withLock { $0.listener = listener }
        run { monitor in
            for await peer in changes {
                monitor.table.withLock { $0.update(PeerSighting(peer), at: Self.now) }
            }
        }
        run { monitor in
            for await failure in failures {
                monitor.note(
                    failure.documentID,
                    in: failure.collection?.fullName ?? "",
                    on: PeerSighting.key(failure.peer),
                    isPush: failure.isPush,
                    failure.error
                )
            }
        }
    }

    /// Begins to observe. Call it before the replicator starts.
    package func observe(_ replicator: Replicator) {
        let (statuses, documents) = (replicator.statuses, replicator.documentReplications)
        let key = "out-\(UInt(bitPattern: ObjectIdentifier(replicator).hashValue))"
        observed.withLock { $0.replicators[key] = replicator }
        let shared = Counts()
        run { monitor in
            for await status in statuses {
                let (sent, received) = shared.counts.withLock { $0 }
                var sighting = PeerSighting(status, of: replicator, key: key)
                (sighting.sent, sighting.received) = (sent, received)
                monitor.table.withLock { $0.update(sighting, at: Self.now) }
            }
        }
        run { monitor in
            for await batch in documents {
                let done = batch.documents.count { $0.error == nil } + batch.missed
                shared.counts.withLock {
                    if batch.isPush { $0.sent += UInt64(done) } else { $0.received += UInt64(done) }
                }
                for document in batch.documents {
                    guard let error = document.error else { continue }
                    monitor.note(
                        document.id,
                        in: "\(document.scope).\(document.collection)",
                        on: key,
                        isPush: batch.isPush,
                        error
                    )
                }
                var sighting = PeerSighting(replicator.status, of: replicator, key: key)
                guard sighting.activity != .stopped else { continue }
                (sighting.sent, sighting.received) = shared.counts.withLock { $0 }
                monitor.table.withLock { $0.update(sighting, at: Self.now) }
            }
        }
    }

    /// The documents of a replicator so far.
    private final class Counts: Sendable {
        let counts = Mutex((sent: UInt64(0), received: UInt64(0)))
    }

    /// Begins to count seconds, and to look for replications over CouchDB's wire, until ``stop()``.
    package func start() {
        run { monitor in
            var seconds = 0
            // The sleep fails after stop().
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                monitor.look()
                seconds += 1
                if seconds % Self.recordEvery == 0 { monitor.record() }
            }
        }
    }

    /// Ends the observation, and records the peers.
    package func stop() {
        for task in tasks.withLock({ $0 }) { task.cancel() }
        let now = Self.now
        table.withLock { $0.keep([], among: "", at: now) }
        record()
    }

    /// The peers, rates and the events after a number.
    package func report(after number: Int) async -> JSONValue {
        await countPending()
        let now = Self.now
        var report = table.withLock { $0.report(after: number, at: now) }
        report["process"] = JSONValue(Int(ProcessInfo.processInfo.processIdentifier))
        return report
    }

    private func look() {
        let now = Self.now
        let sightings = database.session.replicationTasks.compactMap {
            PeerSighting($0, database: database.name)
        }
        table.withLock { table in
            for sighting in sightings { table.update(sighting, at: now) }
            table.keep(Set(sightings.map(\.key)), among: PeerSighting.taskPrefix, at: now)
            table.endSecond(at: now)
        }
    }

    private func record() {
        // No peer has come or gone since the last record.
        guard let past = table.withLock({ $0.drainPastChange() }) else { return }
        // The record is for people: nothing depends on it.
        try? PeerRecords(database).record(past)
    }

    private func note(
        _ document: String,
        in collection: String,
        on key: String,
        isPush: Bool,
        _ error: LoveseatError
    ) {
        let isRefusal = error.isFinalRefusal
        table.withLock {
            $0.failed(
                document,
                in: collection,
                on: key,
                isPush: isPush,
                isRefusal: isRefusal,
                error.message,
                at: Self.now
            )
        }
    }

    private func run(_ body: @escaping @Sendable (PeerMonitor) async -> Void) {
        let task = Task { [weak self] in
            // The monitor was released before the task began.
            guard let self else { return }
            await body(self)
        }
        tasks.withLock { $0.append(task) }
    }
}

extension PeerSighting {
    /// The prefix of keys of replications over CouchDB's wire.
    static let taskPrefix = "couchdb-"

    static func key(_ number: Int) -> String { "in-\(number)" }

    /// The number in a key of a listener's connection.
    static func number(of key: String) -> Int? {
        key.hasPrefix("in-") ? Int(key.dropFirst(3)) : nil
    }

    fileprivate init(_ peer: ListenerPeer) {
        self.init(
            key: Self.key(peer.number),
            direction: .incoming,
            wire: "BLIP",
            address: peer.identity.address,
            activity: Activity(peer.status.activity)
        )
        let certificate = peer.identity.certificates.first
        name = peer.identity.name
        user = peer.identity.username
        self.certificate = certificate?.commonName
        fingerprint = certificate?.fingerprint
        completed = peer.status.progress.completed
        total = peer.status.progress.total
        sent = peer.documentsSent
        received = peer.documentsReceived
        error = peer.status.error.flatMap { $0.code == .webSocketGoingAway ? nil : $0.message }
    }

    fileprivate init(_ status: Replicator.Status, of replicator: Replicator, key: String) {
        let address =
            (replicator.config.target as? any PeerEndpoint)?.remoteName.withoutCredentials ?? "a peer"
        let isHTTP = address.hasPrefix("http://") || address.hasPrefix("https://")
        self.init(
            key: key,
            direction: .outgoing,
            wire: isHTTP ? "CouchDB" : "BLIP",
            address: address,
            activity: Activity(status.activity)
        )
        let certificate = replicator.serverCertificate
        self.certificate = certificate?.commonName
        fingerprint = certificate?.fingerprint
        completed = status.progress.completed
        total = status.progress.total
        error = status.error?.message
    }

    /// Nil for connections that are observed directly.
    fileprivate init?(_ task: ReplicationTask, database: String) {
        guard !task.id.hasPrefix("peer-"), !task.id.hasPrefix("replicator-") else { return nil }
        let isSource = task.source == database
        self.init(
            key: "\(Self.taskPrefix)\(task.id)",
            direction: task.isClient ? .incoming : .outgoing,
            wire: "CouchDB",
            address: isSource ? task.target : task.source,
            activity: task.position.map { $0.pending > 0 } ?? false ? .busy : .idle
        )
        user = task.user
        since = task.started.map { $0 * 1_000 }
        failures = task.writeFailures
        if isSource { sent = task.documentsWritten } else { received = task.documentsWritten }
    }
}

extension PeerSighting.Activity {
    fileprivate init(_ level: Replicator.ActivityLevel) {
        self =
            switch level {
            case .stopped: .stopped
            case .offline: .offline
            case .connecting: .connecting
            case .idle: .idle
            case .busy: .busy
            }
    }
}
