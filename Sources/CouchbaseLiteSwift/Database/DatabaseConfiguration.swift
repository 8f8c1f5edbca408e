public import Foundation
import LoveseatCore

/// The settings with which a database is opened.
public struct DatabaseConfiguration: Sendable {
    /// The default of ``fullSync``, false.
    public static let defaultFullSync = false

    /// The path of the folder that contains the database's own folder. It is created if it does not exist.
    ///
    /// The default is `CouchbaseLite` in the user's application support folder, which on Linux is `$XDG_DATA_HOME` or `~/.local/share`.
    public var directory: String
    /// Whether a save reaches the disk before it returns. The default is false: the last saves may be lost when the power fails.
    public var fullSync: Bool
    private var key: EncryptionKey?

    /// Creates a configuration with the defaults.
    public init() { self.init(config: nil) }

    /// Copies a configuration. Nil means the defaults.
    public init(config: DatabaseConfiguration?) {
        directory = config?.directory ?? Self.defaultDirectory
        fullSync = config?.fullSync ?? Self.defaultFullSync
        key = config?.key
    }

    /// The key with which files are encrypted, which Loveseat does not do: a database with a key cannot be opened. The default is nil.
    @available(
        *,
        deprecated,
        message:
            "Loveseat does not encrypt its files, and throws `unsupportedEncryption` for a key: use an encrypted disk"
    )
    public var encryptionKey: EncryptionKey? {
        get { key }
        set { key = newValue }
    }

    /// How the names of databases' folders end.
    static let folderExtension = "cblite2"

    /// - Throws: `unsupportedEncryption` if there is a key.
    func engine() throws -> LoveseatCore.DatabaseConfiguration {
        try key?.refuse()
        var engine = LoveseatCore.DatabaseConfiguration(
            directory: directory,
            fullSync: fullSync,
            busyTimeout: .seconds(60)
        )
        engine.folderExtension = Self.folderExtension
        return engine
    }

    static var defaultDirectory: String {
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return folders.first.map { $0.appending(path: "CouchbaseLite").path } ?? "CouchbaseLite"
    }
}

/// A key with which files would be encrypted, for ``DatabaseConfiguration/encryptionKey``.
public struct EncryptionKey: Sendable {
    /// A key of bytes.
    public static func key(_ key: Data) -> EncryptionKey { EncryptionKey() }
    /// A key that is made from a password.
    public static func password(_ password: String) -> EncryptionKey { EncryptionKey() }

    /// - Throws: `unsupportedEncryption`.
    func refuse() throws {
        throw CBLError.make(
            CBLError.unsupportedEncryption,
            "Loveseat does not encrypt its files: open the database without a key, and use an encrypted disk"
        )
    }
}

/// The behaviour of a save or delete if the document was changed since it was read.
public enum ConcurrencyControl: UInt8, Sendable {
    /// The last save wins.
    case lastWriteWins = 0
    /// Nothing is saved, and the call returns false.
    case failOnConflict

    var engine: LoveseatCore.ConcurrencyControl {
        switch self {
        case .lastWriteWins: .lastWriteWins
        case .failOnConflict: .failOnConflict
        }
    }
}

/// The kinds of maintenance that ``Database/performMaintenance(type:)`` performs.
public enum MaintenanceType: UInt8, Sendable {
    /// Removes blobs that no document refers to, and returns free space to the file system.
    case compact = 0
    /// Rebuilds the indexes.
    case reindex
    /// Verifies everything that is stored.
    case integrityCheck
    /// Updates outdated statistics with which queries are planned.
    case optimize
    /// Updates all statistics with which queries are planned.
    case fullOptimize

    var engine: LoveseatCore.MaintenanceType {
        switch self {
        case .compact: .compact
        case .reindex: .reindex
        case .integrityCheck: .integrityCheck
        case .optimize: .optimize
        case .fullOptimize: .fullOptimize
        }
    }
}
