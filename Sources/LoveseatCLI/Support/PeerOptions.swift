import ArgumentParser
import Foundation
import Loveseat
import LoveseatCouchDB
import LoveseatDiscovery

/// Which peer, and which documents are meant.
struct PeerOptions: ParsableArguments {
    @Argument(
        help:
            "The peer: wss://host:port/database, https://host:port/database for a CouchDB, ws:// or http:// without encryption, or exec:'ssh host loveseat serve-stdio DB'."
    )
    var url: String?
    @Option(help: "Another database on this machine, instead of a URL.", completion: .database)
    var localDb: String?
    @Flag(help: "Connect to the peer that the database was paired with. The URL may be omitted.")
    var paired = false
    @Option(
        help: ArgumentHelp(
            "Find the peer on this network by its name or ID (`loveseat browse`), instead of a URL. Without --paired, --pin, --ca or --self-signed, asks whether to trust the certificate that it shows, and remembers it.",
            valueName: "name|id"
        )
    )
    var find: String?
    @OptionGroup(title: "Discovery") var discovery: DiscoveryOptions
    @OptionGroup var credentials: Credentials
    @OptionGroup var trust: TrustOptions
    @Option(
        help:
            "The ID of a session with a gateway, or NAME=ID if its cookie is not called SyncGatewaySession. Or use --session-file or LOVESEAT_SESSION, which other users cannot see."
    )
    var session: String?
    @Option(help: "A file with the session's ID in its first line.", completion: .file())
    var sessionFile: String?
    @Option(
        name: .customLong("header"),
        help:
            "Another HTTP header, \"Name: value\". Can be repeated. Or use --header-file or LOVESEAT_HEADERS, which other users cannot see."
    )
    var headers: [String] = []
    @Option(help: "A file with HTTP headers, one per line.", completion: .file())
    var headerFile: String?
    @Option(
        help:
            "The collections, separated by commas. The default is all. Pull and sync create those that only the peer has. For a CouchDB, scope.collection=NAME names the database of a collection; one collection alone uses the database of the URL.",
        completion: .collections
    )
    var collections = ""
    @Option(help: "Only these documents, separated by commas.")
    var docIds = ""
    @Option(help: "The gateway's channels to pull from, separated by commas.")
    var channels = ""
    @Option(
        name: .customLong("filter"),
        help: ArgumentHelp(
            "Only documents that meet this condition: 'address.city = \"Oslo\"', 'n >= 3', 'photo', '!photo'. If repeated, all conditions must be met. Deletions, and documents to which the user loses access, always pass."
        )
    )
    var filters: [String] = []

    @Option(help: "Only documents that match this Mango selector, in JSON. Needs a CouchDB.")
    var selector: String?
    @Flag(help: "Create the database at a CouchDB if it does not exist.")
    var createTarget = false

    func validate() throws {
        let ways = [url, localDb, find].count { $0 != nil }
        guard ways == 1 || (paired && ways == 0), !paired || localDb == nil else {
            throw ValidationError(
                ways > 1
                    ? "Name one peer: use only one of a URL, --find and --local-db."
                    : "Name the peer: either a URL, --find, --local-db, or --paired."
            )
        }
        guard [session, sessionFile, credentials.user, trust.identity].count(where: { $0 != nil }) <= 1 else {
            throw ValidationError("Use one of --session, --session-file, --user and --identity.")
        }
        for (name, value) in [("--doc-ids", docIds), ("--channels", channels)] {
            guard value.isEmpty || !value.listItems.isEmpty else {
                throw ValidationError("\(name) is empty: leave it out for all.")
            }
        }
    }

    /// Whether the peer knows who connects, so that it may have rights of its own.
    var isKnownToPeer: Bool {
        paired || credentials.user != nil || trust.identity != nil || session != nil || sessionFile != nil
    }

    /// Where a user who lacks rights gets them.
    var rightsHint: String {
        if let user = credentials.user {
            return "the peer knows the user \"\(user)\"; `serve --access` there gives rights by that name"
        }
        if trust.identity != nil || paired {
            return
                "the peer accepts this certificate; `serve --access` there gives it rights by its common name or its fingerprint"
                + (paired ? ", or by the name of `pair show --name`" : "")
        }
        return "`serve --access` there gives rights"
    }

