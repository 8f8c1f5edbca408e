import Synchronization

// The types below are not deprecated themselves: they can only be used with `Database.log`, which is.

extension Database {
    private static let legacyLog = Log()

    /// Where log messages go.
    @available(*, deprecated, message: "use LogSinks")
    public static var log: Log { legacyLog }
}

extension Log {
    /// The console; use ``LogSinks/console`` instead.
    public var console: ConsoleLogger { ConsoleLogger() }

    /// The app; use ``LogSinks/custom`` instead. Its level is read when it is set.
    public var custom: (any Logger)? {
        get { (LogSinks.custom?.logSink as? LoggerSink)?.logger }
        set {
            LogSinks.custom = newValue.map { CustomLogSink(level: $0.level, logSink: LoggerSink(logger: $0)) }
        }
    }
}

private struct LoggerSink: LogSinkProtocol {
    let logger: any Logger

    func writeLog(level: LogLevel, domain: LogDomain, message: String) {
        logger.log(level: level, domain: domain, message: message)
    }
}

/// Something that writes log messages as the app wants; use ``LogSinkProtocol`` instead.
public protocol Logger {
    /// The level from which messages are written.
    var level: LogLevel { get }
    /// Writes a message. It is called on the thread that logs, and may be called on several at once.
    func log(level: LogLevel, domain: LogDomain, message: String)
}

/// The console, to which log messages are written; use ``ConsoleLogSink`` instead.
public final class ConsoleLogger: Sendable {
    init() {}

    /// The level from which messages are written.
    public var level: LogLevel {
        get { LogSinks.console?.level ?? .none }
        set { LogSinks.console = ConsoleLogSink(level: newValue, domains: domains) }
    }

    /// The parts whose messages are written.
    public var domains: LogDomains {
        get { LogSinks.console?.domains ?? .all }
        set { LogSinks.console = ConsoleLogSink(level: level, domains: newValue) }
    }
}

/// Files, to which log messages are written; use ``FileLogSink`` instead.
public final class FileLogger: Sendable {
    private struct State {
        var config: FileLogSink?
        var level = LogLevel.none
    }

    private let state = Mutex(State())

    init() {}

    /// The files. Nil, the default, turns them off. It is copied when it is set.
    public var config: LogFileConfiguration? {
        get { state.withLock { $0.config }.map { LogFileConfiguration($0) } }
        set {
            let sink = newValue?.sink
            update { $0.config = sink }
        }
    }

    /// The level from which messages are written. The default is `none`.
    public var level: LogLevel {
        get { state.withLock { $0.level } }
        set { update { $0.level = newValue } }
    }

    private func update(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            let level = state.level
            LogSinks.file = level == .none ? nil : state.config?.with(level: level)
        }
    }
}

/// The files to which log messages are written; use ``FileLogSink`` instead.
public final class LogFileConfiguration {
    /// The default of ``usePlainText``, false.
    public static let defaultUsePlaintext = FileLogSink.defaultUsePlaintext
    /// The default of ``maxRotateCount``, 1.
    public static let defaultMaxRotateCount = FileLogSink.defaultMaxKeptFiles - 1
    /// The default of ``maxSize``, 524,288 bytes.
    public static let defaultMaxSize = FileLogSink.defaultMaxFileSize

    /// The path of the folder.
    public let directory: String
    /// Whether files are text; they are in any case.
    public var usePlainText = defaultUsePlaintext
    /// The number of full files of each level that are kept. The default is 1.
    public var maxRotateCount = defaultMaxRotateCount
    /// The number of bytes from which a file is full.
    public var maxSize = defaultMaxSize

    /// Creates a configuration for files in a folder.
    public init(directory: String) { self.directory = directory }

    /// Copies a configuration.
    public init(config: LogFileConfiguration) {
        directory = config.directory
        (usePlainText, maxRotateCount, maxSize) = (config.usePlainText, config.maxRotateCount, config.maxSize)
    }

    fileprivate init(_ sink: FileLogSink) {
        directory = sink.directory
        (usePlainText, maxRotateCount, maxSize) = (sink.usePlaintext, sink.maxKeptFiles - 1, sink.maxFileSize)
    }

    fileprivate var sink: FileLogSink {
        FileLogSink(
            level: .none,
            directory: directory,
            usePlainText: usePlainText,
            maxKeptFiles: min(max(maxRotateCount, 0), 1_000) + 1,
            maxFileSize: maxSize
        )
    }
}

extension FileLogSink {
    fileprivate func with(level: LogLevel) -> FileLogSink {
        FileLogSink(
            level: level,
            directory: directory,
            usePlainText: usePlaintext,
            maxKeptFiles: maxKeptFiles,
            maxFileSize: maxFileSize
        )
    }
}
