import Crypto
import Foundation
import HTTPTypes
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import NIOCore
import NIOHTTP1

/// Cookie sessions (protocol/couchdb.md §7). A cookie holds the name and the time, signed with a key of this process.
struct Sessions: Sendable {
    static let cookieName = "AuthSession"
    /// How long a cookie is valid, in seconds.
    static let lifetime = 600
    private let key = SymmetricKey(size: .bits256)

    private func signature(_ text: String) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
    }

    func cookie(for name: String, isSecure: Bool, now: Int) -> String {
        let text = "\(String(now, radix: 16)):\(name)"
        let value = Base64.encode(Array(text.utf8) + signature(text))
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return
            "\(Self.cookieName)=\(value); Version=1; Max-Age=\(Self.lifetime); Path=/; HttpOnly; SameSite=Lax"
            + (isSecure ? "; Secure" : "")
    }

    static let cleared = "\(cookieName)=; Version=1; Max-Age=0; Path=/; HttpOnly; SameSite=Lax"

    /// The name and age of a cookie; nil for one that has expired or was not made here.
    func name(in cookie: String, now: Int) -> (name: String, age: Int)? {
        var text = cookie.replacing("-", with: "+").replacing("_", with: "/")
        while text.utf8.count % 4 != 0 { text += "=" }
        guard let bytes = Base64.decode(Substring(text)), bytes.count > 32 else { return nil }
        let content = String(decoding: bytes.dropLast(32), as: UTF8.self)
        let isOurs = HMAC<SHA256>.isValidAuthenticationCode(
            bytes.suffix(32),
            authenticating: bytes.dropLast(32),
            using: key
        )
        guard isOurs, let colon = content.firstIndex(of: ":"),
            let time = Int(content[..<colon], radix: 16),
            (-5..<Self.lifetime).contains(now.subtractingSaturated(time))
        else { return nil }
        return (String(content[content.index(after: colon)...]), now - time)
    }

    static var now: Int { Int(ProcessInfo.processInfo.systemUptime) }
}

/// The authentication of requests: by a cookie, with Digest, by a password or a certificate.
struct RequestAuthentication: Sendable {
    let authenticator: ConnectionAuthenticator
    /// Whether clients have to prove who they are.
    let isRequired: Bool
    let allowsBasic: Bool
    let isSecure: Bool
    /// Nil where Digest is not offered.
    let digest: DigestLogin?
    /// Called with the connection of a client that has proved who it is: others are closed after a while.
    let admit: @Sendable (any Channel) -> Void
    private let sessions = Sessions()

    init(
        _ authenticator: ConnectionAuthenticator,
        isRequired: Bool,
        _ settings: CouchDBServer.Settings,
        admit: @escaping @Sendable (any Channel) -> Void
    ) {
        (self.authenticator, self.isRequired, self.admit) = (authenticator, isRequired, admit)
        (allowsBasic, isSecure) = (settings.allowsBasic, settings.isSecure)
        digest = isSecure ? nil : authenticator.secrets.map { DigestLogin($0) }
    }

    /// A new cookie of a user's session.
    fileprivate func cookie(for name: String) -> String {
        sessions.cookie(for: name, isSecure: isSecure, now: Sessions.now)
    }

    /// The values of all cookies of this name: browsers also send those of other servers at the same host.
    private func sessionCookies(_ exchange: Exchange) -> [String] {
        exchange.headers[values: .cookie].flatMap { $0.split(separator: ";") }.compactMap { pair in
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].filter({ $0 != " " }) == Sessions.cookieName else { return nil }
            let value = String(parts[1]).filter { $0 != " " && $0 != "\"" }
            return value.isEmpty ? nil : value
        }
    }

    /// The user of the first cookie that is ours and valid; nil if none is.
    private func sessionUser(_ exchange: Exchange) -> (name: String, age: Int)? {
        sessionCookies(exchange).lazy.compactMap { sessions.name(in: $0, now: Sessions.now) }.first
    }

    /// Finds out who asks.
    ///
    /// - Returns: a cookie that replaces an old one.
    /// - Throws: `unauthorized`.
    func authenticate(_ exchange: inout Exchange, _ channel: any Channel, _ shown: ShownCertificates?)
        async throws
        -> String?
    {
        let address = PeerAddress(channel.remoteAddress).text
        exchange.peer = PeerIdentity(address: address)
        let isSession = exchange.path.first.isExactly("_session")
        // Any client may learn which server this is, as with CouchDB.
        let isStatus =
            exchange.path.isEmpty || (exchange.path.count == 1 && exchange.path[0].isExactly("_up"))
        let isForAll = isSession || (exchange.isRead && isStatus)
        if isRequired, let (name, age) = sessionUser(exchange) {
            exchange.peer = PeerIdentity(username: name, certificates: [], address: address)
            exchange.login = .cookie
            admit(channel)
            return age * 10 > Sessions.lifetime ? cookie(for: name) : nil
        }
        if let authorization = exchange.headers[.authorization],
            authorization.lowercased().hasPrefix("digest ")
        {
            if let digest {
                exchange.peer = try await logIn(authorization, digest, exchange, address, shown)
                exchange.login = .digest
                admit(channel)
                return nil
            }
        }
        try refuseBasic(exchange)
        // For a session, a password authenticator accepts no other scheme than Basic.
        let basic = exchange.headers[.authorization].map { $0.lowercased().hasPrefix("basic ") } ?? false
        let hasCredentials =
            exchange.headers[.authorization] != nil && (basic || !(authenticator.isPasswords && isSession))
        if isRequired, isForAll, !hasCredentials, shown?.outcome.peer == nil { return nil }
        do {
            exchange.peer = try await identify(exchange.headers[.authorization], address, shown)
            exchange.login = hasCredentials ? .basic : .none
            admit(channel)
        } catch {
            guard !hasCredentials, error.status == .unauthorized else { throw error }
            throw CouchDBError(401, "unauthorized", "You are not authorized to access this db.")
        }
        return nil
    }

    /// Finds out who the user of an `Authorization` header is.
    func identify(_ authorization: String?, _ address: String, _ shown: ShownCertificates?)
        async throws(HTTPRefusal) -> PeerIdentity
    {
        var headers = HTTPHeaders()
        if let authorization { headers.add(name: "Authorization", value: authorization) }
        let answer = try await authenticator.answer(
            headers,
            address: address,
            shown: shown?.outcome,
            run: nil
        )
        guard case .admitted(let peer) = answer else { throw .unauthorized }
        return peer
    }
}