    private func endpoint(_ database: Database, connects: Bool) throws -> any Endpoint {
        if let find { return service(find, database) }
        if let localDb {
            var other = DatabaseArgument()
            other.database = localDb
            // Only its name is needed, and another process may be serving it.
            return DatabaseEndpoint(database: try connects ? other.open() : other.read())
        }
        if let url,
            let command = url.range(of: "exec:", options: .anchored).map({ String(url[$0.upperBound...]) })
        {
            var endpoint = MessageEndpoint(uid: url, protocolType: .byteStream) {
                try await ProcessTransport(command: command)
            }
            // Two `serve-stdio` processes cannot have a database open at a time.
            endpoint.takesSecondConnection = false
            return endpoint
        }
        guard let url = url.flatMap({ URL(string: $0) }) else {
            throw LoveseatError(
                .invalidURL,
                "\(url ?? "") is not a URL: use wss://host:port/database, or https:// for a CouchDB"
            )
        }
        guard url.user() == nil, url.password() == nil else {
            throw LoveseatError(
                .invalidURL,
                "leave the user name and password out of the URL: use --user and --password-file"
            )
        }
        if CouchDBLogin.isURL(url.absoluteString) { return try couchDBEndpoint(url) }
        guard ["ws", "wss"].contains(url.scheme?.lowercased()) else {
            throw LoveseatError(
                .invalidURL,
                "\(url.absoluteString) is not a peer: use wss://host:port/database, or https:// for a CouchDB"
            )
        }
        guard selector == nil, !createTarget else {
            throw LoveseatError(
                .invalidParameter,
                "--selector and --create-target need a CouchDB: use an http:// or https:// URL"
            )
        }
        return URLEndpoint(url)
    }

    private func couchDBEndpoint(_ url: URL) throws -> CouchDBEndpoint {
        var endpoint = CouchDBEndpoint(url: url)
        endpoint.createsTarget = createTarget
        if let selector {
            guard let json = try? JSONText(selector) else {
                throw LoveseatError(
                    .invalidParameter,
                    "the selector is not JSON: use for example '{\"type\":\"trip\"}'"
                )
            }
            endpoint.selector = json
        }
        return endpoint
    }

    /// A name of 32 hexadecimal digits is an ID.
    private func service(_ title: String, _ database: Database) -> ServiceEndpoint {
        let isID = title.utf8.count == 32 && title.allSatisfy(\.isHexDigit)
        var endpoint =
            isID
            ? ServiceEndpoint(
                peerID: title,
                type: discovery.type,
                method: discovery.method,
                interfaces: discovery.interfaceNames
            )
            : ServiceEndpoint(
                name: title,
                type: discovery.type,
                method: discovery.method,
                interfaces: discovery.interfaceNames
            )
        endpoint.allowsUnpinned = trust.selfSigned
        endpoint.trustOnFirstUse = TrustOnFirstUse(database: database) { peer in
            await Question.trusts(peer)
        }
        return endpoint
    }

    /// The paired peer, selected by its URL if there are several.
    private func pairedPeer(of database: Database) throws -> PairedPeer {
        // A peer that is found needs no URL.
        let peers = try database.pairedPeers().filter { !$0.urls.isEmpty || find != nil }
        let named = peers.filter { peer in url.map { peer.urls.contains($0) } ?? true }
        guard let peer = named.first ?? (peers.count == 1 ? peers.first : nil), named.count <= 1 else {
            guard !peers.isEmpty else {
                throw LoveseatError(
                    .notFound,
                    "the database is not paired: run `loveseat pair show` at the peer, and `loveseat pair use` here"
                )
            }
            throw LoveseatError(
                .notFound,
                "the database is paired with \(peers.count) peers that could be meant: give the URL of one, see `loveseat pair list`"
            )
        }
        return peer
    }

    /// `connects`: otherwise only the user's name matters, and no password is asked for.
    private func authenticator(connects: Bool) throws -> (any Authenticator)? {
        let isNamed = credentials.user != nil || trust.identity != nil
        if let session = try isNamed
            ? nil : Secret.read(session, file: sessionFile, variable: "LOVESEAT_SESSION")
        {
            return try sessionAuthenticator(session)
        }
        if let identity = try trust.clientIdentity() {
            return ClientCertificateAuthenticator(identity: identity)
        }
        guard connects else {
            return credentials.user.map { BasicAuthenticator(username: $0, password: "") }
        }
        return try credentials.authenticator()
    }

