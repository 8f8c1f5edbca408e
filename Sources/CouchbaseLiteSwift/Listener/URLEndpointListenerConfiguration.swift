import LoveseatNetwork

/// The settings of a ``URLEndpointListener``.
public struct URLEndpointListenerConfiguration: Sendable {
    /// The default of ``port``: the system chooses a free one.
    public static let defaultPort: UInt16 = 0
    /// The default of ``disableTLS``, false.
    public static let defaultDisableTls = false
    /// The default of ``readOnly``, false.
    public static let defaultReadOnly = false
    /// The default of ``enableDeltaSync``, false.
    public static let defaultEnableDeltaSync = false

    /// The collections to serve, all of one database.
    public let collections: [Collection]
    /// The TCP port to listen on. 0, the default, or nil means a free one, which ``URLEndpointListener/port`` returns.
    public var port: UInt16? = defaultPort
    /// The name or address of the network interface to listen on. Nil, the default, means all.
    public var networkInterface: String?
    /// Whether connections are not encrypted. The default is false.
    public var disableTLS = defaultDisableTls
    /// The listener's key and certificate. Nil, the default, means an anonymous identity, which is created once and kept.
    public var tlsIdentity: TLSIdentity?
    /// Decides which clients may connect. Nil, the default, lets everybody connect.
    public var authenticator: (any ListenerAuthenticator)?
    /// Whether only the difference is sent to a peer that has an earlier revision. The default is false.
    public var enableDeltaSync = defaultEnableDeltaSync
    /// Whether peers may only pull. The default is false.
    public var readOnly = defaultReadOnly

    /// Creates a configuration that serves collections. At least one is needed, and all have to be of one `Database`.
    public init(collections: [Collection]) {
        requireOneDatabase(collections)
        self.collections = collections
    }

    /// Copies a configuration.
    public init(config: URLEndpointListenerConfiguration) { self = config }

    var engine: LoveseatNetwork.URLEndpointListenerConfiguration {
        var engine = LoveseatNetwork.URLEndpointListenerConfiguration(collections: collections.map(\.engine))
        engine.port = port
        engine.networkInterface = networkInterface
        engine.disableTLS = disableTLS
        engine.tlsIdentity = tlsIdentity?.engine
        engine.authenticator = authenticator.map { authenticator in
            guard let known = authenticator as? any EngineListenerAuthenticator else {
                programmerError(
                    "a listener's authenticator is a ListenerPasswordAuthenticator or a ListenerCertificateAuthenticator"
                )
            }
            return known.engine
        }
        engine.enableDeltaSync = enableDeltaSync
        engine.readOnly = readOnly
        return engine
    }
}

/// Ends the program if there are no collections, or collections of several `Database` objects.
func requireOneDatabase(_ collections: [Collection]) {
    guard let first = collections.first else { programmerError("a listener serves at least one collection") }
    guard collections.allSatisfy({ $0.database === first.database }) else {
        programmerError("a listener serves collections of one Database")
    }
}
