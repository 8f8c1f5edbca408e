/// An error of Loveseat: a code for programs and a message for people.
///
/// Codes and domains are those of Couchbase Lite. Compare with `catch LoveseatError.Code.notFound`.
public struct LoveseatError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The namespace of an error code.
    public enum Domain: String, Hashable, Sendable {
        /// Loveseat's own codes; network errors are 5000 and up, HTTP statuses 10000 and up, WebSocket close codes
        /// 11000 and up.
        case couchbaseLite = "CouchbaseLite"
        /// Numbers of the operating system (`errno`).
        case posix = "NSPOSIXErrorDomain"
        /// SQLite's result codes, for errors that have no code of Loveseat.
        case sqlite = "CouchbaseLite.SQLite"
    }

    /// The kind of an error. Later versions may add kinds, so end a `switch` with a `default`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The namespace of the number.
        public let domain: Domain
        /// The number within its domain.
        public let value: Int

        /// Creates a code from a number and its domain. Apps use the constants, such as ``notFound``.
        public init(_ value: Int, domain: Domain = .couchbaseLite) {
            self.domain = domain
            self.value = value
        }

        /// The domain and the number, such as `CouchbaseLite 7`.
        public var description: String { "\(domain.rawValue) \(value)" }

        /// Returns whether an error is a ``LoveseatError`` with this code, for `catch LoveseatError.Code.notFound`.
        public static func ~= (code: Code, error: any Error) -> Bool {
            (error as? LoveseatError)?.code == code
        }

        /// An internal check failed: a bug in Loveseat.
        public static let assertionFailed = Code(1)
        /// The revision ID or the history of a revision is not valid.
        public static let badRevisionID = Code(4)
        /// The stored form of the document cannot be read.
        public static let corruptRevisionData = Code(5)
        /// The database or collection is closed or deleted.
        public static let notOpen = Code(6)
        /// The document, blob or database does not exist.
        public static let notFound = Code(7)
        /// The document was changed since it was read.
        public static let conflict = Code(8)
        /// A name, number or combination of settings is not allowed.
        public static let invalidParameter = Code(9)
        /// An error without a code of its own, or a reference to a blob that is not in the database.
        public static let unexpectedError = Code(10)
        /// The file or folder cannot be opened.
        public static let cantOpenFile = Code(11)
        /// Reading or writing a file failed.
        public static let ioError = Code(12)
        /// There is not enough memory.
        public static let memoryError = Code(13)
        /// The database, file or folder is read-only.
        public static let notWriteable = Code(14)
        /// Stored data is damaged, or a blob's content does not match its digest.
        public static let corruptData = Code(15)
        /// The database is open elsewhere, or other transactions kept it busy until the deadline.
        public static let busy = Code(16)
        /// The transaction has ended: it can be used only inside the closure that it was given to.
        public static let notInTransaction = Code(17)
        /// The call is not possible inside a transaction's closure.
        public static let transactionNotClosed = Code(18)
        /// The call is not supported in this configuration.
        public static let unsupported = Code(19)
        /// The files are not those of a Loveseat database, or are encrypted.
        public static let unreadableDatabase = Code(20)
        /// A key, certificate or identity cannot be created, read or stored.
        public static let crypto = Code(22)
        /// A newer version of Loveseat wrote the database.
        public static let databaseTooNew = Code(28)
        /// The document ID is not valid.
        public static let badDocID = Code(29)
        /// The text of a query is not valid, or names something that does not exist.
        public static let invalidQuery = Code(23)
        /// A query needs a full-text index that does not exist.
        public static let missingIndex = Code(24)
        /// A query was given a value for a parameter that it does not have.
        public static let invalidQueryParameter = Code(25)
        /// The peer violated the replication protocol.
        public static let remoteError = Code(26)
        /// The host name cannot be resolved at the moment.
        public static let dnsFailure = Code(5001)
        /// The host does not exist.
        public static let unknownHost = Code(5002)
        /// The network interface does not exist.
        public static let unknownInterface = Code(5027)
        /// The peer did not answer in time, or a query took longer than its deadline.
        public static let timeout = Code(5003)
        /// The URL is not `ws://` or `wss://host[:port]/database`.
        public static let invalidURL = Code(5004)
        /// The server redirected more than ten times.
        public static let tooManyRedirects = Code(5005)
        /// The TLS handshake failed.
        public static let tlsHandshakeFailed = Code(5006)
        /// The server's certificate has expired, or is not valid yet.
        public static let tlsCertExpired = Code(5007)
        /// The server's certificate cannot be trusted, for example because it is for another host.
        public static let tlsCertUntrusted = Code(5008)
        /// The server requires a client certificate.
        public static let tlsClientCertRequired = Code(5009)
        /// The server refused the client's certificate.
        public static let tlsClientCertRejected = Code(5010)
        /// The server's certificate is self-signed, was issued by an unknown authority, or is not the pinned one.
        public static let tlsCertUnknownRoot = Code(5011)
        /// The server redirected to something that is not an HTTP URL.
        public static let invalidRedirect = Code(5012)
        /// The user name, password, token, certificate or pairing code is missing or wrong.
        public static let httpAuthRequired = Code(10401)
        /// The HTTP proxy requires a user name and password.
        public static let httpProxyAuthRequired = Code(10407)
        /// The peer does not allow the operation, for example pushing to a read-only listener.
        public static let httpForbidden = Code(10403)
        /// The peer has no such database or collection.
        public static let httpNotFound = Code(10404)
        /// The document conflicts with a newer revision at the peer.
        public static let httpConflict = Code(10409)
        /// The peer stopped, or closed the connection normally.
        public static let webSocketGoingAway = Code(11001)
        /// The peer violated the WebSocket protocol, or supports no version of the replication protocol that Loveseat
        /// does.
        public static let webSocketProtocolError = Code(11002)
        /// The connection broke.
        public static let webSocketAbnormalClose = Code(11006)
        /// The app's transport failed, and connecting again may help.
        public static let webSocketCloseUserTransient = Code(14001)
        /// The app's transport failed, and connecting again does not help.
        public static let webSocketCloseUserPermanent = Code(14002)
        /// The text is not JSON.
        public static let invalidJSON = Code(17001)
        /// A stored value does not fit the Swift type that is asked for.
        public static let decodingError = Code(18001)
        /// A value cannot be encoded as JSON.
        public static let encodingError = Code(18002)
    }

    /// The error for a document that the app's pull filter leaves out.
    package static let rejectedByPullFilter = LoveseatError(.httpForbidden, "rejected by the pull filter")

    /// Whether a peer's refusal of a document is final, so that it is not sent again before it changes or is requested: the peer may not
    /// have it, or does not take so large a document.
    package var isFinalRefusal: Bool { code == .httpForbidden || code == Code(10_413) }

    /// The error for a pushed document that the peer stored, while its own version stays the current one.
    package static func storedBeside(_ document: String) -> LoveseatError {
        LoveseatError(.httpConflict, document + besideOwn)
    }

    private static let besideOwn =
        " was stored at the peer, where another version of it is current and conflicts with it: pull that one"

    /// Whether the peer stored a pushed document all the same. The message says so, too, since errors of documents are kept as text.
    package var isStoredAtPeer: Bool { code == .httpConflict && message.hasSuffix(Self.besideOwn) }

    /// The kind of the error.
    public let code: Code
    /// A sentence for people that names the document, file or address, and says what to do. It may change between
    /// versions, so do not parse it.
    public let message: String
    /// The reason and the place, for `invalidJSON`; nil for other errors.
    public private(set) var jsonError: JSONError?
    /// Seconds for which a server asked not to be tried again (HTTP's `Retry-After`); nil if it did not say.
    package var retryAfter: UInt?
    /// Which of a replication's collections the peer has; nil if the error is about something else.
    package var collections: PeersCollections?

    /// The setting with which the same call would go on; nil if there is none.
    package var remedy: Remedy?

    /// A setting that faces name in words of their own.
    package enum Remedy: Hashable, Sendable {
        /// Names the remote databases of collections that the remote lacks.
        case choosingDatabases
        /// Creates the remote database.
        case creatingDatabase
        /// Pushes what changed under another user's name.
        case adoptingChanges
    }

    /// The reason why a peer does not replicate all collections that it was asked for.
    package enum PeersCollections: Hashable, Sendable {
        /// It does not have these.
        case lacks([CollectionName])
        /// It lets this user have these alone, and not the default one.
        case permits([CollectionName])
    }

    /// Creates an error, for tests and for types that conform to Loveseat's protocols. Apps throw errors of their own.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The error for text that is not JSON, or not valid as a document.
    ///
    /// `context`: the origin of the text, for the message; nil for the reason alone.
    package init(_ problem: JSONError, in context: String? = nil) {
        self.init(.invalidJSON, (context.map { "\($0): " } ?? "") + problem.description)
        jsonError = problem
    }

    /// The message and the code, for logs.
    public var description: String { "\(message) (\(code))" }
}
