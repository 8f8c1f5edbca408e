public import Foundation
public import LoveseatCore
import LoveseatCouchDBReplication
public import LoveseatModel
import LoveseatNetwork
package import LoveseatReplication
import LoveseatStorage

/// A database of a CouchDB, PouchDB Server, TouchDB, Couchbase Lite 1.x, or ``CouchDBListener``: `https://host:port/database`, or
/// `http://` without encryption.
///
/// ```swift
/// let endpoint = CouchDBEndpoint(url: URL(string: "https://couch.example.org/trips")!)
/// let replicator = Replicator(ReplicatorConfiguration(collections: [sights], target: endpoint))
/// ```
///
/// A collection that is replicated alone, and the default collection, are replicated with the database of the URL; any other collection
/// with the database that `CollectionConfiguration.remoteDatabase` names on the same server, or else with `database.scope.collection`.
/// CouchDB has no database of such a name: if several collections are replicated, the replicator replicates those that it can, and then
/// stops with an error that names the others. User names and passwords belong in an authenticator, not in the URL.
public struct CouchDBEndpoint: PeerEndpoint {
    /// The URL of the database.
    public let url: URL
    /// Whether to create the remote database if it does not exist. The default is false: the replicator stops with `httpNotFound`.
    public var createsTarget = false
    /// A Mango selector, such as `{"type":"trip"}`: only documents that it matches are replicated. The default is nil, which
    /// means all documents. TouchDB and Couchbase Lite 1.x do not support selectors.
    public var selector: JSONText?
    /// A filter function at the remote, such as `design/name`, that decides which documents are pulled. The default is nil, which means
    /// all documents.
    public var filter: String?
    /// Parameters for the ``filter``. The default is none.
    public var filterParameters: [String: String] = [:]

    /// Whether the URL names the database of every collection, and not only of the default one.
    var isExact = false
    /// Whether the URL names the database of the one collection that is replicated, which is not the default one.
    private var isSole = false
    /// The collections that are replicated, with the names of their databases where the configuration says them.
    private var databases: [(collection: CollectionName, name: String?)] = []
    /// Which URLs the server may redirect to; nil for all.
    var allowsURL: (@Sendable (URL) -> Bool)?
    /// The layer between the replicator and the network; nil for none.
    package var transport: (any RemoteTransport)?

    /// Creates an endpoint from a URL. If the URL cannot be used, the replicator stops with `invalidURL` when it is started.
    public init(url: URL) { self.url = url }

    package var remoteName: String {
        let text = url.absoluteString
        return (text.hasSuffix("/") ? String(text.dropLast()) : text) + suffix
    }

    /// Keeps checkpoints with a database that a collection's configuration names apart from those with one that is named by the rule.
    private var suffix: String {
        let names = databases.compactMap { entry in entry.name.map { "#\(entry.collection.path)=\($0)" } }
        return (isExact || isSole ? "#exact" : "") + names.sorted().joined()
    }

    package var namesDatabases: Bool { true }

    package func bound(to collections: [CollectionConfiguration]) -> Self {
        var endpoint = self
        endpoint.databases = collections.map { ($0.collection.handle.name, $0.remoteDatabase) }
        let first = endpoint.databases.first
        endpoint.isSole = collections.count == 1 && first?.name == nil && first?.collection != .default
        return endpoint
    }

    /// The path of the database of a collection.
    func path(of collection: CollectionName, at address: RemoteAddress) -> String {
        if isExact || isSole { return address.path }
        guard let name = databases.first(where: { $0.collection == collection })?.name else {
            return address.path(of: collection)
        }
        return "\(address.rootPath)/\(PathEncoding.segment(name))"
    }

    // `validate()` refuses a selection that is not valid, so that nothing is replicated by it.
    package var selection: String? { (try? remoteSelection)?.text }

    package func validate() throws(LoveseatError) {
        let address = try RemoteAddress(url)
        let paths = databases.map { path(of: $0.collection, at: address) }
        guard Set(paths).count == paths.count else {
            throw LoveseatError(
                .invalidParameter,
                "two collections cannot be replicated with one database: name another one for one of them"
            )
        }
        _ = try remoteSelection
        _ = try localSelector
    }

