import Logging
import LoveseatCore

/// How severe a log message is.
public enum LogLevel: UInt8, Sendable {
    /// Everything, such as each message on the wire.
    case debug = 0
    /// Details of normal work.
    case verbose
    /// Normal work.
    case info
    /// Possible problems.
    case warning
    /// Failures.
    case error
    /// Nothing is logged.
    case none

    init(_ level: Logging.Logger.Level) {
        self =
            switch level {
            case .trace: .debug
            case .debug: .verbose
            case .info, .notice: .info
            case .warning: .warning
            case .error, .critical: .error
            }
    }

    /// The least severe level of the engine that is this one; nil for none.
    var engine: Logging.Logger.Level? {
        switch self {
        case .debug: .trace
        case .verbose: .debug
        case .info: .info
        case .warning: .warning
        case .error: .error
        case .none: nil
        }
    }
}

/// The part of the library that logs a message.
public enum LogDomain: UInt, Sendable {
    /// Databases and documents.
    case database = 1
    /// Queries.
    case query = 2
    /// Replicators.
    case replicator = 4
    /// Connections.
    case network = 8
    /// Listeners and the peers that connect to them.
    case listener = 16
    /// Finding peers. Nothing is logged here yet.
    case peerDiscovery = 32
    /// Finding peers with multicast DNS. Nothing is logged here yet.
    case mdns = 64
    /// Replicating with many peers. Nothing is logged here yet.
    case multipeer = 512

    init(_ domain: EngineLogDomain) {
        self =
            switch domain {
            case .database: .database
            case .query: .query
            case .replicator: .replicator
            case .network: .network
            case .listener: .listener
            }
    }

    private var engine: EngineLogDomain {
        switch self {
        case .database: .database
        case .query: .query
        case .replicator, .multipeer: .replicator
        case .network, .peerDiscovery, .mdns: .network
        case .listener: .listener
        }
    }

    /// Writes a message of this module.
    func log(_ level: Logging.Logger.Level, _ message: @autoclosure () -> String) {
        engine.log(level, message())
    }
}

/// A set of parts of the library.
public struct LogDomains: OptionSet, Sendable {
    /// The parts as bits, each with the number of its ``LogDomain``.
    public let rawValue: UInt

    /// Creates a set from bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    private init(_ domain: LogDomain) { rawValue = domain.rawValue }

    /// Every part.
    public static let all: LogDomains = [
        .database, .query, .replicator, .network, .listener, .peerDiscovery, .mdns, .multipeer,
    ]
    /// Databases and documents.
    public static let database = LogDomains(.database)
    /// Queries.
    public static let query = LogDomains(.query)
    /// Replicators.
    public static let replicator = LogDomains(.replicator)
    /// Connections.
    public static let network = LogDomains(.network)
    /// Listeners and the peers that connect to them.
    public static let listener = LogDomains(.listener)
    /// Finding peers.
    public static let peerDiscovery = LogDomains(.peerDiscovery)
    /// Finding peers with multicast DNS.
    public static let mdns = LogDomains(.mdns)
    /// Replicating with many peers.
    public static let multipeer = LogDomains(.multipeer)

    func contains(_ domain: LogDomain) -> Bool { contains(LogDomains(domain)) }
}