/// `_session` (protocol/couchdb.md §7).
struct SessionResource: Resource {
    let server: CouchDBServer

    func answer(_ exchange: Exchange) async throws -> Reply {
        switch exchange.method {
        case "POST": return try await logIn(exchange)
        case "DELETE": return .json(200, ["ok": true], headers: [("Set-Cookie", Sessions.cleared)])
        default:
            var info: JSONValue = ["authentication_handlers": ["cookie", "default"]]
            if let login = exchange.login.name { info["authenticated"] = .string(login) }
            let name = exchange.peer.username.map { JSONValue.string($0) } ?? .null
            let isAdmin = !server.authentication.isRequired || exchange.peer.username != nil
            return .json(
                200,
                [
                    "ok": true, "userCtx": ["name": name, "roles": isAdmin ? ["_admin"] : []], "info": info,
                ]
            )
        }
    }

    private func logIn(_ exchange: Exchange) async throws -> Reply {
        let authentication = server.authentication
        guard authentication.allowsBasic else {
            throw CouchDBError.notFound("this listener has no sessions without TLS: use Digest")
        }
        if let next = exchange.query["next"], !Self.isPath(next) {
            throw CouchDBError.badRequest("path must begin with a /, and be a path of this server.")
        }
        let (name, password) = try await withBody(exchange) { bytes in
            try Self.credentials(bytes, type: exchange.headers[.contentType])
        }
        var reply: Reply
        do {
            let basic = UpgradeHeaders.basic(name, password)
            _ = try await authentication.identify(basic, exchange.peer.address, nil)
            authentication.admit(exchange.channel)
            reply = .json(200, ["ok": true, "name": .string(name), "roles": ["_admin"]])
            reply.headers.append((name: "Set-Cookie", value: authentication.cookie(for: name)))
            if let next = exchange.query["next"] {
                reply.status = 302
                reply.headers.append((name: "Location", value: next))
            }
        } catch {
            reply = Reply(CouchDBServer.error(error))
            reply.headers.append((name: "Set-Cookie", value: Sessions.cleared))
        }
        return reply
    }

    /// Whether a text leads nowhere but to this server. Browsers read a backslash as a slash, and leave out control characters.
    static func isPath(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.first == UInt8(ascii: "/") && bytes.dropFirst().first != UInt8(ascii: "/")
            && bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }
    }

    private static func credentials(_ bytes: [UInt8], type: String?) throws -> (String, String) {
        if let type = type.flatMap({ MediaType($0) }), type.matches("application", "json") {
            let json = try RequestJSON.parse(bytes)
            guard let name = json["name"]?.string ?? json["username"]?.string else {
                throw CouchDBError.badRequest("request body must contain a username")
            }
            guard let password = json["password"]?.string else {
                throw CouchDBError.badRequest("request body must contain a password")
            }
            return (name, password)
        }
        let form = try Query(String(decoding: bytes, as: UTF8.self))
        return (form["name"] ?? form["username"] ?? "", form["password"] ?? "")
    }
}

/// How a client has proved who it is.
enum Login: Sendable {
    case none, basic, cookie, digest

    var name: String? {
        switch self {
        case .none: nil
        case .basic: "default"
        case .cookie: "cookie"
        case .digest: "digest"
        }
    }
}
