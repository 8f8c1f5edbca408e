import LoveseatCore
import LoveseatModel

extension Replicator {
    /// The states of a replicator.
    public enum ActivityLevel: UInt8, Sendable {
        /// Not started, finished, stopped, or failed for good.
        case stopped = 0
        /// The peer cannot be reached, and the replicator will try again.
        case offline
        /// Connecting to the peer.
        case connecting
        /// Connected and waiting for changes. Everything known was replicated.
        case idle
        /// Transferring documents.
        case busy

        init(_ activity: EngineReplicator.ActivityLevel) {
            self =
                switch activity {
                case .stopped: .stopped
                case .offline: .offline
                case .connecting: .connecting
                case .idle: .idle
                case .busy: .busy
                }
        }
    }

    /// How much of the known work is done, in units that mean nothing else.
    public struct Progress: Sendable {
        /// The work that is done.
        public let completed: UInt64
        /// The work that is known so far.
        public let total: UInt64
    }

    /// A replicator's state, progress and error at one moment.
    public struct Status: Sendable {
        /// The state of the replicator.
        public let activity: ActivityLevel
        /// How much of the known work is done.
        public let progress: Progress
        /// Why the replicator stopped or went offline; nil otherwise, and after it finished or was stopped by the app.
        public let error: (any Error)?

        /// The status before the first start.
        static let initial = Status(
            activity: .stopped,
            progress: Progress(completed: 0, total: 0),
            error: nil
        )
    }
}

extension Replicator.Status {
    init(_ status: EngineReplicator.Status) {
        self.init(
            activity: Replicator.ActivityLevel(status.activity),
            progress: Replicator.Progress(
                completed: status.progress.completed,
                total: status.progress.total
            ),
            error: status.error.map { CBLError.converted($0) }
        )
    }
}

/// A change of a replicator's status.
public struct ReplicatorChange: Sendable {
    /// The replicator.
    public let replicator: Replicator
    /// Its new status.
    public let status: Replicator.Status
}
