public import LoveseatModel
package import LoveseatReplication

extension Replicator {
    /// What a replicator is doing.
    public enum ActivityLevel: UInt8, Hashable, Sendable {
        /// Nothing: not started, done, stopped, or failed for good.
        case stopped
        /// The peer cannot be reached; it will be tried again.
        case offline
        /// Connecting.
        case connecting
        /// Everything known is pulled, pushed, resolved and noted; waiting for changes.
        case idle
        /// Replicating.
        case busy
    }

    /// How far it is, in about bytes. Completed never exceeds total, and equals it when there is nothing to do.
    public struct Progress: Hashable, Sendable {
        /// Work done.
        public let completed: UInt64
        /// Work known so far.
        public let total: UInt64
        /// Documents pushed and pulled on this connection.
        public let documents: UInt64
        /// Documents pushed on this connection as the difference from what the peer had.
        public let deltasSent: UInt64
        /// Documents pulled on this connection as the difference from what was here.
        public let deltasReceived: UInt64
        /// Bytes that deltas kept from travelling, before compression.
        public let deltaBytesSaved: UInt64

        static let none = Progress(ReplicationProgress())

        init(_ progress: ReplicationProgress) {
            completed = progress.completed
            total = progress.total
            documents = progress.documents
            deltasSent = progress.deltas.sent
            deltasReceived = progress.deltas.received
            deltaBytesSaved = progress.deltas.bytesSaved
        }
    }

    /// A moment of a replicator's life.
    public struct Status: Hashable, Sendable {
        /// What it is doing.
        public let activity: ActivityLevel
        /// How far it is.
        public let progress: Progress
        /// Why it stopped or went offline; nil otherwise.
        public let error: LoveseatError?

        static let initial = Status(activity: .stopped, progress: .none, error: nil)

        /// A passive peer whose connection is being made.
        package static let connecting = Status(activity: .connecting, progress: .none, error: nil)

        /// A passive peer whose connection has ended.
        package func stopped(_ error: LoveseatError?) -> Status {
            Status(activity: .stopped, progress: progress, error: error)
        }
    }
}

extension Replicator.Status {
    /// A connected passive peer's.
    package init(isBusy: Bool, _ progress: ReplicationProgress) {
        self.init(activity: isBusy ? .busy : .idle, progress: Replicator.Progress(progress), error: nil)
    }
}

/// What is special about a replicated document.
public struct DocumentFlags: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: Int
    /// Makes flags of bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// It was deleted.
    public static let deleted = DocumentFlags(rawValue: 1)
    /// The peer took it away from us.
    public static let accessRemoved = DocumentFlags(rawValue: 2)
}

/// A document that was replicated, or could not be.
public struct ReplicatedDocument: Hashable, Sendable {
    /// The document.
    public let id: String
    /// The name of its collection's scope.
    public let scope: String
    /// The name of its collection.
    public let collection: String
    /// What is special about it.
    public let flags: DocumentFlags
    /// Why it could not be replicated; nil if it was.
    public let error: LoveseatError?
}

/// Documents that were replicated in one direction.
public struct DocumentReplication: Hashable, Sendable {
    /// Whether they were pushed; else they were pulled.
    public let isPush: Bool
    /// The documents.
    public let documents: [ReplicatedDocument]
    /// How many more there were before anybody looked.
    public internal(set) var missed = 0
}
