private import Foundation
import LoveseatModel

/// An HTTP proxy that connections are tunnelled through, with the method `CONNECT`.
public struct ProxyConfiguration: Sendable {
    /// The proxy's host name or address.
    public var host: String
    /// The proxy's port.
    public var port: UInt16
    /// The user name and password for the proxy. Nil, the default, means that the proxy requires none.
    public var authenticator: BasicAuthenticator?

    /// Creates a configuration for a proxy at a host and port.
    public init(host: String, port: UInt16, authenticator: BasicAuthenticator? = nil) {
        self.host = host
        self.port = port
        self.authenticator = authenticator
    }

    /// Creates a configuration from a URL such as `http://user:password@proxy.example.org:3128`, or returns nil if the URL does not have
    /// this form. The default port is 80.
    public init?(url: String) {
        guard let url = URL(string: url.contains("://") ? url : "http://\(url)"), url.scheme == "http",
            let host = url.host(percentEncoded: false), !host.isEmpty,
            let port = url.validPort
        else { return nil }
        self.init(host: host, port: port)
        if let user = url.user(percentEncoded: false) {
            authenticator = BasicAuthenticator(
                username: user,
                password: url.password(percentEncoded: false) ?? ""
            )
        }
    }

    func validate() throws(LoveseatError) {
        guard !host.isEmpty, port != 0, authenticator?.username.contains(":") != true else {
            throw LoveseatError(
                .invalidParameter,
                "the proxy's settings are not valid: it needs a host, a port other than 0, and a user name without a colon"
            )
        }
    }
}
