private import Foundation
import LoveseatModel

/// An HTTP proxy that connections are tunnelled through (`CONNECT`; blip.md §1.7).
public struct ProxyConfiguration: Sendable {
    /// The proxy's host name or address.
    public var host: String
    /// Its port.
    public var port: UInt16
    /// The user name and password that it asks for; nil if it asks for none.
    public var authenticator: BasicAuthenticator?

    /// A proxy at a host and port.
    public init(host: String, port: UInt16, authenticator: BasicAuthenticator? = nil) {
        self.host = host
        self.port = port
        self.authenticator = authenticator
    }

    /// Reads a URL such as `http://user:password@proxy.example.org:3128`; nil if it is none of this form.
    public init?(url: String) {
        guard let url = URL(string: url.contains("://") ? url : "http://\(url)"), url.scheme == "http",
            let host = url.host(percentEncoded: false), !host.isEmpty,
            let port = UInt16(exactly: url.port ?? 80)
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
                "a proxy needs a host, a port that is not 0, and a user name without a colon"
            )
        }
    }
}
