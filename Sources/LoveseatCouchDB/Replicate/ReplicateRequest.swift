import Crypto
import Foundation
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import NIOCore

/// The body of a request to `_replicate` (protocol/couchdb.md §4).
struct ReplicateRequest: Sendable {
    /// A source or target as the client names it.
    struct Side: Sendable {
        /// The name of a database, or a URL without its user name and password.
        let name: String
        /// Nil for the name of a database.
        let url: URL?
        var headers: [String: String] = [:]
        var credentials: BasicAuthenticator?

        /// The host and port of a URL.
        var place: String {
            guard let url, let host = url.host() else { return name }
            return "\(host):\(url.validPort ?? 0)"
        }
    }

    var source: Side?
    var target: Side?
    let isContinuous: Bool
    let createsTarget: Bool
    let cancels: Bool
    /// Whether only the winner of each document is replicated.
    let winnersOnly: Bool
    /// The ID of the replication to cancel.
    let replicationID: String?
    private(set) var documentIDs: [String]?
    let selector: JSONElement?
    let filter: String?
    private(set) var filterParameters: [String: String] = [:]
    /// The sequence of the source to begin after.
    let since: JSONElement?

    init(_ body: JSONElement) throws(CouchDBError) {
        guard body.kind == .object else { throw .badRequest("Request body must be a JSON object") }
        func flag(_ name: String) throws(CouchDBError) -> Bool {
            guard let value = body[name] else { return false }
            guard let flag = value.bool else { throw .badRequest("parameter `\(name)` must be a boolean") }
            return flag
        }
        cancels = try flag("cancel")
        isContinuous = try flag("continuous")
        createsTarget = try flag("create_target")
        winnersOnly = try flag("winning_revs_only")
        replicationID = (body["replication_id"] ?? body["_local_id"] ?? body["id"])?.string
        if let list = body["doc_ids"], !list.isNull {
            guard list.kind == .array, list.items.allSatisfy({ $0.kind == .string }) else {
                throw .badRequest("parameter `doc_ids` must be an array")
            }
            // CouchDB takes percent-encoded IDs, too.
            let ids = list.items.compactMap(\.string)
            documentIDs = DocumentSet(ids + ids.compactMap { PercentCoding.decode($0) }).sorted
        }
        selector = body["selector"]
        guard selector.map({ $0.kind == .object }) ?? true else {
            throw .badRequest("parameter `selector` must be a JSON object")
        }
        try RequestJSON.checkConditions(selector)
        filter = body["filter"]?.string
        guard body["filter"] == nil || filter != nil else {
            throw .badRequest("parameter `filter` must be a string")
        }
        guard [documentIDs != nil, selector != nil, filter != nil].count(where: { $0 }) <= 1 else {
            throw .badRequest("`doc_ids`,`filter`,`selector` are mutually exclusive")
        }
        if let parameters = body["query_params"] {
            guard parameters.kind == .object else {
                throw .badRequest("parameter `query_params` must be a JSON object")
            }
            for (name, value) in parameters.members {
                filterParameters[name] = value.string ?? "\(value.value)"
            }
        }
        since = body["since_seq"]
        if cancels, replicationID != nil { return }
        source = try Self.side(body["source"], "source")
        target = try Self.side(body["target"], "target")
    }

    /// Headers by which a client could reach another server behind the same address, or send another request within one.
    private static let reservedHeaders: Set = [
        "host", "connection", "content-length", "transfer-encoding", "upgrade",
    ]

