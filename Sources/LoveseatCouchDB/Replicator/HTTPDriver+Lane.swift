import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

extension HTTPDriver {
    /// A machine that the driver runs.
    final class Running<Machine: RequestMachine> {
        var machine: Machine

        init(_ machine: Machine) { self.machine = machine }
    }

    /// The machines of one collection.
    final class Lane {
        let name: CollectionName
        let handle: CollectionHandle
        let remote: RemoteDatabase
        let checkpointID: String
        var checkpoints: CheckpointMachine
        let push: Running<PushMachine>
        let pull: Running<PullMachine>
        /// Whether resolvers made changes, which are pushed after the pull.
        var hasResolved = false

        init(
            _ index: Int,
            _ work: ReplicationRequest.Work,
            replica: any Replica,
            remote: RemoteDatabase,
            endpoint: CouchDBEndpoint,
            heartbeat: Int
        ) throws(LoveseatError) {
            let binding = work.plan.collections[index]
            guard binding.channels.isEmpty else {
                throw LoveseatError(
                    .invalidParameter,
                    "a CouchDB has no channels: use a selector, a filter or document IDs"
                )
            }
            (name, handle) = (binding.name, work.observed[index])
            self.remote = remote
            checkpointID = RemoteRequest.checkpointName(binding.checkpointID)
            let rules = index < work.replicas.rules.count ? work.replicas.rules[index] : CollectionRules()
            let documentIDs = binding.documentIDs.map { DocumentSet($0) }
            var selection = try endpoint.remoteSelection
            if let ids = binding.documentIDs, case .all = selection { selection = .documents(ids) }
            let changes = LocalChanges(
                work.store,
                handle,
                rules,
                selector: try endpoint.localSelector,
                documentIDs: documentIDs,
                nowMilliseconds: work.replicas.nowMilliseconds
            )
            checkpoints = CheckpointMachine(replica, work.plan)
            push = Running(PushMachine(changes, replica, collection: index))
            pull = Running(
                PullMachine(
                    PulledDocuments(work.store, handle, rules),
                    replica,
                    collection: index,
                    selection: selection,
                    documentIDs: documentIDs,
                    heartbeat: heartbeat,
                    work.plan
                )
            )
        }

        /// Begins where the checkpoint is.
        func begin() {
            push.machine.begin(after: checkpoints.start.checkpoint.completed)
            pull.machine.begin(at: checkpoints.start)
        }

        /// How far both directions are.
        var progress: RemoteCheckpoint {
            var progress = pull.machine.progress
            progress.checkpoint.completed = push.machine.completed
            return progress
        }
    }
}
