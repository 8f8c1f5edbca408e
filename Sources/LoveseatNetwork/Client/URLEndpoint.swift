public import Foundation
public import LoveseatCore
package import LoveseatModel

/// A peer at a URL: `wss://host:port/database`, or `ws://` without encryption.
///
/// A path may stand before the database's name. The default ports are 443 and 80. User names and passwords belong in an authenticator, not
/// in the URL.
public struct URLEndpoint: BLIPEndpoint {
    /// The URL of the database.
    public let url: URL

    /// Creates an endpoint from a URL. If the URL cannot be used, the replicator stops with `invalidURL` when it is started.
    public init(_ url: URL) { self.url = url }

    package var remoteName: String { url.absoluteString }

    package func validate() throws(LoveseatError) { _ = try WebSocketAddress(url) }

    package func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
        try await WebSocketClient(options: options).connect(to: try WebSocketAddress(url))
    }

    package func networkChanges() -> AsyncStream<Void>? {
        // CouchDB's endpoint asks with an http:// URL, which is not a WebSocket's: then every host counts as another one.
        let host = (try? WebSocketAddress(url))?.host ?? ""
        // This host is always reachable.
        let isThisHost = host == "localhost" || host == "::1" || host.hasPrefix("127.")
        return isThisHost ? nil : NetworkMonitor.shared.changes()
    }
}

/// The parts of a peer's URL.
package struct WebSocketAddress: Hashable, Sendable {
    package let host: String
    package let port: Int
    package let isSecure: Bool
    /// The path of the request: the URL's path with `/_blipsync`.
    package let target: String

    init(_ url: URL) throws(LoveseatError) {
        func refuse(_ why: String) -> LoveseatError {
            LoveseatError(.invalidURL, "\(url.absoluteString): \(why); use ws://host:port/database")
        }
        let scheme = url.scheme?.lowercased()
        guard scheme == "ws" || scheme == "wss" else { throw refuse("the scheme must be ws or wss") }
        guard url.user == nil, url.password == nil else {
            throw refuse("a user name and password belong in an authenticator, not into the URL")
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw refuse("it has no host")
        }
        guard let number = url.validPort else { throw refuse("it has no port from 1 to 65535") }
        let path = url.path(percentEncoded: true).split(separator: "/")
        guard !path.isEmpty else { throw refuse("it has no database name") }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        isSecure = scheme == "wss"
        port = Int(number)
        target = "/" + path.joined(separator: "/") + "/_blipsync"
    }

    package init(host: String, port: Int, isSecure: Bool, target: String) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.target = target
    }

    /// The target without its query.
    var path: String { String(target.prefix { $0 != "?" }) }

    /// The value of the `Host` header.
    var hostHeader: String {
        port == 80 || port == 443 ? bracketedHost : authority
    }

    /// The host and the port, for the request to a proxy.
    var authority: String { "\(bracketedHost):\(port)" }

    /// Without the scope of a link-local address, which means something on this host only (RFC 6874).
    private var bracketedHost: String { host.contains(":") ? "[\(host.prefix { $0 != "%" })]" : host }

    /// The address in a `Location` header.
    package func redirected(to location: String) throws(LoveseatError) -> WebSocketAddress {
        if location.hasPrefix("/"), !location.hasPrefix("//") {
            return WebSocketAddress(host: host, port: port, isSecure: isSecure, target: location)
        }
        guard let url = URL(string: location), let scheme = url.scheme?.lowercased(),
            scheme == "http" || scheme == "https", let host = url.host(percentEncoded: false), !host.isEmpty,
            let number = url.validPort
        else {
            throw LoveseatError(
                .invalidRedirect,
                "the server redirected to \(location), which is not an HTTP URL"
            )
        }
        let query = url.query(percentEncoded: true).map { "?\($0)" } ?? ""
        return WebSocketAddress(
            host: host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host,
            port: Int(number),
            isSecure: scheme == "https",
            target: url.path(percentEncoded: true) + query
        )
    }
}
