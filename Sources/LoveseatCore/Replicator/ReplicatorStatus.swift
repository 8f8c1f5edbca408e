public import LoveseatModel
package import LoveseatReplication

extension Replicator {
    /// The states of a replicator.
    public enum ActivityLevel: UInt8, Hashable, Sendable {
        /// Not started, finished, stopped, or failed with an error that retrying does not help.
        case stopped
        /// The peer cannot be reached, and the replicator will try again; or the replicator is suspended.
        case offline
        /// Connecting to the peer.
        case connecting
        /// Connected and waiting for changes. Everything known has been pulled, pushed, resolved and recorded.
        case idle
        /// Transferring documents.
        case busy
    }

    /// How much of the known work is done, in approximate bytes.
    ///
    /// `completed` never exceeds `total`, and equals it when there is nothing to do. `total` grows while the peer
    /// announces more documents, until `isTotalKnown`.
    public struct Progress: Hashable, Sendable {
        /// The work that is done, in approximate bytes.
        public let completed: UInt64
        /// The work that is known so far, in approximate bytes.
        public let total: UInt64
        /// Whether both sides have been compared, so that `total` grows only if there are new changes. It stays false over CouchDB's protocol.
        public let isTotalKnown: Bool
        /// The number of changes of either side that were compared over this connection.
        public let compared: UInt64
        /// The number of documents pushed and pulled over this connection.
        public let documents: UInt64
        /// The number of ``documents`` that were pushed.
        public let documentsPushed: UInt64
        /// The number of ``documents`` that were pulled.
        public var documentsPulled: UInt64 { documents.subtractingSaturated(documentsPushed) }
        /// The number of documents pushed over this connection as a difference from an earlier revision.
        public let deltasSent: UInt64
        /// The number of documents pulled over this connection as a difference from an earlier revision.
        public let deltasReceived: UInt64
        /// The number of bytes that deltas saved on this connection, before compression.
        public let deltaBytesSaved: UInt64

        static let none = Progress(ReplicationProgress())

        init(_ progress: ReplicationProgress) {
            completed = progress.completed
            total = progress.total
            isTotalKnown = progress.isTotalKnown
            compared = progress.compared
            documents = progress.documents
            documentsPushed = progress.documentsPushed
            deltasSent = progress.deltas.sent
            deltasReceived = progress.deltas.received
            deltaBytesSaved = progress.deltas.bytesSaved
        }
    }

    /// A replicator's state, progress and error at one moment.
    public struct Status: Hashable, Sendable {
        /// The state of the replicator.
        public let activity: ActivityLevel
        /// How much of the known work is done.
        public let progress: Progress
        /// Why the replicator stopped or went offline; nil otherwise, and after it finished or was stopped by the app.
        public let error: LoveseatError?
        /// Seconds from this status on until the peer is tried again; nil if it does not wait for a time.
        package var wait: Double?

        static let initial = Status(activity: .stopped, progress: .none, error: nil)

        /// The status of a passive peer whose connection is being opened.
        package static let connecting = Status(activity: .connecting, progress: .none, error: nil)

        /// The status of a passive peer whose connection has ended.
        package func stopped(_ error: LoveseatError?) -> Status {
            Status(activity: .stopped, progress: progress, error: error)
        }
    }
}

extension Replicator.Status {
    /// The status of a connected passive peer.
    package init(isBusy: Bool, _ progress: ReplicationProgress) {
        self.init(activity: isBusy ? .busy : .idle, progress: Replicator.Progress(progress), error: nil)
    }
}

/// Properties of a replicated revision.
public struct DocumentFlags: OptionSet, Hashable, Sendable {
    /// The flags as bits, with the numbers that Couchbase Lite uses.
    public let rawValue: Int
    /// Creates flags from bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// The revision deletes the document.
    public static let deleted = DocumentFlags(rawValue: 1)
    /// The user lost access to the document at the peer.
    public static let accessRemoved = DocumentFlags(rawValue: 2)
}

/// A document that was replicated, or that could not be replicated.
public struct ReplicatedDocument: Hashable, Sendable {
    /// The document's ID.
    public let id: String
    /// The name of its collection's scope.
    public let scope: String
    /// The name of its collection.
    public let collection: String
    /// Whether the document was deleted, or access to it was removed.
    public let flags: DocumentFlags
    /// Why the document could not be replicated; nil if it was.
    public let error: LoveseatError?
}

/// Documents that were replicated in one direction, or could not be.
public struct DocumentReplication: Hashable, Sendable {
    /// Whether the documents were pushed; false if they were pulled.
    public let isPush: Bool
    /// The documents, in the order in which they were replicated.
    public let documents: [ReplicatedDocument]
    /// The number of documents that are missing here, because the consumer of the feed fell too far behind.
    public internal(set) var missed = 0
}
