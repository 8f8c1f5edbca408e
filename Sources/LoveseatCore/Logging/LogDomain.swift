public import Logging
private import Synchronization

/// A part of Loveseat that writes to swift-log, under the label `loveseat.` with its name, and with a level of its own.
///
/// ```swift
/// LogDomain.replicator.level = .debug
/// ```
///
/// Where the lines go is the app's to say, with `LoggingSystem.bootstrap`.
public enum LogDomain: String, CaseIterable, Hashable, Sendable {
    /// Opening, closing and maintaining databases.
    case database
    /// Queries.
    case query
    /// Replicators and conflicts: what goes where, what is refused and why.
    case replicator
    /// Connections.
    case network
    /// Listeners and their peers.
    case listener

    /// The least severe messages that are written; `warning` unless it is set.
    public var level: Logger.Level {
        get { Self.levels.withLock { $0[self] ?? .warning } }
        nonmutating set {
            Self.levels.withLock { $0[self] = newValue }
            let least = Self.levels.withLock { levels in Self.allCases.map { levels[$0] ?? .warning }.min() }
            Self.least.store(Self.rank(least ?? .warning), ordering: .relaxed)
        }
    }

    private static let levels = Mutex<[LogDomain: Logger.Level]>([:])
    /// The rank of the least severe level of any domain: what is below it costs one load.
    private static let least = Atomic(rank(.warning))

    private static func rank(_ level: Logger.Level) -> Int {
        Logger.Level.allCases.firstIndex(of: level) ?? 0
    }

    /// Writes a message, which is made only if it is written.
    package func log(_ level: Logger.Level, _ message: @autoclosure () -> String) {
        guard Self.rank(level) >= Self.least.load(ordering: .relaxed), level >= self.level else { return }
        var logger = Logger(label: "loveseat.\(rawValue)")
        logger.logLevel = level
        logger.log(level: level, "\(message())")
    }
}
