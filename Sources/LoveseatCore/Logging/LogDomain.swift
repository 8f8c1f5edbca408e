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
        get { Self.state.withLock { $0.level(of: self) } }
        nonmutating set { Self.update { $0.levels[self] = newValue } }
    }

    /// Where messages go instead of swift-log, whatever the levels of the parts are.
    package struct Sink: Sendable {
        /// The level from which messages are wanted; nil for none.
        package let least: Logger.Level?
        package let write: @Sendable (LogDomain, Logger.Level, String) -> Void

        package init(
            from least: Logger.Level?,
            write: @escaping @Sendable (LogDomain, Logger.Level, String) -> Void
        ) {
            (self.least, self.write) = (least, write)
        }
    }

    /// Replaces swift-log for all parts. Nil, the default, means swift-log.
    package static func setSink(_ sink: Sink?) { update { $0.sink = sink } }

    private struct State {
        var levels: [LogDomain: Logger.Level] = [:]
        var sink: Sink?

        func level(of domain: LogDomain) -> Logger.Level { levels[domain] ?? .warning }

        /// The rank of the least severe level at which anything is written.
        var least: Int {
            if let sink { return sink.least.map { LogDomain.rank($0) } ?? .max }
            return LogDomain.rank(LogDomain.allCases.map { level(of: $0) }.min() ?? .warning)
        }
    }

    private static let state = Mutex(State())
    /// The rank of the least severe level at which anything is written. A message below it costs one load.
    private static let least = Atomic(rank(.warning))

    private static func update(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            // Within the lock, so that of two threads the last one's least level stays.
            least.store(state.least, ordering: .relaxed)
        }
    }

    private static func rank(_ level: Logger.Level) -> Int {
        Logger.Level.allCases.firstIndex(of: level) ?? 0
    }

    /// Writes a message, which is evaluated only if it is written.
    package func log(_ level: Logger.Level, _ message: @autoclosure () -> String) {
        if Self.rank(level) < Self.least.load(ordering: .relaxed) { return }
        let (sink, ownLevel) = Self.state.withLock { ($0.sink, $0.level(of: self)) }
        if let sink { return sink.write(self, level, message()) }
        if level < ownLevel { return }
        var logger = Logger(label: "loveseat.\(rawValue)")
        logger.logLevel = level
        logger.log(level: level, "\(message())")
    }
}
