private import Foundation

/// How a database is opened.
public struct DatabaseConfiguration: Hashable, Sendable {
    /// False.
    public static let defaultFullSync = false

    /// The folder that holds the database's own folder.
    ///
    /// By default `Loveseat` in the user's application support folder; on Linux that is `$XDG_DATA_HOME` or
    /// `~/.local/share`.
    public var directory: String
    /// Whether a save reaches the disk before it returns. Without, saves survive a crash of the process, but the last
    /// ones may not survive a power cut.
    public var fullSync: Bool
    /// Whether only to read, which goes on while another process has the database open. Saves throw `notWriteable`, and
    /// feeds tell nothing of what the other process does.
    public var readOnly: Bool
    /// Whether documents keep the bodies of their last four revisions (those up to 32 kB), so that peers that pull can be sent
    /// only the difference from what they have. Pushing deltas needs nothing of this.
    public var enableDeltaSync: Bool

    static let deltaBasesKept = 4

    /// The defaults, changed where given.
    public init(
        directory: String? = nil,
        fullSync: Bool = defaultFullSync,
        readOnly: Bool = false,
        enableDeltaSync: Bool = false
    ) {
        self.directory = directory ?? Self.defaultDirectory
        self.fullSync = fullSync
        self.readOnly = readOnly
        self.enableDeltaSync = enableDeltaSync
    }

    private static var defaultDirectory: String {
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return folders.first.map { $0.appending(path: "Loveseat").path } ?? "Loveseat"
    }
}