    private func sessionAuthenticator(_ text: String) throws -> SessionAuthenticator {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
            String.init
        )
        guard parts.allSatisfy({ !$0.isEmpty }), let id = parts.last else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(text)\" is not a session: use --session ID or NAME=ID"
            )
        }
        return SessionAuthenticator(sessionID: id, cookieName: parts.count == 2 ? parts[0] : nil)
    }

    private func headerFields() throws -> [String: String] {
        var fields: [String: String] = [:]
        let kept = try Secret.lines(file: headerFile, variable: "LOVESEAT_HEADERS")
        for header in kept + headers {
            let parts = header.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else {
                throw LoveseatError(.invalidParameter, "an HTTP header must be \"Name: value\"")
            }
            fields[String(parts[0])] = parts[1].drop { $0 == " " }.description
        }
        return fields
    }

    private func filter() throws -> ReplicationFilter? {
        let expressions = try filters.map { text in
            guard let expression = FilterExpression(text) else {
                throw LoveseatError(
                    .invalidParameter,
                    "\"\(text)\" is not one condition: use a comparison by =, !=, <, <=, > or >=, such as 'n >= 3' or 'city = \"Oslo (N)\"', or a property alone, 'photo' or '!photo'; and --filter for each"
                )
            }
            return expression
        }
        guard !expressions.isEmpty else { return nil }
        return { document, flags in
            // A deletion or removal has no properties to test, and must be applied.
            !flags.isDisjoint(with: [.deleted, .accessRemoved])
                || expressions.allSatisfy { $0.matches(document) }
        }
    }

    /// The collections, with the names of their databases at a CouchDB.
    private var collectionsAndDatabases: [(collection: CollectionName, database: String?)] {
        get throws {
            var names: Swift.Set<CollectionName> = []
            return try collections.listItems.map { item in
                let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let name = try String(parts[0]).collectionName
                guard names.insert(name).inserted else {
                    throw LoveseatError(.invalidParameter, "--collections names \(name.fullName) twice")
                }
                return (name, parts.count > 1 ? String(parts[1]) : nil)
            }
        }
    }

    /// The named collections that do not exist here.
    func missingCollections(of database: Database) throws -> [CollectionName] {
        try collectionsAndDatabases.map(\.collection).filter {
            try database.collection(name: $0.name, scope: $0.scope) == nil
        }
    }

    /// The configuration that these options make.
    ///
    /// `connects`: whether it will be started. Then missing collections are created, unless there is only a push, which finds nothing in
    /// them. Nothing is created if the options are wrong.
    func configuration(_ database: Database, _ type: ReplicatorType, connects: Bool) throws
        -> ReplicatorConfiguration
    {
        let authenticator = try authenticator(connects: connects)
        let filter = try filter()
        let peer = paired ? try pairedPeer(of: database) : nil
        var configuration = ReplicatorConfiguration(
            collections: [CollectionConfiguration](),
            target: try url == nil && find == nil
                ? peer?.endpoint ?? endpoint(database, connects: connects)
                : endpoint(database, connects: connects)
        )
        configuration.replicatorType = type
        configuration.authenticator = authenticator
        configuration.headers = try headerFields()
        try trust.apply(to: &configuration)
        if let peer {
            configuration.trust(peer, identity: try Identities.identity(trust.identity ?? "anonymous"))
        }
        if connects, type != .push {
            for name in try missingCollections(of: database) {
                try database.createCollection(name: name.name, scope: name.scope)
            }
        }
        configuration.collections = try collections(of: database, filter)
        return configuration
    }

    private func collections(of database: Database, _ filter: ReplicationFilter?) throws
        -> [CollectionConfiguration]
    {
        let named = try collectionsAndDatabases
        return try database.collections(named: named.map(\.collection)).map { collection in
            var entry = CollectionConfiguration(collection: collection)
            entry.documentIDs = docIds.isEmpty ? nil : docIds.listItems
            entry.channels = channels.isEmpty ? nil : channels.listItems
            entry.pushFilter = filter
            entry.pullFilter = filter
            entry.filterVersion = filters.isEmpty ? nil : filters.joined(separator: "\n")
            entry.remoteDatabase =
                named.last {
                    $0.collection.fullName.isExactly(collection.fullName)
                }?.database
            return entry
        }
    }
}
