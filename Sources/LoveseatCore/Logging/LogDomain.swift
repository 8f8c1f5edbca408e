public import Logging
private import Synchronization

/// A part of Loveseat that writes log messages with swift-log, under the label `loveseat.` followed by its name.
///
/// ```swift
/// LogDomain.replicator.level = .debug
/// ```
///
/// The app chooses where messages go, with `LoggingSystem.bootstrap`. By default swift-log prints them to standard error.
public enum LogDomain: String, CaseIterable, Hashable, Sendable {
    /// Opening, closing and maintaining databases.
    case database
    /// Queries. Nothing is logged here yet.
    case query
    /// Replicators and conflicts: which documents are transferred, which are refused, and why.
    case replicator
    /// Connections: handshakes, TLS, retries.
    case network
    /// Listeners and the peers that connect to them.
    case listener

    /// The level from which messages of this part are logged. The default is `warning`. It applies to the whole process at once, and can be
    /// set from any thread.
    public var level: Logger.Level {
        get { Self.levels.withLock { $0[self] ?? .warning } }
        nonmutating set {
            Self.levels.withLock { levels in
                levels[self] = newValue
                let least = Self.allCases.map { levels[$0] ?? .warning }.min() ?? .warning
                // Within the lock, so that of two threads the last one's least level stays.
                Self.least.store(Self.rank(least), ordering: .relaxed)
            }
        }
    }

    private static let levels = Mutex<[LogDomain: Logger.Level]>([:])
    /// The rank of the least severe level of any domain. A message below it costs one load.
    private static let least = Atomic(rank(.warning))

    private static func rank(_ level: Logger.Level) -> Int {
        Logger.Level.allCases.firstIndex(of: level) ?? 0
    }

    /// Writes a message, which is evaluated only if it is written.
    package func log(_ level: Logger.Level, _ message: @autoclosure () -> String) {
        if Self.rank(level) < Self.least.load(ordering: .relaxed) || level < self.level { return }
        var logger = Logger(label: "loveseat.\(rawValue)")
        logger.logLevel = level
        logger.log(level: level, "\(message())")
    }
}
