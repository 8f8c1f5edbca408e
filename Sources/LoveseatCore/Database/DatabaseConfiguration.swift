private import Foundation

/// The settings with which a database is opened.
///
/// If the same folder is open already in this process, ``fullSync`` and ``enableDeltaSync`` apply to all of its `Database` instances
/// as soon as one of them asks for them, until the last one is closed. ``maximumDocumentBytes`` and ``busyTimeout`` belong to each
/// instance. An instance with ``readOnly`` is separate from those that write.
public struct DatabaseConfiguration: Hashable, Sendable {
    /// The path of the folder that contains the database's own folder. It is created if it does not exist.
    ///
    /// The default is `Loveseat` in the user's application support folder, which on Linux is `$XDG_DATA_HOME` or
    /// `~/.local/share`.
    public var directory: String
    /// Whether a save reaches the disk before it returns, and a pushed document before the peer is told that it is stored. The default
    /// is false.
    ///
    /// If this is false, saves survive a crash of the process, but a power loss may undo the last seconds: the database then opens
    /// undamaged, as it was before. The next replication restores what a peer still has (docs/decisions/0006-lost-commits.md). If
    /// this is true, each save or transaction waits for a flush of the disk.
    public var fullSync: Bool
    /// Whether the database is opened for reading only, which is possible while another process has it open. The default is false.
    ///
    /// Saves throw `notWriteable`. Change feeds do not report what another process changes.
    public var readOnly: Bool
    /// Whether documents keep the bodies of their last four revisions, up to 32 kB each, so that peers that pull can be sent only
    /// the difference to what they have. The default is false. Pushing deltas does not need it.
    public var enableDeltaSync: Bool

    /// How long a call waits for other transactions before it throws `busy`. The default is 10 seconds; 0 means not to wait.
    ///
    /// It applies to ``Database/read(_:)-8zqyx``, ``Database/write(_:)-8w0u2`` and the calls that change one document or
    /// collection. They wait for other transactions of this process, and for other programs that have the file locked. The time that a
    /// transaction itself takes does not count. Replicators and listeners wait without a limit.
    public var busyTimeout: Duration

    /// The maximum size of a document that may be saved, in bytes of its JSON text without blobs. The default is 20 MB (20,971,520),
    /// which is also Sync Gateway's limit. The maximum is 23 MB (24,117,248), because a message to a peer has at most 24 MB.
    ///
    /// It does not apply to documents that peers send.
    public var maximumDocumentBytes: Int

    /// How many bytes of the file SQLite keeps in memory for each connection that reads; the one that writes keeps half as many. The
    /// default is 8 MB; the minimum is 1 MB.
    ///
    /// A database has one connection that writes, one that reads single documents, and one for each other read that runs at the same
    /// time, at most four. Queries that read documents all over a file that is larger than this are up to twice as fast with a cache in
    /// which the file has room. It is decided when the first `Database` of a folder is opened.
    public var cacheSize: Int

    /// Whether bodies are also kept for deltas if the database was last opened with ``enableDeltaSync``, for tools that open
    /// other programs' databases.
    package var remembersDeltaSync = false

    static let cacheSizes = (1 << 20)...(64 << 30)
    static let largestMaximumDocumentBytes = 23 << 20
    static let deltaBasesKept = 4

    /// How the name of the database's own folder ends, without the dot.
    package var folderExtension = "loveseat"

    /// Whether a database that is only read keeps processes that write out, if there is none: reading then needs no space on the disk.
    package var excludesWriters = false

    /// Creates a configuration. Every parameter has the default of the property of the same name; a nil `directory` means its default.
    public init(
        directory: String? = nil,
        fullSync: Bool = false,
        readOnly: Bool = false,
        enableDeltaSync: Bool = false,
        maximumDocumentBytes: Int = 20 << 20,
        busyTimeout: Duration = .seconds(10),
        cacheSize: Int = 8 << 20
    ) {
        self.directory = directory ?? Self.defaultDirectory
        self.fullSync = fullSync
        self.readOnly = readOnly
        self.enableDeltaSync = enableDeltaSync
        self.maximumDocumentBytes = maximumDocumentBytes
        self.busyTimeout = busyTimeout
        self.cacheSize = cacheSize
    }

    private static var defaultDirectory: String {
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return folders.first.map { $0.appending(path: "Loveseat").path } ?? "Loveseat"
    }
}
