/// The domain and the codes of errors. Every error that this module throws is an `NSError` with one of them.
///
/// ```swift
/// do { try collection.purge(id: "tower") } catch let error as NSError where error.code == CBLError.notFound {
///     print("There is no such document.")
/// }
/// ```
public struct CBLError {
    /// The domain of errors, `CouchbaseLite`.
    public static let domain = "CouchbaseLite"

    /// An internal check failed.
    public static let assertionFailed = 1
    /// The function is not implemented.
    public static let unimplemented = 2
    /// The kind of encryption is not supported.
    public static let unsupportedEncryption = 3
    /// The revision ID is not valid.
    public static let badRevisionID = 4
    /// The stored form of the document cannot be read.
    public static let corruptRevisionData = 5
    /// The database or collection is closed or deleted.
    public static let notOpen = 6
    /// The document, blob or database does not exist.
    public static let notFound = 7
    /// The document was changed since it was read.
    public static let conflict = 8
    /// A name, number or combination of settings is not allowed.
    public static let invalidParameter = 9
    /// An error without a code of its own.
    public static let unexpectedError = 10
    /// The file or folder cannot be opened.
    public static let cantOpenFile = 11
    /// Reading or writing a file failed.
    public static let ioError = 12
    /// There is not enough memory.
    public static let memoryError = 13
    /// The database, file or folder is read-only.
    public static let notWriteable = 14
    /// Stored data is damaged.
    public static let corruptData = 15
    /// The database is open elsewhere, or other transactions kept it busy.
    public static let busy = 16
    /// The call is possible only in a transaction.
    public static let notInTransaction = 17
    /// The call is not possible inside a transaction.
    public static let transactionNotClosed = 18
    /// The call is not supported in this configuration.
    public static let unsupported = 19
    /// The files are not those of a database, or are encrypted.
    public static let unreadableDatabase = 20
    /// The data has the wrong format.
    public static let wrongFormat = 21
    /// A key, certificate or identity cannot be used.
    public static let crypto = 22
    /// The text of a query is not valid.
    public static let invalidQuery = 23
    /// A query needs an index that does not exist.
    public static let missingIndex = 24
    /// A parameter of a query is missing or unknown.
    public static let invalidQueryParam = 25
    /// The peer reported an error, or violated the protocol.
    public static let remoteError = 26
    /// The database has an old format that cannot be opened.
    public static let databaseTooOld = 27
    /// A newer version wrote the database.
    public static let databaseTooNew = 28
    /// The document ID is not valid.
    public static let badDocID = 29
    /// The database cannot be upgraded to the current format.
    public static let cantUpgradeDatabase = 30

    /// The number to which codes of network errors are added.
    public static let networkBase = 5000
    /// The host name cannot be resolved at the moment.
    public static let dnsFailure = 5001
    /// The host does not exist.
    public static let unknownHost = 5002
    /// The peer did not answer in time.
    public static let timeout = 5003
    /// The URL is not valid.
    public static let invalidURL = 5004
    /// The server redirected too often.
    public static let tooManyRedirects = 5005
    /// The TLS handshake failed.
    public static let tlsHandshakeFailed = 5006
    /// The server's certificate has expired.
    public static let tlsCertExpired = 5007
    /// The server's certificate cannot be trusted.
    public static let tlsCertUntrusted = 5008
    /// The server requires a client certificate.
    public static let tlsClientCertRequired = 5009
    /// The server refused the client's certificate.
    public static let tlsClientCertRejected = 5010
    /// The server's certificate is self-signed, or was issued by an unknown authority.
    public static let tlsCertUnknownRoot = 5011
    /// The server redirected to something that is not an HTTP URL.
    public static let invalidRedirect = 5012
    /// The network interface does not exist.
    public static let unknownInterface = 5027

    /// The number to which HTTP statuses are added.
    public static let httpBase = 10000
    /// The user name, password or certificate is missing or wrong.
    public static let httpAuthRequired = 10401
    /// The peer does not allow the operation.
    public static let httpForbidden = 10403
    /// The peer has no such database or collection.
    public static let httpNotFound = 10404
    /// The HTTP proxy requires a user name and password.
    public static let httpProxyAuthRequired = 10407
    /// The document conflicts with a newer revision at the peer.
    public static let httpConflict = 10409
    /// The document is too large for the peer.
    public static let httpEntityTooLarge = 10413
    /// The peer is a teapot.
    public static let httpImATeapot = 10418
    /// The peer failed.
    public static let httpInternalServerError = 10500
    /// The peer has no such function.
    public static let httpNotImplemented = 10501
    /// The peer is not available at the moment.
    public static let httpServiceUnavailable = 10503

    /// The number to which codes of closed WebSockets are added, less 1000.
    public static let webSocketBase = 11000
    /// The peer stopped, or closed the connection normally.
    public static let webSocketGoingAway = 11001
    /// The peer violated the WebSocket protocol.
    public static let webSocketProtocolError = 11002
    /// The peer sent data of a kind that was not expected.
    public static let webSocketDataError = 11003
    /// The connection broke.
    public static let webSocketAbnormalClose = 11006
    /// A message has a format that cannot be read.
    public static let webSocketBadMessageFormat = 11007
    /// A message violates the peer's policy.
    public static let webSocketPolicyError = 11008
    /// A message is too large.
    public static let webSocketMessageTooBig = 11009
    /// The peer lacks an extension of the protocol.
    public static let webSocketMissingExtension = 11010
    /// The peer cannot fulfil the request.
    public static let webSocketCantFulfill = 11011
    /// The app's transport failed, and connecting again may help.
    public static let webSocketCloseUserTransient = 14001
    /// The app's transport failed for good.
    public static let webSocketCloseUserPermanent = 14002

    /// The text is not JSON, or not of the kind that is needed.
    public static let invalidJSON = 17001
    /// A stored value does not fit the type that is asked for.
    public static let decodingError = 18001
    /// A value cannot be encoded.
    public static let encodingError = 18002
}
