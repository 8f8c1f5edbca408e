import AsyncHTTPClient
package import Foundation
package import LoveseatCore
package import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
package import LoveseatReplication
import LoveseatStorage
import NIOCore
import NIOHTTP1
import NIOSSL
import Synchronization

/// Sends requests to a remote's server: logs in, follows redirects, validates certificates, and tries again what may pass.
package final class RemoteClient: Sendable {
    private static let maximumRedirects = 10
    private static let connectTimeout = TimeAmount.seconds(15)
    /// How long a remote may be silent within an answer.
    static let idleTimeout = TimeAmount.seconds(90)
    private static let maximumRetries = 4
    /// The deadline of a whole request. Silence has a limit of its own.
    static var deadline: NIODeadline { .now() + .hours(24) }

    private let address: RemoteAddress
    private let options: ConnectionOptions
    private let runtime: ReplicationRuntime
    private let transport: (any RemoteTransport)?
    private let login: RemoteLogin
    /// Which URLs the server may redirect to; nil for all.
    private let allowsURL: (@Sendable (URL) -> Bool)?

    private struct Origin: Hashable {
        let host: String
        let port: Int
        let isSecure: Bool
    }

    private struct State {
        var clients: [Origin: HTTPClient] = [:]
        var isShutDown = false
        var pace = RequestPace()
        var isGateway = false
        /// The start of the server that answered first; nil if it does not say so.
        var start: String?
        var hasRestarted = false
    }

    private let state = Mutex(State())

    package init(
        _ address: RemoteAddress,
        options: ConnectionOptions,
        runtime: ReplicationRuntime,
        transport: (any RemoteTransport)? = nil,
        allowsURL: (@Sendable (URL) -> Bool)? = nil
    ) {
        self.address = address
        self.allowsURL = allowsURL
        self.options = options
        self.runtime = runtime
        self.transport = transport
        login = RemoteLogin(options)
    }

    package func shutDown() async {
        let clients = state.withLock { state in
            state.isShutDown = true
            defer { state.clients = [:] }
            return Array(state.clients.values)
        }
        // A client cannot fail to end in a way that anyone could act on.
        for client in clients { try? await client.shutdown() }
    }

    /// How many requests the server takes at once, as far as it has said so.
    package var requestsAtOnce: Int { state.withLock { $0.pace.requestsAtOnce } }

    /// Whether an answer came from a Sync Gateway, whose own protocol is another one.
    package var isGateway: Bool { state.withLock { $0.isGateway } }

    /// Whether the server was started again since the first answer. It may have lost what it had acknowledged before.
    var hasRestarted: Bool { state.withLock { $0.hasRestarted } }

    // MARK: Requests

    /// Repeats an operation that failed for a reason that may pass within seconds. It must be safe to repeat.
    package func retrying<T: Sendable>(_ operation: () async throws -> T) async throws -> T {
        var wait = Duration.milliseconds(250)
        for attempt in 1... {
            do { return try await operation() } catch {
                guard attempt <= Self.maximumRetries, Self.mayPass(error), !state.withLock({ $0.isShutDown })
                else { throw error }
            }
            try await runtime.clock.sleep(for: wait)
            wait = wait * 2
        }
        throw CancellationError()
    }

    private static func mayPass(_ error: any Error) -> Bool {
        switch error {
        case let error as RemoteFailure:
            [408, 429, 500, 502, 503, 504].contains(error.status) && !error.lacksSpace
                && (error.retryAfter ?? 0) <= 2
        // A timeout took long enough already, and the replicator decides when to connect again.
        case let error as LoveseatError:
            error.isTransient && error.code != .timeout && error.retryAfter == nil
                && !error.isRefusedConnection
        default: false
        }
    }

    /// Sends a request below a path of the server.
    ///
    /// `upload`: the body, if it is not the request's own.
    package func send(_ request: RemoteRequest, to path: String, _ upload: Upload? = nil) async throws
        -> RemoteResponse
    {
        let query = request.query.isEmpty ? "" : "?\(request.query)"
        // A gateway decodes each part of a path twice.
        let name = isGateway ? request.path.replacing("%25", with: "%2525") : request.path
        var target = WebSocketAddress(
            host: address.host,
            port: address.port,
            isSecure: address.isSecure,
            target: path + name + query
        )
        // After a redirect to another host no secrets are sent, not even back to the first host.
        var sendsCredentials = true
        var (redirects, refusals) = (0, 0)
        var waited = 0.0
        while true {
            try await waitForTurn()
            let response = try await attempt(request, target, upload, sendsCredentials: sendsCredentials)
            switch response.status {
            case 429, 503:
                let wait = response.retryAfter.map(RequestPace.wait(told:))
                if wait != nil || response.status == 429 {
                    slowDown(for: min(wait ?? RequestPace.unnamedWait, RequestPace.maximumWait))
                }
                waited += wait ?? 0
                guard wait != nil, waited <= RequestPace.maximumWait else { return response }
                // The next request can use the connection again. If the body breaks off, it opens another one.
                _ = try? await response.bytes(limit: 64 << 10)
            case 301, 302, 303, 307, 308:
                guard let location = response.headers.first(name: "Location") else { return response }
                redirects += 1
                guard redirects <= Self.maximumRedirects else {
                    throw LoveseatError(.tooManyRedirects, "more than \(Self.maximumRedirects) redirects")
                }
                // As above: a body that breaks off only costs the connection.
                _ = try? await response.bytes(limit: 64 << 10)
                let next = try target.redirected(to: location)
                guard next.isSecure || !target.isSecure else {
                    throw LoveseatError(
                        .invalidRedirect,
                        "the server redirected from TLS to \(next.host) without encryption, which is not allowed"
                    )
                }
                if let allowsURL, !(next.url.map(allowsURL) ?? false) {
                    throw LoveseatError(
                        .invalidRedirect,
                        "the server redirected to \(next.host):\(next.port), with which this listener may not replicate"
                    )
                }
                sendsCredentials =
                    sendsCredentials && next.host == target.host && next.port == target.port
                target = next
            case 401 where sendsCredentials:
                refusals += 1
                switch login.next(after: response.headers, attempt: refusals) {
                case .giveUp: return response
                // As above: a body that breaks off only costs the connection.
                case .again: _ = try? await response.bytes(limit: 64 << 10)
                case .session(let username, let password):
                    guard try await logIn(username, password) else { return response }
                    _ = try? await response.bytes(limit: 64 << 10)
                }
            default:
                state.withLock { $0.pace.noteAnswer() }
                return response
            }
        }
    }

    private func slowDown(for seconds: Double) {
        let now = runtime.uptime()
        state.withLock { $0.pace.slowDown(for: seconds, now: now) }
    }

    /// Waits until the server may be asked again.
    private func waitForTurn() async throws {
        while let turn = state.withLock({ $0.pace.notBefore }) {
            let left = turn - runtime.uptime()
            if left <= .zero { return }
            try await runtime.clock.sleep(for: left)
        }
    }

    /// Asks for a session; returns whether there is one now.
    private func logIn(_ username: String, _ password: String) async throws -> Bool {
        let form = "name=\(PathEncoding.segment(username))&password=\(PathEncoding.segment(password))"
        var request = RemoteRequest.session
        request.body = Array(form.utf8)
        let target = WebSocketAddress(
            host: address.host,
            port: address.port,
            isSecure: address.isSecure,
            target: address.rootPath + request.path
        )
        let response = try await attempt(request, target, nil, sendsCredentials: true, authorizes: false)
        // The status and the cookie are in the head: a body that breaks off only costs the connection.
        _ = try? await response.bytes(limit: 64 << 10)
        guard response.status == 200, response.headers.contains(name: "Set-Cookie") else { return false }
        login.beginSession()
        return true
    }

    private func attempt(
        _ request: RemoteRequest,
        _ target: WebSocketAddress,
        _ upload: Upload?,
        sendsCredentials: Bool,
        authorizes: Bool = true
    ) async throws -> RemoteResponse {
        let host = target.host.contains(":") ? "[\(target.host)]" : target.host
        var outgoing = HTTPClientRequest(
            url: "\(target.isSecure ? "https" : "http")://\(host):\(target.port)\(target.target)"
        )
        outgoing.method = HTTPMethod(rawValue: request.method.rawValue)
        outgoing.headers = headers(
            request,
            target,
            sendsCredentials: sendsCredentials,
            authorizes: authorizes
        )
        if let upload {
            outgoing.body = upload.body
        } else if request.method != .get {
            outgoing.body = .bytes(request.body)
        }
        do {
            let response =
                if let transport {
                    try await transport.execute(outgoing) { try await client(for: target) }
                } else {
                    try await client(for: target).execute(outgoing, deadline: Self.deadline)
                }
            if sendsCredentials { keepCookies(response.headers, of: target) }
            noteStart(response.headers, of: target)
            // Some of its answers do not say so.
            if response.headers.first(name: "Server")?.hasPrefix("Couchbase Sync Gateway") ?? false {
                state.withLock { $0.isGateway = true }
            }
            return RemoteResponse(
                status: Int(response.status.code),
                headers: response.headers,
                body: response.body
            )
        } catch { throw LoveseatError(http: error, target) }
    }

    /// Whether an address is that of the server itself, and not of one to which it redirects.
    private func isOwn(_ target: WebSocketAddress) -> Bool {
        target.host == address.host && target.port == address.port
    }

    private func noteStart(_ headers: HTTPHeaders, of target: WebSocketAddress) {
        // Other servers do not say it, and one to which this one redirects has starts of its own.
        guard isOwn(target), let start = headers.first(name: CouchDBServer.startHeader) else { return }
        state.withLock { state in
            if let first = state.start, !first.isExactly(start) { state.hasRestarted = true }
            state.start = state.start ?? start
        }
    }

    private func headers(
        _ request: RemoteRequest,
        _ target: WebSocketAddress,
        sendsCredentials: Bool,
        authorizes: Bool
    ) -> HTTPHeaders {
        var headers: HTTPHeaders = ["User-Agent": "Loveseat", "Accept": request.accept]
        // Another Loveseat names blobs as they are named here. Others ignore this, and it says nothing about anybody.
        headers.add(name: ContentNames.header, value: "sha1")
        if let type = request.contentType { headers.add(name: "Content-Type", value: type) }
        if isOwn(target), let start = state.withLock({ $0.start }) {
            headers.add(name: CouchDBServer.startHeader, value: start)
        }
        guard sendsCredentials else { return headers }
        let text =
            authorizes ? login.authorization(method: request.method.rawValue, target: target.target) : nil
        if let text { headers.add(name: "Authorization", value: text) }
        for (name, value) in options.headers.sorted(by: { $0.key < $1.key })
        where name.lowercased() != "cookie" {
            headers.replaceOrAdd(name: name, value: value)
        }
        let now = Int64(Date().timeIntervalSince1970)
        let cookies = RequestCredentials(options).cookies(for: target, now: now)
        if !cookies.isEmpty { headers.add(name: "Cookie", value: cookies.joined(separator: "; ")) }
        return headers
    }

    private func keepCookies(_ headers: HTTPHeaders, of target: WebSocketAddress) {
        // The app may keep no cookies, and those of an anonymous client belong to nobody.
        guard let storage = options.cookies, let credentials = RequestCredentials(options).name else {
            return
        }
        let cookies = headers["Set-Cookie"].compactMap {
            Cookie(
                header: $0,
                host: target.host,
                path: String(target.target.prefix { $0 != "?" }),
                now: Int64(Date().timeIntervalSince1970),
                acceptsParentDomain: storage.acceptsParentDomain,
                credentials: credentials
            )
        }
        if !cookies.isEmpty { storage.add(cookies) }
    }

    // MARK: Connections

    private func client(for target: WebSocketAddress) async throws -> HTTPClient {
        let origin = Origin(host: target.host, port: target.port, isSecure: target.isSecure)
        if let client = state.withLock({ $0.clients[origin] }) { return client }
        let made = HTTPClient(
            eventLoopGroup: HTTPClient.defaultEventLoopGroup,
            configuration: try await configuration(for: target)
        )
        let client: HTTPClient? = state.withLock { state in
            if state.isShutDown { return nil }
            if let other = state.clients[origin] { return other }
            state.clients[origin] = made
            return made
        }
        // Another request was faster, or the session ended. A client without connections has nothing that can fail to end.
        if client !== made { try? await made.shutdown() }
        guard let client else { throw CancellationError() }
        return client
    }

    private func configuration(for target: WebSocketAddress) async throws -> HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            timeout: .init(connect: Self.connectTimeout, read: Self.idleTimeout, write: .seconds(60)),
            decompression: .disabled
        )
        configuration.httpVersion = .http1Only
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.networkFrameworkWaitForConnectivity = false
        if let proxy = options.proxy {
            configuration.proxy = .server(
                host: proxy.host,
                port: Int(proxy.port),
                authorization: proxy.authenticator.map {
                    .basic(username: $0.username, password: $0.password)
                }
            )
        }
        if let name = options.networkInterface {
            configuration.localAddress = try ListenerAddresses.address(of: name, port: 0).ipAddress
        }
        guard target.isSecure else { return configuration }
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        // The probe has validated the server. Every connection has to show the certificate that the probe saw.
        tls.certificateVerification = .none
        if let identity = (options.authenticator as? ClientCertificateAuthenticator)?.identity {
            try tls.show(identity)
        }
        configuration.tlsConfiguration = tls
        let expected = try await ServerProbe.certificate(host: target.host, port: target.port, options)
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                let handler = try channel.pipeline.syncOperations.handler(type: NIOSSLHandler.self)
                guard try handler.peerCertificate?.toDERBytes() == expected else {
                    channel.close(promise: nil)
                    throw LoveseatError(
                        .webSocketAbnormalClose,
                        "the server showed another certificate than before"
                    )
                }
            }
        }
        return configuration
    }
}

extension WebSocketAddress {
    fileprivate var url: URL? {
        let host = host.contains(":") ? "[\(host)]" : host
        return URL(string: "\(isSecure ? "https" : "http")://\(host):\(port)\(target)")
    }
}
