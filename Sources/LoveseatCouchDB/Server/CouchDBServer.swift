import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import LoveseatStorage
import NIOCore
import NIOHTTP1
import Synchronization

/// Answers the requests of CouchDB's wire (protocol/couchdb.md §4–§8).
final class CouchDBServer: Sendable {
    /// The limits and permissions.
    struct Settings: Sendable {
        var policy: AccessPolicy?
        var incomingFilter: IncomingFilter?
        var isReadOnly = false
        var isWriteOnly = false
        /// Which hosts and which web pages are served.
        var requests: RequestPolicy
        var maximumRequestSize = 64 << 20
        /// How many bytes all requests together may hold, if that is enough for the largest one.
        var heldBytes = 512 << 20
        var maximumInlineAttachments: UInt64 = 1 << 30
        var maximumDocumentSize = 8_000_000
        var isSecure = true
        /// Whether passwords may come unencrypted, or come encrypted.
        var allowsBasic = true
        /// Which databases elsewhere clients may let this listener replicate with; nil for none.
        var allowsReplicationWith: (@Sendable (URL) -> Bool)?
        /// For the simulator: whether large bodies are read where they arrive.
        var worksInPlace = false
        /// Changes the settings of a replication with a database elsewhere.
        var prepareReplication: (@Sendable (URL, inout ReplicatorConfiguration) -> Void)?
    }

    /// The results that one request leaves for the next.
    struct Caches: Sendable {
        let visibleCounts = VisibleCounts()
        let pages = ChangesPages()
        let branches = LastBranches()
        let md5s = MD5Work()
        /// Writes the parts of large batches, one at a time: a small write waits for one of them at most.
        let writers = BodyWorkers(places: 1)
    }

    /// The bytes that all requests at once may have.
    struct Budgets: Sendable {
        /// Bodies, in memory.
        let bodies: BodyBudget
        /// Attachments that come within JSON, on the disk.
        let inline: BodyBudget

        init(_ settings: Settings) {
            bodies = BodyBudget(limit: max(settings.heldBytes, settings.maximumRequestSize))
            inline = BodyBudget(limit: Int(clamping: min(settings.maximumInlineAttachments, .max / 4)) * 2)
        }
    }

    static let version = "3.3.3"
    static let product = "Loveseat"

    let databases: Databases
    let settings: Settings
    let authentication: RequestAuthentication
    let clients = ReplicatingClients()
    let jobs = ReplicationJobs()
    /// How many compactions that clients asked for have not ended. A client that asked for one waits until none is running.
    let compactions = Mutex(0)
    let caches = Caches()
    /// The URLs that mean this listener.
    let urls: @Sendable () -> [URL]
    let budgets: Budgets
    /// The listener's identity, by which clients recognise it.
    let uuid: String
    /// The name of the header that says which start of the listener answers.
    static let startHeader = "Loveseat-Start"
    /// Another text at each start of the listener. Answers to clients before a start may have been lost with the power.
    let start = (0..<16).map { _ in UInt8.random(in: 0...255) }.hexadecimalText

    init(
        databases: Databases,
        settings: Settings,
        authenticator: ConnectionAuthenticator,
        needsLogin: Bool,
        urls: @escaping @Sendable () -> [URL],
        admit: @escaping @Sendable (any Channel) -> Void
    ) throws {
        self.databases = databases
        self.settings = settings
        self.urls = urls
        authentication = RequestAuthentication(authenticator, isRequired: needsLogin, settings, admit: admit)
        budgets = Budgets(settings)
        let stored = try databases.database.store.readRows { try $0.info("public_uuid") } ?? ""
        let digits = stored.lowercased().filter(\.isHexDigit)
        uuid = digits.count == 32 ? digits : String(repeating: "0", count: 32)
    }

    /// Answers a request, and writes the answer.
    func respond(
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel,
        _ shown: ShownCertificates?
    ) async throws {
        let (response, closes) = await response(to: request, channel, shown)
        try await writer.write(response: response.head, body: response.body)
        if !closes { return }
        // The rest of the answer is sent first: the end of the connection would drop it.
        try await channel.close(mode: .output).get()
        throw ConnectionEnd()
    }

    /// Answers a request. `closes`: whether the connection ends with the answer.
    func response(to request: Request, _ channel: any Channel, _ shown: ShownCertificates?) async
        -> (response: Response, closes: Bool)
    {
        var reply = await reply(to: request, channel, shown)
        finish(&reply, request)
        // A query may have secrets in it.
        let path = (request.head.path ?? "/").prefix { $0 != "?" }
        let response = reply.response(
            isHead: request.method == .head,
            on: channel.eventLoop,
            to: "\(request.method.rawValue) \(path)"
        )
        return (response, reply.closes)
    }

    /// Ends a connection after its answer.
    struct ConnectionEnd: Error {}

    private func reply(to request: Request, _ channel: any Channel, _ shown: ShownCertificates?) async
        -> Reply
    {
        do {
            try checkSource(of: request)
            let memory = RequestMemory(budgets.bodies)
            var exchange = try Exchange(request, channel, isSecure: settings.isSecure, memory)
            if let preflight = CORS(settings.requests).preflight(exchange) { return preflight }
            if exchange.path != ["_up"] {
                let cookie = try await authentication.authenticate(&exchange, channel, shown)
                var reply = try await route(exchange)
                try hold(exchange, by: &reply)
                if let cookie, reply.header("Set-Cookie") == nil {
                    reply.headers.append((name: "Set-Cookie", value: cookie))
                }
                return reply
            }
            return try await route(exchange)
        } catch {
            var reply = Reply(Self.error(error))
            // The rest of a large body is not read: the connection ends instead.
            let length = request.headers[.contentLength].flatMap { Int($0) }
            let hasBody = length.map { $0 > 64 << 10 } ?? (request.headers[.transferEncoding] != nil)
            if hasBody {
                reply.closes = true
                reply.headers.append((name: "Connection", value: "close"))
            }
            return reply
        }
    }