    /// The documents that a feed of changes is asked for.
    var remoteSelection: ChangesQuery.Selection {
        get throws(LoveseatError) {
            switch (selector, filter) {
            case (nil, nil): return .all
            case (let selector?, nil): return .selector(selector)
            case (nil, let name?):
                guard !name.isEmpty, !name.beginsExactly(with: "_") else {
                    throw LoveseatError(.invalidParameter, "\"\(name)\" is not the name of a filter function")
                }
                return .filter(name: name, parameters: filterParameters)
            default: throw LoveseatError(.invalidParameter, "use a selector or a filter, not both")
            }
        }
    }

    /// The selector, for what is pushed.
    var localSelector: LoveseatCouchDBReplication.Selector? {
        get throws(LoveseatError) {
            guard let selector else { return nil }
            do { return try LoveseatCouchDBReplication.Selector(parsing: JSONElement(selector).value) } catch
            {
                throw LoveseatError(.invalidParameter, "the selector is not valid: \(error.reason)")
            }
        }
    }

    package func networkChanges() -> AsyncStream<Void>? {
        URLEndpoint(url).networkChanges()
    }

    package func replicate(with request: ReplicationRequest) async throws -> any Replication {
        let address = try RemoteAddress(url)
        var runtime = request.runtime
        transport?.prepare(&runtime)
        let client = RemoteClient(
            address,
            options: request.options,
            runtime: runtime,
            transport: transport,
            allowsURL: allowsURL
        )
        do {
            if let name = try await name(of: client, address) { try request.recordName(name) }
            let session = try HTTPDriver(
                request.begin(),
                client: client,
                address: address,
                endpoint: self,
                runtime: runtime,
                heartbeat: request.options.heartbeat
            )
            try await session.open()
            return session
        } catch {
            await client.shutDown()
            throw error
        }
    }

    /// The name of the remote database that stays when its address changes; nil if the server has none.
    private func name(of client: RemoteClient, _ address: RemoteAddress) async throws -> String? {
        let root = RemoteDatabase(client: client, path: address.rootPath)
        guard let uuid = try await root.serverUUID() else { return nil }
        return "couchdb:\(uuid)/\(address.databaseName)\(suffix)"
    }
}

/// The parts of a remote database's URL.
package struct RemoteAddress: Hashable, Sendable {
    package let host: String
    package let port: Int
    package let isSecure: Bool
    /// The path of the database, percent-encoded, without a slash at its end.
    package let path: String

    package init(_ url: URL) throws(LoveseatError) {
        func refuse(_ why: String) -> LoveseatError {
            // A password in it is not repeated.
            let shown = url.user == nil && url.password == nil ? url.absoluteString : "the URL"
            return LoveseatError(.invalidURL, "\(shown): \(why); use http:// or https://host:port/database")
        }
        let scheme = url.scheme?.lowercased()
        guard scheme == "http" || scheme == "https" else { throw refuse("the scheme must be http or https") }
        guard url.user == nil, url.password == nil else {
            throw refuse("a user name and password belong in an authenticator, not into the URL")
        }
        guard url.query == nil else { throw refuse("it has a query") }
        guard let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw refuse("it has no host")
        }
        guard let number = url.validPort else { throw refuse("it has no port from 1 to 65535") }
        let parts = url.path(percentEncoded: true).split(separator: "/")
        guard !parts.isEmpty else { throw refuse("it has no database name") }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        isSecure = scheme == "https"
        port = Int(number)
        path = "/" + parts.joined(separator: "/")
    }

    /// The path of the server, without a slash at its end.
    package var rootPath: String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    /// The database's name, percent-encoded.
    package var databaseName: String {
        String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...])
    }

    /// The path of the database of a collection.
    package func path(of collection: CollectionName) -> String {
        guard collection != .default else { return path }
        return "\(path).\(PathEncoding.segment(collection.scope)).\(PathEncoding.segment(collection.name))"
    }
}
