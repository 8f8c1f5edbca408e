public import Foundation
public import LoveseatCore
public import LoveseatIdentity
public import LoveseatNetwork

/// The settings of a ``CouchDBListener``.
///
/// A configuration is a value. A listener keeps the one it was created with; changing a copy has no effect on it.
public struct CouchDBListenerConfiguration: Sendable {
    /// The served collections by the names of their databases in URLs; nil for all collections of ``database``.
    public let databases: [String: Collection]?
    /// The database whose collections are served.
    public let database: Database
    /// Whether clients may create and delete databases, which are collections here. The default is false. Only with
    /// ``init(database:)``.
    public var allowsDatabaseCreation = false
    /// The TCP port to listen on. 0, the default, means a free port, which ``CouchDBListener/port`` returns.
    public var port: UInt16 = 0
    /// The name or address of the network interface to listen on. Nil, the default, means all.
    public var networkInterface: String?
    /// Whether connections are not encrypted. The default is false. Use it for tests, and behind a proxy that terminates TLS.
    public var disableTLS = false
    /// The listener's key and certificate. Nil, the default, means `TLSIdentity.anonymousIdentity(in:)`.
    public var tlsIdentity: TLSIdentity?
    /// The store that keeps the anonymous identity. Nil, the default, means `TLSIdentity.standardStore`.
    public var identityStore: (any IdentityStore)?
    /// The oldest version of TLS that clients may use. The default is TLS 1.2. Couchbase Lite 1.x reads `_changes` with TLS 1.0 only.
    public var minimumTLSVersion = ListenerTLSVersion.tlsv12
    /// Decides which clients may connect. Nil, the default, lets everybody connect.
    ///
    /// With TLS, clients send passwords with Basic or log in to a session. Without TLS, an authenticator that was created with
    /// `ListenerPasswordAuthenticator(realm:secret:)` offers Digest, too.
    public var authenticator: (any ListenerAuthenticator)?
    /// Whether clients may send passwords without encryption, with Basic and to log in to a session. The default is true. If it is false,
    /// a listener without TLS accepts Digest only. It has no effect with TLS.
    public var allowsBasicWithoutTLS = true
    /// Decides what each client may read and write. Nil, the default, gives every client that may connect full access. With a policy,
    /// clients cannot create, delete, purge or configure databases.
    public var accessPolicy: AccessPolicy?
    /// Decides whether a revision that a client sends is stored. Nil, the default, means that all are. With a filter, clients start no
    /// replications (`_replicate`) into this listener's databases.
    ///
    /// The attachments of the document are under `_attachments`, by their names. For a document with attachments the filter is called twice:
    /// before their content is received, with what the client says of it, and again with the true lengths. An attachment of which the
    /// client tells no `length` can only be limited by refusing it: see the article "Listening". An error with a code of `10_000 + status` is
    /// sent as that HTTP status, any other as 403 `forbidden`.
    public var incomingFilter: IncomingFilter?
    /// Whether clients may only read, and save their checkpoints. The default is false.
    public var readOnly = false
    /// Whether clients may only write, and save their checkpoints. The default is false. It cannot be combined with ``readOnly``.
    public var writeOnly = false
    /// Decides with which databases elsewhere clients may let this listener replicate, by `_replicate`. Nil, the default, means with none:
    /// `_replicate` works between databases of this listener only.
    ///
    /// The closure is called with the URL that a client names, without its user name and password, and with each URL that a server
    /// redirects to. Allow only hosts that clients should reach through this host: a client that may name any URL reaches everything in
    /// this host's network.
    public var allowsReplicationWith: (@Sendable (URL) -> Bool)?
    /// Changes the settings of a replication with a database elsewhere, before it begins: which certificates are trusted, for example, or
    /// the proxy. Nil, the default, means that the system's authorities are trusted.
    ///
    /// The closure is called with the URL that a client names, without its user name and password, if ``allowsReplicationWith`` allows it.
    public var prepareReplication: (@Sendable (URL, inout ReplicatorConfiguration) -> Void)?
    /// The origins of web pages that may use the listener, such as `https://example.com`; `*` for all. The default is none: a request of
    /// a page, which browsers mark with `Origin`, gets HTTP 403, unless the page comes from the listener itself.
    public var origins: [String] = []
    /// Names by which clients reach this host, in addition to its own names and those of its certificate. The default is none.
    ///
    /// Without an authenticator, or on a loopback address, the listener accepts only requests for an address, `localhost`, or a name of
    /// this host: other names get HTTP 421, so that a web page cannot reach the listener by a name that it controls (DNS rebinding). Name
    /// the host as clients do if they use another name, for example behind a proxy.
    public var hostNames: [String] = []
    /// The longest request that is held in memory, in bytes. The default is 64 MiB. Attachments are not held: those that are sent by
    /// themselves or in parts have no limit; for those within JSON, see ``maximumInlineAttachments``.
    public var maximumRequestSize = 64 << 20
    /// The size that the attachments of one request may have together if they come as Base64 within its JSON, in bytes without Base64. The
    /// default is 1 GiB; all requests together may have twice as much. Attachments that are longer than 64 kB in Base64 are written to the
    /// disk while they come; others are a part of the request.
    public var maximumInlineAttachments: UInt64 = 1 << 30
    /// For tests: how many bytes all requests together may hold.
    package var heldBytes = 512 << 20
    /// The largest document without its attachments, in bytes. The default is 8,000,000, as in CouchDB.
    public var maximumDocumentSize = 8_000_000
    /// How long a connection may be idle between two requests, in seconds. The default is 300.
    public var idleTimeout = 300.0

    /// How the listener makes itself known to other hosts of its network: a `ServiceAdvertisement` of the product LoveseatDiscovery. Nil,
    /// the default, means that it does not.
    public var advertise: (any ListenerAdvertisement)?

    /// Creates a configuration that serves all collections of a database to everybody who can reach the port, with TLS, on a free port.
    ///
    /// The default collection is served as `/name`, with the database's name, and every other one as `/name.scope.collection`; those of
    /// the default scope as `/collection`, too.
    public init(database: Database) {
        self.database = database
        databases = nil
    }

    /// Creates a configuration that serves some collections of one database under names of their own.
    public init(databases: [String: Collection], of database: Database) {
        self.database = database
        self.databases = databases
    }
}
