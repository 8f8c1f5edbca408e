import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import Loveseat
import NIOCore
import NIOPosix
import PhotoDropCore
import Synchronization

/// Serves a page to browsers on this computer that have the token.
package final class WebServer: Sendable {
    package typealias Route = @Sendable (WebRequest) async throws -> WebReply

    private static let tokenBytes = 16
    private static let maximumBody = 1 << 20
    private static let idleTimeout = TimeAmount.seconds(60)
    /// How long ``stop()`` waits for replies that are being sent.
    private static let patience = Duration.seconds(2)
    private static let cookieName = "photodrop"

    private let token = TextCoding.base64URL(RandomBytes.make(tokenBytes))
    private let route: Route
    private let state = Mutex(State())

    private struct State {
        var port = 0
        var listening: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
        /// The requests that are being answered.
        var requests = 0
        /// Finished when there are none.
        var idle: AsyncStream<Void>.Continuation?
    }

    package init(route: @escaping Route) { self.route = route }

    /// Listens on 127.0.0.1, and returns the address of the page with its token.
    ///
    /// - Throws: `usage` if the port is in use.
    package func start(port: Int) async throws -> String {
        let channel: any Channel
        do {
            channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { self.accept(channel) }
                }
                .bind(host: "127.0.0.1", port: port).get()
        } catch {
            throw DropError(.usage, "the page cannot be served on port \(port): \(error)")
        }
        let bound = channel.localAddress?.port ?? port
        state.withLock { ($0.port, $0.listening) = (bound, channel) }
        return "http://127.0.0.1:\(bound)/?k=\(token)"
    }

    /// Stops listening, waits a little for replies that are being sent, and closes the connections.
    package func stop() async {
        let listening = state.withLock { state in
            defer { state.listening = nil }
            return state.listening
        }
        try? await listening?.close().get()
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

    private func accept(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        state.withLock { $0.connections[id] = channel }
        channel.closeFuture.whenComplete { [weak self] _ in
            self?.state.withLock { _ = $0.connections.removeValue(forKey: id) }
        }
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
        guard isOwnHost(request.head.authority) else {
            return .text(.misdirectedRequest, "use the address that photodrop has printed")
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
                guard isOwnOrigin(request) else { return .text(.forbidden, "this page may not do that") }
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
        let cookie = "\(cookie)=\(token); HttpOnly; SameSite=Strict; Path=/"
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

    /// Refuses names that somebody else made point to this computer.
    private func isOwnHost(_ authority: String?) -> Bool {
        let port = state.withLock { $0.port }
        return authority == "127.0.0.1:\(port)" || authority == "localhost:\(port)"
    }

    private func isOwnOrigin(_ request: Request) -> Bool {
        guard let origin = request.headers[.origin] else { return false }
        let port = state.withLock { $0.port }
        return origin == "http://127.0.0.1:\(port)" || origin == "http://localhost:\(port)"
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