    private static func side(_ element: JSONElement?, _ role: String) throws(CouchDBError) -> Side {
        let isObject = element?.kind == .object
        guard let element, let text = (isObject ? element["url"] : element)?.string, !text.isEmpty else {
            throw .badRequest("`\(role)` must be the name or the URL of a database")
        }
        var headers: [String: String] = [:]
        var credentials: BasicAuthenticator?
        if isObject {
            for (name, value) in element["headers"]?.members.map({ $0 }) ?? [] {
                guard let value = value.string, !reservedHeaders.contains(name.lowercased()) else {
                    throw .badRequest("the header \(name) of `\(role)` is not allowed, or is not a string")
                }
                headers[name] = value
            }
            if let basic = element["auth"]?["basic"] {
                guard let user = basic["username"]?.string, let password = basic["password"]?.string else {
                    throw .badRequest("`auth.basic` of `\(role)` must have a username and a password")
                }
                credentials = BasicAuthenticator(username: user, password: password)
            }
        }
        guard text.lowercased().hasPrefix("http://") || text.lowercased().hasPrefix("https://") else {
            return Side(name: text, url: nil, headers: headers, credentials: credentials)
        }
        guard let whole = URL(string: text, encodingInvalidCharacters: false),
            var parts = URLComponents(url: whole, resolvingAgainstBaseURL: false),
            !(parts.host ?? "").isEmpty, whole.validPort != nil
        else { throw .badRequest("`\(role)` is not a valid URL") }
        if credentials == nil, let user = parts.user {
            credentials = BasicAuthenticator(username: user, password: parts.password ?? "")
        }
        (parts.user, parts.password) = (nil, nil)
        guard let url = parts.url else { throw .badRequest("`\(role)` is not a valid URL") }
        return Side(name: url.absoluteString, url: url, headers: headers, credentials: credentials)
    }

    /// The ID of the replication, which is the name of its log, too. Only what decides about what is replicated makes a difference.
    ///
    /// - Parameters:
    ///   - server: The UUID of the listener.
    ///   - names: The names of the local source and target; nil where it is a database elsewhere.
    /// - Returns: 32 hexadecimal digits.
    func id(server: String, _ names: (source: String?, target: String?)) -> String {
        func identity(_ side: Side?, _ name: String?) -> JSONValue {
            if let name { return .string(name) }
            guard let side else { return .null }
            var headers: JSONValue = [:]
            for (name, value) in side.headers { headers[name] = .string(value) }
            return [
                "url": .string(side.name), "headers": headers,
                "user": side.credentials.map { .string($0.username) } ?? .null,
            ]
        }
        var parameters: JSONValue = [:]
        for (name, value) in filterParameters { parameters[name] = .string(value) }
        let parts: JSONValue = [
            .string(server), identity(source, names.source), identity(target, names.target),
            documentIDs.map { .array($0.map { .string($0) }) } ?? .null, selector?.value ?? .null,
            filter.map { .string($0) } ?? .null, parameters, since?.value ?? .null, .bool(winnersOnly),
        ]
        return Array(Insecure.MD5.hash(data: JSONText(canonical: parts).bytes)).hexadecimalText
    }
}

extension ReplicateRequest.Side {
    /// The value of an `Authorization` header; nil without credentials.
    var authorization: String? {
        if let credentials {
            return UpgradeHeaders.basic(credentials.username, credentials.password)
        }
        return headers.first { $0.key.lowercased() == "authorization" }?.value
    }

    /// Whether the URL names a server, given one of the server's own URLs.
    func isAt(_ own: URL) -> Bool {
        guard let url, url.scheme?.lowercased() == own.scheme?.lowercased(),
            url.validPort == own.validPort
        else { return false }
        let (host, ownHost) = (Self.host(of: url), Self.host(of: own))
        return host == ownHost || (host == "localhost" && ["127.0.0.1", "::1"].contains(ownHost))
    }

    /// The name of a database in the URL; empty if the path does not name exactly one.
    var databaseName: String {
        let segments = url?.path(percentEncoded: true).split(separator: "/") ?? []
        guard segments.count == 1, url?.query == nil else { return "" }
        return PercentCoding.decode(segments[0]) ?? ""
    }

    /// A URL's host. An address has one form, however it is written.
    private static func host(of url: URL) -> String {
        let text = url.host(percentEncoded: false)?.lowercased() ?? ""
        let host = text.hasPrefix("[") ? String(text.dropFirst().dropLast()) : text
        return (try? SocketAddress(ipAddress: host, port: 0))?.ipAddress ?? host
    }
}
