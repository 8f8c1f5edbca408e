import Foundation
import LoveseatCore
import LoveseatModel
import Synchronization

/// A replicator from a start to the next stop. Each run has an engine of its own, which is observed before it starts.
final class ReplicatorRun: Sendable {
    private struct State {
        var statuses: Task<Void, Never>?
        var documents: Task<Void, Never>?
    }

    let engine: EngineReplicator
    /// The name of the run in logs.
    let id = UUID().uuidString
    private let previous: ReplicatorEnd?
    private let state = Mutex(State())

    /// `previous`: the run whose changes are reported first.
    init(_ config: LoveseatCore.ReplicatorConfiguration, after previous: ReplicatorRun?) {
        engine = EngineReplicator(config)
        self.previous = previous.map { ReplicatorEnd(task: $0.state.withLock { $0.statuses }) }
    }

    var isRunning: Bool { engine.status.activity != .stopped }

    /// Starts the engine, and calls a closure with its statuses, in order. The last one, stopped, comes after all events of documents.
    func start(reset: Bool, report: @escaping @Sendable (Replicator.Status) -> Void) {
        let statuses = engine.statuses
        let task = background { [self] in
            await previous?.wait()
            for await status in statuses {
                if status.activity == .stopped { await state.withLock { $0.documents }?.value }
                report(Replicator.Status(status))
            }
        }
        state.withLock { $0.statuses = task }
        engine.start(reset: reset)
    }

    /// Calls a closure with the events of documents from now on, in order, unless that was asked for before.
    func observeDocuments(_ report: @escaping @Sendable (LoveseatCore.DocumentReplication) -> Void) {
        state.withLock { state in
            if state.documents != nil { return }
            let replications = engine.documentReplications
            state.documents = background { [previous] in
                await previous?.wait()
                for await replication in replications { report(replication) }
            }
        }
    }
}

/// The end of a run's reports.
private struct ReplicatorEnd: Sendable {
    let task: Task<Void, Never>?

    func wait() async { await task?.value }
}
