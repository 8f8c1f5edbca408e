private import Foundation

/// How a database is opened.
///
/// If a database is open already in this process, the stricter of both wins from then on, for everybody who has it open:
/// ``fullSync`` and ``enableDeltaSync`` stay on until it is closed. ``maximumDocumentBytes`` and ``busyTimeout`` are each `Database`'s own, and
/// ``readOnly`` opens it apart from those who write.
public struct DatabaseConfiguration: Hashable, Sendable {
    /// False.
    public static let defaultFullSync = false

    /// The folder that holds the database's own folder.
    ///
    /// By default `Loveseat` in the user's application support folder; on Linux that is `$XDG_DATA_HOME` or
    /// `~/.local/share`.
    public var directory: String
    /// Whether a save reaches the disk before it returns, and a pushed document before the peer hears that it is stored.
    ///
    /// Without it, saves survive a crash of the process, but a power loss may take the last seconds: the database opens whole,
    /// as it was before. The next replication makes up for documents that a peer still has, or believes to be here
    /// (docs/decisions/0006-lost-commits.md). With it, each save or transaction waits for a disk flush.
    public var fullSync: Bool
    /// Whether only to read, which goes on while another process has the database open. Saves throw `notWriteable`, and
    /// feeds tell nothing of what the other process does.
    public var readOnly: Bool
    /// Whether documents keep the bodies of their last four revisions (those up to 32 kB), so that peers that pull can be sent
    /// only the difference from what they have. Pushing deltas needs nothing of this.
    public var enableDeltaSync: Bool

    /// How long a call may wait for other transactions before it throws `busy`; 10 seconds by default.
    ///
    /// It bounds what the app calls: ``Database/read(_:)-8zqyx``, ``Database/write(_:)-8w0u2`` and the calls that change one
    /// document or collection. They wait for other transactions of this process and for other programs that have the
    /// file locked, and the time does not count once they have begun. Replication waits as long as it takes. Zero means not
    /// to wait. Each `Database` has its own.
    public var busyTimeout: Duration

    /// The largest document that may be saved, in bytes of its JSON text without blobs. The default is 20 MB (20,971,520),
    /// which is also what Sync Gateway takes; at most 23 MB (24,117,248), since no message to a peer exceeds 24 MB.
    ///
    /// Documents that peers send are not measured against it.
    public var maximumDocumentBytes: Int

    /// Whether bodies are also kept for deltas if the database was last opened with ``enableDeltaSync``, for tools that open
    /// other programs' databases.
    package var remembersDeltaSync = false

    /// 10 seconds.
    public static let defaultBusyTimeout = Duration.seconds(10)
    /// 20 MB.
    public static let defaultMaximumDocumentBytes = 20 << 20
    static let largestMaximumDocumentBytes = 23 << 20
    static let deltaBasesKept = 4

    /// The defaults, changed where given.
    public init(
        directory: String? = nil,
        fullSync: Bool = defaultFullSync,
        readOnly: Bool = false,
        enableDeltaSync: Bool = false,
        maximumDocumentBytes: Int = defaultMaximumDocumentBytes,
        busyTimeout: Duration = defaultBusyTimeout
    ) {
        self.directory = directory ?? Self.defaultDirectory
        self.fullSync = fullSync
        self.readOnly = readOnly
        self.enableDeltaSync = enableDeltaSync
        self.maximumDocumentBytes = maximumDocumentBytes
        self.busyTimeout = busyTimeout
    }

    private static var defaultDirectory: String {
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return folders.first.map { $0.appending(path: "Loveseat").path } ?? "Loveseat"
    }
}
