import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import LoveseatModel
import LoveseatNetwork
import NIOCore
import NIOPosix
import Synchronization

/// Serves a page to browsers on this computer that have the token.
final class WebServer: Sendable {
    typealias Route = @Sendable (WebRequest) async throws -> WebReply

    private static let tokenBytes = 16
    private static let maximumBody = 24 << 20
    private static let maximumConnections = 64
    private static let idleTimeout = TimeAmount.seconds(60)
    private static let cookieName = "loveseat-inspector"
    private static let refusal = "use the address that `loveseat` has printed"

    let token: String
    private let route: Route
    private let state = Mutex(State())

    private struct State {
        var port = 0
        var listening: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
        var isStopped = false
    }

    init(route: @escaping Route) {
        token = (0..<Self.tokenBytes).map { _ in UInt8.random(in: .min ... .max) }.hexadecimalText
        self.route = route
    }

    /// Listens on 127.0.0.1, and returns the page's address with its token.
    ///
    /// - Throws: `LoveseatError`: `EADDRINUSE` of the `posix` domain if the port is in use.
    func start(port: Int) async throws -> String {
        let channel: any Channel
        do {
            channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { self.accept(channel) }
                }
                .bind(host: "127.0.0.1", port: port).get()
        } catch let error as IOError {
            throw LoveseatError(
                .init(Int(error.errnoCode), domain: .posix),
                "the inspector cannot listen on port \(port): \(String(cString: strerror(error.errnoCode)))"
            )
        }
        let bound = channel.localAddress?.port ?? port
        state.withLock { ($0.port, $0.listening) = (bound, channel) }
        return "http://127.0.0.1:\(bound)/?k=\(token)"
    }

    /// Stops listening, and closes the connections.
    func stop() async {
        let (listening, connections) = state.withLock { state in
            state.isStopped = true
            defer { state.listening = nil }
            return (state.listening, Array(state.connections.values))
        }
        // Channels may have closed by themselves.
        try? await listening?.close().get()
        for channel in connections { channel.close(promise: nil) }
        for channel in connections { try? await channel.closeFuture.get() }
    }

    private func accept(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isAccepted = state.withLock { state in
            guard !state.isStopped, state.connections.count < Self.maximumConnections else { return false }
            state.connections[id] = channel
            return true
        }
        guard isAccepted else { return channel.close(promise: nil) }
        channel.closeFuture.whenComplete { [weak self] _ in
            self?.state.withLock { _ = $0.connections.removeValue(forKey: id) }
        }
        let http = HTTP1Channel(
            responder: { [weak self] request, writer, _ in
                let reply = await self?.reply(to: request) ?? .notFound
                let response = reply.response(isHead: request.method == .head)
                try await writer.write(response: response.head, body: response.body)
            },
            configuration: .init(idleTimeout: Self.idleTimeout)
        )
        let logger = Logger(label: "loveseat.inspector") { _ in SwiftLogNoOpLogHandler() }
        http.setup(channel: channel, logger: logger).whenComplete { result in
            switch result {
            case .failure: channel.close(promise: nil)
            case .success(let value): Task { await http.handle(value: value, logger: logger) }
            }
        }
    }

    private func reply(to request: Request) async -> WebReply {
        let hosts =
            [request.head.authority].compactMap(\.self)
            + request.headers.filter { $0.name.canonicalName == "host" }.map(\.value)
        do { try policy.check(hosts: hosts, origins: request.headers[values: .origin]) } catch {
            return .failure(
                .init(code: error.status),
                error.status == 403 ? "another page may not do that" : Self.refusal
            )
        }
        let asked = WebRequest(request, body: [])
        if let key = asked.query["k"] { return begin(key, path: asked.path) }
        let hasKey = self.hasKey(request)
        guard hasKey || hasCookie(request) else { return .failure(.forbidden, Self.refusal) }
        do {
            switch request.method {
            case .get, .head: return try await route(asked)
            case .post:
                // Only a browser sends cookies on behalf of other pages, and it says of which.
                guard hasKey != (request.headers[.origin] != nil) else {
                    return .failure(.forbidden, "another page may not do that")
                }
                var body = try await request.body.collect(upTo: Self.maximumBody)
                return try await route(
                    WebRequest(request, body: body.readBytes(length: body.readableBytes) ?? [])
                )
            default: return .failure(.methodNotAllowed, "use GET or POST")
            }
        } catch let error as LoveseatError { return .failure(error) } catch is NIOTooManyBytesError {
            return .failure(.contentTooLarge, "the request has more than \(Self.maximumBody) bytes")
        } catch { return .failure(.internalServerError, "\(error)") }
    }

    /// Exchanges the token in the address for a cookie.
    private func begin(_ key: String, path: [String]) -> WebReply {
        guard isToken(key), path.isEmpty else { return .failure(.forbidden, Self.refusal) }
        let cookie = "\(cookie)=\(token); HttpOnly; SameSite=Strict; Path=/"
        let headers = [("Location", "/"), ("Set-Cookie", cookie), ("Cache-Control", "no-store")]
        return WebReply(.seeOther, headers.map { (name: $0.0, value: $0.1) }, .bytes([]))
    }

    /// Cookies do not depend on the port: two inspectors on one computer need two names.
    private var cookie: String { "\(Self.cookieName)-\(state.withLock { $0.port })" }

    /// Takes the same time for every text of the token's length.
    private func isToken(_ text: some StringProtocol) -> Bool {
        let (own, given) = (Array(token.utf8), Array(text.utf8))
        guard own.count == given.count else { return false }
        return zip(own, given).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private func hasCookie(_ request: Request) -> Bool {
        let given = request.headers[values: .cookie].flatMap { $0.split(separator: ";") }
        let prefix = "\(cookie)="
        return given.contains { pair in
            let pair = pair.drop { $0 == " " }
            return pair.hasPrefix(prefix) && isToken(pair.dropFirst(prefix.count))
        }
    }

    /// For programs.
    private func hasKey(_ request: Request) -> Bool {
        guard let given = request.headers[.authorization], given.hasPrefix("Bearer ") else { return false }
        return isToken(given.dropFirst("Bearer ".count))
    }

    /// Refuses names that another party made point to this computer, and other pages.
    private var policy: RequestPolicy {
        let port = state.withLock { $0.port }
        return RequestPolicy(
            hosts: .exactly(["127.0.0.1:\(port)", "localhost:\(port)"]),
            allowsOwnPages: true,
            isSecure: false
        )
    }
}
