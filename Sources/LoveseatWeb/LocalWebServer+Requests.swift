import LoveseatModel
import LoveseatNetwork
import NIOHTTP1
import Synchronization

extension LocalWebServer {
    func reply(to request: HTTPRequestHead, _ requests: inout WebConnection.Requests) async throws -> WebReply
    {
        do {
            try policy.check(
                target: request.uri,
                hosts: request.headers["Host"],
                origins: request.headers["Origin"],
                transferEncodings: request.headers["Transfer-Encoding"]
            )
        } catch {
            return error.status == 403 ? refusedPage : refused(error.status)
        }
        let asked = WebRequest(request, body: [])
        if let key = asked.query["k"] { return begin(key, path: asked.path) }
        let hasKey = options.allowsPrograms && hasKey(request)
        guard hasKey || hasCookie(request) else { return refused() }
        var body: [UInt8] = []
        switch request.method {
        case .GET, .HEAD: break
        case .POST:
            // Only a browser sends cookies on behalf of other pages, and it says of which.
            guard hasKey != request.headers.contains(name: "Origin") else { return refusedPage }
            guard let given = try await requests.body(upTo: options.maximumBody) else {
                return options.refusal(413, "the request has more than \(options.maximumBody) bytes")
            }
            body = given
        default: return options.refusal(405, "use GET or POST")
        }
        do { return try await route(WebRequest(request, body: body)) } catch {
            return options.refusal(500, "\(error)")
        }
    }

    private func refused(_ status: Int = 403) -> WebReply {
        options.refusal(status, "use the address that \(options.program) has printed")
    }

    private var refusedPage: WebReply { options.refusal(403, "another page may not do that") }

    /// Exchanges the token in the address for a cookie.
    private func begin(_ key: String, path: [String]) -> WebReply {
        guard ListenerPasswordAuthenticator.isEqual(token, key), path.isEmpty else { return refused() }
        let secure = state.withLock { $0.tls == nil } ? "" : "; Secure"
        let cookie = "\(cookie)=\(token); HttpOnly; SameSite=Strict; Path=/\(secure)"
        let headers = [("Location", "/"), ("Set-Cookie", cookie), ("Cache-Control", "no-store")]
        return WebReply(.seeOther, headers.map { (name: $0.0, value: $0.1) }, .bytes([]))
    }

    /// Cookies do not depend on the port: two servers on one computer need two names.
    private var cookie: String { "\(options.cookieName)-\(state.withLock { $0.port })" }

    private func hasCookie(_ request: HTTPRequestHead) -> Bool {
        let given = request.headers["Cookie"].flatMap { $0.split(separator: ";") }
        let prefix = "\(cookie)="
        return given.contains { pair in
            let pair = pair.drop { $0 == " " }
            return pair.hasPrefix(prefix)
                && ListenerPasswordAuthenticator.isEqual(token, String(pair.dropFirst(prefix.count)))
        }
    }

    /// For programs.
    private func hasKey(_ request: HTTPRequestHead) -> Bool {
        guard let given = request.headers.first(name: "Authorization"), given.hasPrefix("Bearer ") else {
            return false
        }
        return ListenerPasswordAuthenticator.isEqual(token, String(given.dropFirst("Bearer ".count)))
    }

    /// Refuses names that another party made point to this computer, and other pages.
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
