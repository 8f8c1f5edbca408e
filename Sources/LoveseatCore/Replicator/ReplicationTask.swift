/// A replication that runs now, as a list of tasks shows it.
package struct ReplicationTask: Hashable, Sendable {
    /// The ID, unique among the replications of a database.
    package let id: String
    /// The beginning of the IDs of clients' replications.
    package static let clientPrefix = "client-"
    /// Whether it is a client's replication, as far as a listener of CouchDB's wire knows it.
    package var isClient: Bool { id.hasPrefix(Self.clientPrefix) }
    /// The origin of the documents: the name of a database or a URL. A replication in both directions has this database as its source.
    package let source: String
    package let target: String
    package let isContinuous: Bool
    /// The user for whom it runs; nil if there is none.
    package var user: String?
    package var documentsRead: UInt64 = 0
    package var documentsWritten: UInt64 = 0
    package var writeFailures: UInt64 = 0
    package var revisionsChecked: UInt64 = 0
    package var missingRevisions: UInt64 = 0
    /// The times of its beginning and of its last activity, in seconds since 1970; nil if they are not known.
    package var started: Int64?
    package var updated: Int64?

    /// Its progress; nil if that is not known.
    package var position: Position?

    /// The progress of a replication, in sequences of its source.
    package struct Position: Hashable, Sendable {
        /// The last sequence of the source.
        package let source: UInt64
        /// The sequence up to which everything is done and recorded.
        package let through: UInt64
        /// The number of changes after that.
        package let pending: Int

        package init(source: UInt64, through: UInt64, pending: Int) {
            (self.source, self.through, self.pending) = (source, through, pending)
        }
    }

    package init(id: String, source: String, target: String, isContinuous: Bool) {
        self.id = id
        self.source = Self.withoutCredentials(source)
        self.target = Self.withoutCredentials(target)
        self.isContinuous = isContinuous
    }

    /// A URL without a user name and password.
    private static func withoutCredentials(_ text: String) -> String {
        guard let scheme = text.firstRange(of: "://") else { return text }
        let authority = text[scheme.upperBound...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return text }
        return String(text[..<scheme.upperBound] + text[text.index(after: at)...])
    }
}

extension Replicator {
    package var replicationTasks: [ReplicationTask] {
        let status = status
        guard config.isListed, status.activity != .stopped,
            let database = config.collections.first?.collection.database
        else { return [] }
        let remote = (config.target as? any PeerEndpoint)?.remoteName ?? "\(config.target)"
        let pulls = config.replicatorType == .pull
        var task = ReplicationTask(
            id: "replicator-\(UInt(bitPattern: ObjectIdentifier(self).hashValue))",
            source: pulls ? remote : database.name,
            target: pulls ? database.name : remote,
            isContinuous: config.continuous
        )
        task.documentsRead = status.progress.documents
        task.documentsWritten = status.progress.documents
        return [task]
    }
}
