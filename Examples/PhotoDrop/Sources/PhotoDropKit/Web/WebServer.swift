import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import Loveseat
import NIOCore
import NIOPosix
import NIOSSL
import PhotoDropCore
import Synchronization

/// Where a page is served.
package enum WebPlace: Sendable {
    /// On 127.0.0.1, to browsers on this computer.
    case loopback
    /// By HTTPS at some addresses of this computer, which are as in URLs, the best first.
    case network(hosts: [String], identity: TLSIdentity)
}

/// Serves a page to browsers that have the token.
package final class WebServer: Sendable {
    package typealias Route = @Sendable (WebRequest) async throws -> WebReply

    private static let tokenBytes = 16
    private static let maximumBody = 1 << 20
    private static let idleTimeout = TimeAmount.seconds(60)
    /// How long ``stop()`` waits for replies that are being sent.
    private static let patience = Duration.seconds(2)
    private static let cookieName = "photodrop"
    private static let maximumConnections = 64

    private let token = TextCoding.base64URL(RandomBytes.make(tokenBytes))
    private let route: Route
    private let state = Mutex(State())

    private struct State {
        var port = 0
        /// The hosts of the page's addresses.
        var hosts: [String] = []
        var tls: NIOSSLContext?
        var listening: [any Channel] = []
        var connections: [ObjectIdentifier: any Channel] = [:]
        /// The requests that are being answered.
        var requests = 0
        /// Finished when there are none.
        var idle: AsyncStream<Void>.Continuation?
    }

    package init(route: @escaping Route) { self.route = route }

    /// Starts to listen, and returns the address of the page with its token.
    ///
    /// - Throws: `usage` if the port is in use, `disk` if the identity cannot be used.
    package func start(port: Int, at place: WebPlace = .loopback) async throws(DropError) -> String {
        let hosts: [String]
        switch place {
        case .loopback: hosts = ["127.0.0.1"]
        case .network(let addresses, let identity):
            hosts = addresses
            let tls = try Self.tls(identity)
            state.withLock { $0.tls = tls }
        }
        var bound = port
        do {
            for host in hosts {
                // All of them have the port that the first one got.
                let channel = try await bind(host, bound)
                bound = channel.localAddress?.port ?? bound
                state.withLock { $0.listening.append(channel) }
            }
        } catch {
            for channel in state.withLock({ $0.listening }) { channel.close(promise: nil) }
            throw Self.failure(error, port: bound)
        }
        state.withLock { state in
            state.port = bound
            state.hosts = state.tls == nil ? hosts + ["localhost"] : hosts
        }
        return "\(origins.first ?? "")/?k=\(token)"
    }

    private static func failure(_ error: any Error, port: Int) -> DropError {
        guard let number = (error as? IOError)?.errnoCode else {
            return DropError(.usage, "the page cannot be served on port \(port): \(error)")
        }
        let reason = number == EADDRINUSE ? "it is in use" : String(cString: strerror(number)).lowercased()
        return DropError(
            .usage,
            "the page cannot be served on port \(port), because \(reason): use another --web-port, or 0 for a free one"
        )
    }

    private func bind(_ host: String, _ port: Int) async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.accept(channel) }
            }
            .bind(host: host.trimmingCharacters(in: ["[", "]"]), port: port).get()
    }

    private static func tls(_ identity: TLSIdentity) throws(DropError) -> NIOSSLContext {
        do {
            let pem = Array(try identity.pem(passphrase: nil).utf8)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: try NIOSSLCertificate.fromPEMBytes(pem).map { .certificate($0) },
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: pem, format: .pem))
            )
            configuration.minimumTLSVersion = .tlsv12
            configuration.applicationProtocols = ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        } catch { throw DropError(.disk, "the page cannot be served by HTTPS: \(error)") }
    }

    /// Stops listening, waits a little for replies that are being sent, and closes the connections.
    package func stop() async {
        let listening = state.withLock { state in
            defer { state.listening = [] }
            return state.listening
        }
        for channel in listening { try? await channel.close().get() }
        await finishReplies()
        for channel in state.withLock({ Array($0.connections.values) }) { channel.close(promise: nil) }
    }

    private func finishReplies() async {
        let (idle, end) = AsyncStream<Void>.makeStream()
        let isIdle = state.withLock { state in
            state.idle = end
            return state.requests == 0
        }
        if isIdle { end.finish() }
        let timer = Task {
            try? await Task.sleep(for: Self.patience)
            end.finish()
        }
        for await _ in idle {}
        timer.cancel()
    }

    private func begin() { state.withLock { $0.requests += 1 } }

    private func end() {
        let idle = state.withLock { state in
            state.requests -= 1
            return state.requests == 0 ? state.idle : nil
        }
        idle?.finish()
    }

    private func accept(_ channel: any Channel) throws {
        let id = ObjectIdentifier(channel)
        let (isAccepted, tls) = state.withLock { state in
            guard state.connections.count < Self.maximumConnections else { return (false, state.tls) }
            state.connections[id] = channel
            return (true, state.tls)
        }
        guard isAccepted else { return channel.close(promise: nil) }
        channel.closeFuture.whenComplete { [weak self] _ in
            self?.state.withLock { _ = $0.connections.removeValue(forKey: id) }
        }
        if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
        let http = HTTP1Channel(
            responder: { [weak self] request, writer, _ in
                self?.begin()
                defer { self?.end() }
                let reply = await self?.reply(to: request) ?? .notFound
                let response = reply.response(isHead: request.method == .head)
                try await writer.write(response: response.head, body: response.body)
            },
            configuration: .init(idleTimeout: Self.idleTimeout)
        )
        let logger = Logger(label: "photodrop.web") { _ in SwiftLogNoOpLogHandler() }
        http.setup(channel: channel, logger: logger).whenComplete { result in
            switch result {
            case .failure: channel.close(promise: nil)
            case .success(let value): Task { await http.handle(value: value, logger: logger) }
            }
        }
    }

    private func reply(to request: Request) async -> WebReply {
        let others = request.headers.filter { $0.name.canonicalName == "host" }.map(\.value)
        let hosts = [request.head.authority].compactMap(\.self) + others
        do { try policy.check(hosts: hosts, origins: request.headers[values: .origin]) } catch {
            return .text(
                .init(code: error.status),
                error.status == 403
                    ? "this page may not do that" : "use the address that photodrop has printed"
            )
        }
        let target = request.head.path ?? "/"
        if let key = URLComponents(string: target)?.queryItems?.first(where: { $0.name == "k" })?.value {
            return begin(key, path: String(target.prefix { $0 != "?" }))
        }
        guard hasCookie(request) else {
            return .text(.forbidden, "use the address that photodrop has printed")
        }
        do {
            switch request.method {
            case .get, .head: return try await route(WebRequest(request, body: []))
            case .post:
                // Only a browser sends the cookie, and it says for which page.
                guard request.headers[.origin] != nil else {
                    return .text(.forbidden, "this page may not do that")
                }
                var body = try await request.body.collect(upTo: Self.maximumBody)
                return try await route(
                    WebRequest(request, body: body.readBytes(length: body.readableBytes) ?? [])
                )
            default: return .text(.methodNotAllowed, "use GET or POST")
            }
        } catch let error as DropError {
            return .text(.badRequest, error.message)
        } catch { return .text(.internalServerError, "\(error)") }
    }

    /// Exchanges the token in the address for a cookie.
    private func begin(_ key: String, path: String) -> WebReply {
        guard ListenerPasswordAuthenticator.isEqual(token, key) else {
            return .text(.forbidden, "use the address that photodrop has printed")
        }
        let isSecure = state.withLock { $0.tls != nil }
        let cookie = "\(cookie)=\(token); HttpOnly; SameSite=Strict; Path=/\(isSecure ? "; Secure" : "")"
        let headers = [("Location", path), ("Set-Cookie", cookie), ("Cache-Control", "no-store")]
        return WebReply(.seeOther, headers.map { (name: $0.0, value: $0.1) }, .bytes([]))
    }

    /// Cookies do not depend on the port: two sessions on one computer need two names.
    private var cookie: String { "\(Self.cookieName)-\(state.withLock { $0.port })" }

    private func hasCookie(_ request: Request) -> Bool {
        let given = request.headers[values: .cookie].flatMap { $0.split(separator: ";") }
        let prefix = "\(cookie)="
        return given.contains { pair in
            let pair = pair.trimmingCharacters(in: .whitespaces)
            return pair.hasPrefix(prefix)
                && ListenerPasswordAuthenticator.isEqual(token, String(pair.dropFirst(prefix.count)))
        }
    }

    /// The origins that the page has, the best first.
    private var origins: [String] {
        state.withLock { state in
            state.hosts.map { "\(state.tls == nil ? "http" : "https")://\($0):\(state.port)" }
        }
    }

    /// Refuses names that somebody else made point to this computer, and other pages.
    private var policy: RequestPolicy {
        state.withLock { state in
            RequestPolicy(
                hosts: .exactly(state.hosts.map { "\($0):\(state.port)" }),
                allowsOwnPages: true,
                isSecure: state.tls != nil
            )
        }
    }
}

/// A request of a browser that has the token.
package struct WebRequest: Sendable {
    package let isPost: Bool
    /// The decoded parts of the path.
    package let path: [String]
    package let headers: HTTPFields
    package let body: [UInt8]
    package let incoming: RequestBody

    init(_ request: Request, body: [UInt8]) {
        isPost = request.method == .post
        let target = request.head.path ?? "/"
        path = target.prefix { $0 != "?" }.split(separator: "/").map { $0.removingPercentEncoding ?? "" }
        headers = request.headers
        self.body = body
        incoming = request.body
    }

    package func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }
}
