public import Foundation
public import LoveseatCore
import LoveseatNetwork

#if canImport(Security)
public import Security
#endif

/// The settings of a ``Replicator``.
///
/// A configuration is a value. A replicator keeps the one that it was created with.
public struct ReplicatorConfiguration {
    /// The default of ``replicatorType``, both directions.
    public static let defaultType = ReplicatorType.pushAndPull
    /// The default of ``continuous``, false.
    public static let defaultContinuous = false
    /// The default of ``heartbeat``, 300 seconds.
    public static let defaultHeartbeat: TimeInterval = 300
    /// The default of ``maxAttempts`` for a single pass, 10.
    public static let defaultMaxAttemptsSingleShot: UInt = 10
    /// The default of ``maxAttempts`` for a continuous replicator, no limit.
    public static let defaultMaxAttemptsContinuous = UInt.max
    /// The default of ``maxAttemptWaitTime``, 300 seconds.
    public static let defaultMaxAttemptsWaitTime: TimeInterval = 300
    /// The default of ``enableAutoPurge``, true.
    public static let defaultEnableAutoPurge = true
    /// The default of ``acceptOnlySelfSignedServerCertificate``, false.
    public static let defaultSelfSignedCertificateOnly = false
    /// The default of ``acceptParentDomainCookie``, false.
    public static let defaultAcceptParentCookies = false
    #if os(iOS)
    /// The default of ``allowReplicatingInBackground``, false.
    public static let defaultAllowReplicatingInBackground = false
    #endif

    /// The peer.
    public let target: any Endpoint
    /// The collections to replicate, each once.
    public internal(set) var collections: [CollectionConfiguration] = []
    /// The directions in which documents are transferred. The default is both.
    public var replicatorType = defaultType
    /// Whether the replicator goes on with every later change until it is stopped. The default is false: it stops when everything is done.
    public var continuous = defaultContinuous
    /// The credentials for the peer. Nil, the default, means that the peer requires none.
    public var authenticator: (any Authenticator)?
    /// Whether servers with a self-signed certificate are accepted, and no others. The default is false. A pinned certificate takes precedence.
    public var acceptOnlySelfSignedServerCertificate = defaultSelfSignedCertificateOnly
    /// The certificate that the server has to show as its own, or that has to have issued the server's certificate. The default is nil.
    public var pinnedServerCertificate: SecCertificate?
    /// Additional HTTP headers for the request that opens the connection. The default is nil.
    public var headers: [String: String]?
    /// The name or address of the network interface to connect from, such as `en0`. Nil, the default, means any.
    public var networkInterface: String?
    /// The HTTP proxy to connect through, such as `http://user:password@proxy.example.org:3128`. Nil, the default, means a direct connection:
    /// Loveseat does not use the system's proxy. A URL with another scheme, or without a host, ends the program.
    public var proxyURL: URL? { didSet { checkProxyURL() } }
    /// Whether a cookie is accepted that a server sets for its parent domain. The default is false.
    public var acceptParentDomainCookie = defaultAcceptParentCookies
    #if os(iOS)
    /// Has no effect: Loveseat does not stop replicators in the background. The system suspends the app, and they connect again afterwards.
    public var allowReplicatingInBackground = defaultAllowReplicatingInBackground
    #endif
    /// How long the connection may be idle, in seconds, before a ping checks that the peer is still there. 0 means the default, 300. A
    /// negative number ends the program.
    public var heartbeat = defaultHeartbeat {
        didSet { if heartbeat < 0 { programmerError("heartbeat is negative") } }
    }
    /// The maximum wait between two attempts to connect, in seconds. 0 means the default, 300. A negative number ends the program.
    public var maxAttemptWaitTime = defaultMaxAttemptsWaitTime {
        didSet { if maxAttemptWaitTime < 0 { programmerError("maxAttemptWaitTime is negative") } }
    }
    /// Whether documents are purged here when the user loses access to them at the peer, with edits that were not pushed. The default is true.
    public var enableAutoPurge = defaultEnableAutoPurge
    private var chosenAttempts: UInt?

    /// How often to try to connect, the first attempt included. A connection that succeeds starts the count anew.
    ///
    /// 0 means the default: 10 for a single pass, no limit if ``continuous`` is set.
    public var maxAttempts: UInt {
        get {
            chosenAttempts
                ?? (continuous ? Self.defaultMaxAttemptsContinuous : Self.defaultMaxAttemptsSingleShot)
        }
        set { chosenAttempts = newValue == 0 ? nil : newValue }
    }

    /// Creates a configuration that replicates collections with a peer, by default in both directions and in one pass.
    ///
    /// If a collection is named twice, the last one counts. No collections, or those of several `Database` objects, end the program.
    public init(collections: [CollectionConfiguration], target: any Endpoint) {
        if collections.isEmpty { programmerError("name at least one collection to replicate") }
        self.init(to: target)
        for collection in collections { add(collection) }
    }

    /// Copies a configuration.
    public init(config: ReplicatorConfiguration) { self = config }

    /// Creates a configuration without collections.
    init(to target: any Endpoint) { self.target = target }

    /// Adds a collection, or replaces its settings.
    mutating func add(_ added: CollectionConfiguration) {
        let collection = added.collection
        if let first = collections.first, first.collection.database !== collection.database {
            programmerError("the collections belong to different databases")
        }
        if let index = index(of: collection) {
            collections[index] = added
        } else {
            collections.append(added)
        }
    }

    func index(of collection: Collection) -> Int? {
        collections.firstIndex { $0.collection.engine.handle == collection.engine.handle }
    }

    private var proxy: ProxyConfiguration? { proxyURL.flatMap { ProxyConfiguration(url: $0.absoluteString) } }

    private func checkProxyURL() {
        // Without the URL in the message, since it may contain a password.
        if proxyURL != nil, proxy == nil { programmerError("proxyURL needs the scheme http and a host") }
    }

    var engine: LoveseatCore.ReplicatorConfiguration {
        var engine = LoveseatCore.ReplicatorConfiguration(
            collections: collections.map(\.engine),
            target: (target as? any EngineEndpoint)?.engine ?? target
        )
        engine.replicatorType = replicatorType
        engine.continuous = continuous
        engine.authenticator = (authenticator as? any EngineAuthenticator)?.engine ?? authenticator
        engine.acceptOnlySelfSignedServerCertificate = acceptOnlySelfSignedServerCertificate
        engine.pinnedServerCertificate = pinnedServerCertificate?.engine
        engine.headers = headers
        engine.networkInterface = networkInterface
        engine.proxy = proxy
        engine.acceptParentDomainCookie = acceptParentDomainCookie
        engine.heartbeat = heartbeat
        engine.maxAttempts = chosenAttempts ?? 0
        engine.maxAttemptWaitTime = maxAttemptWaitTime
        engine.enableAutoPurge = enableAutoPurge
        // Couchbase Lite behaves so without a setting.
        engine.purgesUnpushedEdits = true
        engine.adoptsOtherUsersChanges = true
        engine.enableDeltaSync = true
        engine.conflictResolverTimeout = Self.forever
        return engine
    }

    /// A year, in seconds: Couchbase Lite waits for a resolver however long it takes.
    private static let forever = 31_536_000.0
}

/// An authenticator of this module, which stands for one of the engine.
protocol EngineAuthenticator: Authenticator {
    var engine: any Authenticator { get }
}
