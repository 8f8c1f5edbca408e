import Foundation
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// A device with a database that makes versions: its clock, its starts, and its disk.
///
/// The files stay the same ones whatever is written into them, since a database in another file is a copy (docs/decisions/0012).
final class OwnDevice {
    /// What the store asks the device for.
    final class System: Sendable {
        let nanoseconds = Mutex<UInt64>(1_800_000_000_000_000_000)
        let starts = Mutex(0)
        let sources = Mutex(0)
        let reasons = Mutex<[NewSourceReason]>([])

        func advance(_ seconds: Int) {
            nanoseconds.withLock {
                $0 = UInt64(clamping: Int64(clamping: $0) + Int64(seconds) * 1_000_000_000)
            }
        }

        /// The sources are 1, 2 … in their first bytes.
        func newSource() -> [UInt8] {
            let number = sources.withLock { sources in
                sources += 1
                return sources
            }
            return [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
                + [UInt8](repeating: 7, count: 14)
        }
    }

    /// The content of the files at one moment.
    struct Content {
        let database: Data
        let log: Data?
    }

    let scratch: Scratch
    let system = System()
    let folder: String
    private(set) var store: DocumentStore
    private var options = DocumentStore.Options()

    init(fullSync: Bool = false) throws {
        scratch = try Scratch()
        folder = "\(scratch.path)/own"
        let system = system
        options.fullSync = fullSync
        options.system.nanoseconds = { system.nanoseconds.withLock { $0 } }
        options.system.bootID = { "boot-\(system.starts.withLock { $0 })" }
        options.system.newSource = { system.newSource() }
        options.system.onNewSource = { reason in system.reasons.withLock { $0.append(reason) } }
        store = try DocumentStore.open(folder: folder, options: options)
    }

    deinit { try? store.close() }

    var reasons: [NewSourceReason] { system.reasons.withLock { $0 } }
    var nanoseconds: UInt64 { system.nanoseconds.withLock { $0 } }

    /// An entry of the table `info`.
    func info(_ key: String) throws -> String? { try store.readSettings { try $0.info(key) } }

    /// What the files contain while no transaction runs, as a process that dies leaves them.
    func content() throws -> Content {
        Content(
            database: try Data(contentsOf: URL(filePath: "\(folder)/db.sqlite")),
            log: try? Data(contentsOf: URL(filePath: "\(folder)/db.sqlite-wal"))
        )
    }

    func open() throws { store = try DocumentStore.open(folder: folder, options: options) }

    func reopen() throws {
        try store.close()
        try open()
    }

    /// The process dies, and another one opens the database, perhaps after a new start of the system.
    func crash(restarts: Bool = false) throws { try goOn(with: try content(), restarts: restarts) }

    /// Goes on with an earlier content of the same files, perhaps after a new start of the system.
    func goOn(with content: Content, restarts: Bool = false) throws {
        try store.close()
        for ending in ["-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: "\(folder)/db.sqlite\(ending)")
        }
        let file = try FileHandle(forWritingTo: URL(filePath: "\(folder)/db.sqlite"))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: content.database)
        try file.close()
        try content.log?.write(to: URL(filePath: "\(folder)/db.sqlite-wal"))
        if restarts { system.starts.withLock { $0 += 1 } }
        try open()
    }

    /// Makes versions in one transaction, and returns them.
    func issue(_ count: Int = 1) throws -> [Version] {
        try store.write { transaction in
            try (0..<count).map { _ in
                try #require(try transaction.versionTable.edited(VersionVector())?.current)
            }
        }
    }
}
