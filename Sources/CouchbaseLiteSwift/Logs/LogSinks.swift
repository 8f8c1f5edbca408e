import Logging
import LoveseatCore
import Synchronization

/// Where log messages go: to the console, to files, and to the app. Each can be set at any time, from any thread; nil turns it off.
public final class LogSinks {
    private struct Sinks: Sendable {
        var console: ConsoleLogSink? = ConsoleLogSink(level: .warning)
        var file: FileLogSink?
        var files: LogFiles?
        var custom: CustomLogSink?

        /// The level from which any sink wants messages.
        var least: LogLevel {
            let levels = [console?.level, file?.level, custom?.level].compactMap { $0 }
            return levels.min { $0.rawValue < $1.rawValue } ?? .none
        }
    }

    private static let sinks = Mutex(Sinks())

    private init() {}

    /// The console, which swift-log writes: to standard error, if the app does not choose something else with `LoggingSystem.bootstrap`. The
    /// default is warnings and errors of every part.
    public static var console: ConsoleLogSink? {
        get { sinks.withLock { $0.console } }
        set { update { $0.console = newValue } }
    }

    /// Files. The default is nil.
    public static var file: FileLogSink? {
        get { sinks.withLock { $0.file } }
        set { update { ($0.file, $0.files) = (newValue, newValue.map { LogFiles($0) }) } }
    }

    /// The app. The default is nil.
    public static var custom: CustomLogSink? {
        get { sinks.withLock { $0.custom } }
        set { update { $0.custom = newValue } }
    }

    private static func update(_ change: (inout Sinks) -> Void) {
        sinks.withLock { sinks in
            change(&sinks)
            EngineLogDomain.setSink(
                EngineLogDomain.Sink(from: sinks.least.engine) { domain, level, message in
                    write(LogLevel(level), LogDomain(domain), message)
                }
            )
        }
    }

    /// Writes a message to every sink that wants it, before this returns.
    static func write(_ level: LogLevel, _ domain: LogDomain, _ message: String) {
        // A custom sink is called outside of the lock, since it may log something itself.
        let sinks = sinks.withLock { $0 }
        func wants(_ least: LogLevel, _ domains: LogDomains = .all) -> Bool {
            level != .none && level.rawValue >= least.rawValue && domains.contains(domain)
        }
        if let console = sinks.console, wants(console.level, console.domains) {
            console.write(level, domain, message)
        }
        if let file = sinks.file, wants(file.level) { sinks.files?.write(level, domain, message) }
        if let custom = sinks.custom, wants(custom.level, custom.domains) {
            custom.logSink.writeLog(level: level, domain: domain, message: message)
        }
    }
}

/// The console as a sink of log messages.
public struct ConsoleLogSink: Sendable {
    /// The level from which messages are written.
    public let level: LogLevel
    /// The parts whose messages are written.
    public let domains: LogDomains

    /// Creates a sink for messages from a level on.
    public init(level: LogLevel, domains: LogDomains = .all) {
        (self.level, self.domains) = (level, domains)
    }

    fileprivate func write(_ level: LogLevel, _ domain: LogDomain, _ message: String) {
        // Without a level there is nothing to write.
        guard let level = level.engine else { return }
        var logger = Logging.Logger(label: "loveseat.\(domain)")
        logger.logLevel = level
        logger.log(level: level, "\(message)")
    }
}

/// Files as a sink of log messages.
///
/// Each level has files of its own, `cbl_<level>_<milliseconds since 1970>.cbllog`. When a file is full, a new one begins, and the oldest one
/// is removed.
public struct FileLogSink: Sendable {
    /// The default of ``usePlaintext``, false.
    public static let defaultUsePlaintext = false
    /// The default of ``maxKeptFiles``, 2.
    public static let defaultMaxKeptFiles = 2
    /// The default of ``maxFileSize``, 524,288 bytes.
    public static let defaultMaxFileSize: UInt64 = 524_288

    /// The level from which messages are written.
    public let level: LogLevel
    /// The path of the folder. It is created if it does not exist.
    public let directory: String
    /// Whether the app asked for text. It has no effect: the files are always text, because Loveseat has no binary form of logs. Tools that read
    /// Couchbase Lite's binary logs cannot read them; any editor can.
    public let usePlaintext: Bool
    /// The number of files of each level that are kept, with the one that is written.
    public let maxKeptFiles: Int
    /// The number of bytes from which a file is full.
    public let maxFileSize: UInt64

    /// Creates a sink for messages from a level on.
    public init(
        level: LogLevel,
        directory: String,
        usePlainText: Bool = defaultUsePlaintext,
        maxKeptFiles: Int = defaultMaxKeptFiles,
        maxFileSize: UInt64 = defaultMaxFileSize
    ) {
        (self.level, self.directory, usePlaintext) = (level, directory, usePlainText)
        (self.maxKeptFiles, self.maxFileSize) = (maxKeptFiles, maxFileSize)
    }
}

/// Something that writes log messages as the app wants.
public protocol LogSinkProtocol {
    /// Writes a message. It is called on the thread that logs, and may be called on several at once.
    func writeLog(level: LogLevel, domain: LogDomain, message: String)
}

/// The app as a sink of log messages.
///
/// Unchecked, because sinks are not marked: they are documented to be called on any thread.
public struct CustomLogSink: @unchecked Sendable {
    /// The level from which messages are written.
    public let level: LogLevel
    /// The parts whose messages are written.
    public let domains: LogDomains
    /// The object that writes.
    public let logSink: any LogSinkProtocol

    /// Creates a sink for messages of every part, from a level on.
    public init(level: LogLevel, logSink: any LogSinkProtocol) {
        self.init(level: level, domains: .all, logSink: logSink)
    }

    /// Creates a sink for messages of some parts, from a level on.
    public init(level: LogLevel, domains: LogDomains, logSink: any LogSinkProtocol) {
        (self.level, self.domains, self.logSink) = (level, domains, logSink)
    }
}