    /// Has a reply keep the memory of its request, and that of its own text if it is large, until it was sent.
    private func hold(_ exchange: Exchange, by reply: inout Reply) throws(CouchDBError) {
        reply.memory = exchange.memory
        // Most answers are small, or are made while they are sent.
        guard case .bytes(let bytes) = reply.body, bytes.count > BodyWorkers.smallBody else { return }
        // A client whose documents are stored must learn that.
        if exchange.isRead {
            try exchange.memory.reserve(bytes.count)
        } else {
            exchange.memory.add(bytes.count)
        }
    }

    /// - Throws: the refusal of a web page, or of the name of another host.
    private func checkSource(of request: Request) throws(CouchDBError) {
        // The first `Host` became the authority.
        let hosts =
            [request.head.authority].compactMap(\.self)
            + request.headers.filter { $0.name.canonicalName == "host" }.map(\.value)
        do {
            try settings.requests.check(
                target: request.head.path ?? "/",
                hosts: hosts,
                origins: request.headers[values: .origin],
                transferEncodings: request.headers[values: .transferEncoding]
            )
        } catch {
            let words = [403: "forbidden", 421: "misdirected_request", 501: "not_implemented"]
            throw CouchDBError(error.status, words[error.status] ?? "bad_request", error.reason)
        }
    }

    private func finish(_ reply: inout Reply, _ request: Request) {
        reply.headers.append((name: "Server", value: Self.product))
        reply.headers.append((name: Self.startHeader, value: start))
        if reply.header("Cache-Control") == nil {
            reply.headers.append((name: "Cache-Control", value: "must-revalidate"))
        }
        // A proxy must not send one client the digests that another has asked for.
        if let name = HTTPField.Name(ContentNames.header), request.headers[name] != nil {
            reply.headers.append((name: "Vary", value: ContentNames.header))
        }
        // A client that asked for the end of the connection uses it again unless the answer announces the end.
        let wishes = request.headers[values: .connection].flatMap { $0.lowercased().split(separator: ",") }
        if wishes.contains(where: { $0.trimmingCharacters(in: .whitespaces) == "close" }), !reply.closes {
            reply.closes = true
            reply.headers.append((name: "Connection", value: "close"))
        }
        CORS(settings.requests).mark(&reply, request)
        if reply.status == 401, request.headers[.origin] == nil, reply.header("WWW-Authenticate") == nil {
            reply.headers += authentication.challenges().map { (name: $0[0], value: $0[1]) }
        }
    }

    /// Whether an error only means that the database was closed or deleted.
    static func isEndOfDatabase(_ error: any Error) -> Bool {
        if let error = error as? CouchDBError { return error == .noDatabase }
        return LoveseatError(storage: error).code == .notOpen
    }

    /// Logs an error that cuts an answer. The client only sees that the answer has no end. A client that went away, and a database that was
    /// closed or deleted, are not logged.
    static func logCut(_ error: any Error, in request: String) {
        if error is PacedWriter.ClientIsGone || error is CancellationError || isEndOfDatabase(error) {
            return
        }
        let reason = (error as? CouchDBError)?.reason ?? "\(LoveseatError(storage: error))"
        LogDomain.listener.log(.error, "the answer to \(request) was cut: \(reason)")
    }

    private static let failure = "the database could not be read or written: its log says why"

    /// Converts an error to the answer for a client.
    static func error(_ error: any Error) -> CouchDBError {
        switch error {
        case let error as CouchDBError: return error
        case let error as StoreWriteTransaction.EditRefusal: return error == .missing ? .missing : .conflict
        case let error as RevisionTree.InsertRefusal:
            return error == .conflict
                ? .forbidden("the document has \(RevisionTree.keptLeaves) conflicts: resolve some")
                : .badRequest("the history contradicts what is known of the document")
        case is HTTPParserError: return .badRequest("the request's body is broken")
        case let error as MultipartError: return .badRequest("the multipart message is broken: \(error)")
        case let error as HTTPRefusal:
            var answer = CouchDBError(
                Int(error.status.code),
                error.status == .unauthorized ? "unauthorized" : "too_many_requests",
                error.status == .unauthorized ? "Name or password is incorrect." : error.reason
            )
            answer.headers = error.headers.filter { $0.first != "WWW-Authenticate" }
            return answer
        case let error as LoveseatError:
            switch error.code {
            case .notOpen, .notFound: return .noDatabase
            case .busy: return CouchDBError(503, "service_unavailable", error.message)
            case .notWriteable: return .forbidden(error.message)
            case LoveseatError.Code(Int(ENOSPC), domain: .posix),
                LoveseatError.Code(Int(EDQUOT), domain: .posix):
                LogDomain.listener.log(.error, "\(error)")
                return CouchDBError(507, "insufficient_storage", "the disk is full")
            default: break
            }
            LogDomain.listener.log(.error, "\(error)")
            // SQLite's messages name tables, and are not for clients.
            let isInternal = error.code.domain == .sqlite
            return CouchDBError(500, "internal_server_error", isInternal ? Self.failure : error.message)
        case _ where DocumentStore.isStorageError(error):
            return Self.error(LoveseatError(storage: error))
        default:
            LogDomain.listener.log(.error, "\(error)")
            return CouchDBError(500, "internal_server_error", Self.failure)
        }
    }
}
