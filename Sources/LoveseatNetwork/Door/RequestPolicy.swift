import Foundation
import LoveseatCore
package import LoveseatIdentity
package import LoveseatModel
import NIOCore
package import NIOHTTP1

/// Decides which requests a port accepts by the host name and the web page that they come from. All ports that Loveseat opens follow it:
/// those of listeners, of the inspector and of pages that an app serves.
///
/// A browser names the page that makes a request in the header `Origin`; replicators and other programs do not send it. A page whose
/// host name first leads to its own server and then to this host (DNS rebinding) is recognized by the header `Host`.
public struct RequestPolicy: Sendable {
    /// Which values of `Host` are accepted.
    public enum Hosts: Sendable {
        /// All. Use it only if clients have to authenticate, and other hosts reach the port.
        case any
        /// Addresses, `localhost`, the names of this host, and these names. Ports do not matter.
        case ownNames([String])
        /// Only these, each with its port as in a URL.
        case exactly([String])
    }

    /// Why a request is refused.
    public struct Refusal: Error, Hashable, Sendable {
        /// The HTTP status: 400 for no or several `Host` headers, 403 for a page that is not allowed, 421 for a host name of
        /// somebody else, 501 for a body that is encoded in an unknown way.
        public let status: Int
        /// A sentence for the client.
        public let reason: String
    }

    /// The accepted hosts.
    public var hosts: Hosts
    /// The origins of pages that may use the port, such as `https://example.com`; `*` for all. The default is none.
    public var origins: [String]
    /// Whether pages that come from the port itself may use it, too. The default is false.
    public var allowsOwnPages: Bool
    /// Whether the port speaks TLS.
    public var isSecure: Bool
    /// More names of this host, which may change.
    package var changingNames: @Sendable () -> [String] = { [] }

    /// Creates a policy.
    public init(
        hosts: Hosts,
        origins: [String] = [],
        allowsOwnPages: Bool = false,
        isSecure: Bool
    ) {
        self.hosts = hosts
        self.origins = origins
        self.allowsOwnPages = allowsOwnPages
        self.isSecure = isSecure
    }

    /// The policy of a listener. Without an authenticator, or on a loopback address, it accepts only the names of this host: its own,
    /// those of `hostNames` and those of its certificate.
    package init(
        origins: [String],
        hostNames: [String],
        networkInterface: String?,
        identity: TLSIdentity?,
        authenticates: Bool,
        allowsOwnPages: Bool
    ) {
        let isLocal = networkInterface.map(ListenerAddresses.isLoopback) ?? false
        let certified = identity?.certs.first?.serverNames ?? []
        self.init(
            hosts: authenticates && !isLocal ? .any : .ownNames(hostNames + certified),
            origins: origins,
            allowsOwnPages: allowsOwnPages,
            isSecure: identity != nil
        )
    }

    /// Checks a request by the values of its headers `Host` and `Origin`.
    ///
    /// `isWebSocket`: whether the request asks for a WebSocket. Browsers say of which page each such request is, so that any host name is
    /// accepted of a client that names no page.
    ///
    /// - Throws: ``Refusal``.
    public func check(hosts values: [String], origins pages: [String], isWebSocket: Bool = false)
        throws(Refusal)
    {
        guard values.count == 1, let host = values.first, !host.isEmpty else {
            let what = values.count == 1 ? "its one is empty" : "has \(values.count)"
            throw Refusal(status: 400, reason: "a request must have one Host header, and \(what)")
        }
        guard (isWebSocket && pages.isEmpty) || accepts(host: host) else {
            throw Refusal(
                status: 421,
                reason:
                    "\"\(host.prefix(200))\" is not a name of this host: use its address, or let the listener accept the name"
            )
        }
        guard pages.count <= 1 else {
            throw Refusal(status: 400, reason: "the request has \(pages.count) Origin headers")
        }
        // Programs other than browsers name no page.
        guard let page = pages.first, !allows(page: page, at: host) else { return }
        throw Refusal(
            status: 403,
            reason: "pages of \(page.prefix(200)) are not allowed here: the listener must allow their origin"
        )
    }

    /// Whether a page is of an origin that was configured.
    package func allows(origin page: String) -> Bool {
        origins.contains { $0.isExactly("*") || $0.isExactly(page) }
    }

    private func allows(page: String, at host: String) -> Bool {
        if allows(origin: page) { return true }
        guard allowsOwnPages else { return false }
        // A proxy in front may add TLS.
        let schemes = isSecure ? ["https"] : ["http", "https"]
        return schemes.contains { page.lowercased().isExactly("\($0)://\(host.lowercased())") }
    }

    private func accepts(host: String) -> Bool {
        switch hosts {
        case .any: true
        case .exactly(let all): all.contains { $0.isExactly(host) }
        case .ownNames(let names): Self.name(in: host).map { isOwn($0, names) } ?? false
        }
    }

    private func isOwn(_ name: String, _ names: [String]) -> Bool {
        if name.isExactly("localhost") || (try? SocketAddress(ipAddress: name, port: 0)) != nil {
            return true
        }
        let own = Self.names(of: ProcessInfo.processInfo.hostName)
        return (own + names + changingNames()).contains { ServerName.matches($0, name) }
    }

    /// The names that others of the network may have for this host.
    private static func names(of host: String) -> [String] {
        let label = String(host.prefix { $0 != "." })
        return label.isEmpty ? [] : [host, label, "\(label).local"]
    }

    /// The name or address in a `Host` header, without the port, brackets and the dot of the root; nil for anything else.
    private static func name(in host: String) -> String? {
        var name = Substring(host)
        if name.first == "[" {
            guard let end = name.firstIndex(of: "]"), isPort(name[name.index(after: end)...]) else {
                return nil
            }
            // Only addresses stand in brackets.
            let address = name[..<end].dropFirst().prefix { $0 != "%" }
            return address.contains(":") ? String(address) : nil
        }
        if let colon = name.firstIndex(of: ":") {
            guard isPort(name[colon...]) else { return nil }
            name = name[..<colon]
        }
        if name.last == "." { name = name.dropLast() }
        return name.isEmpty || name.last == "." ? nil : name.lowercased()
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.isEmpty || (text.first == ":" && text.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) })
    }

    /// Whether a browser may send a text as the origin of a page: `scheme://host[:port]` in lower case and without the scheme's own port, or
    /// `null` for files; `*` is valid, too.
    package static func isOrigin(_ text: String) -> Bool {
        guard !text.isExactly("*"), !text.isExactly("null") else { return true }
        guard let url = URL(string: text, encodingInvalidCharacters: false), let scheme = url.scheme,
            let host = url.host(percentEncoded: true), !host.isEmpty, let number = url.validPort
        else { return false }
        let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        let base = "\(scheme)://\(name)"
        guard base.isExactly(base.lowercased()), !host.contains("*") else { return false }
        // Browsers leave out the port that a URL without one has.
        let needsPort = !["http", "https"].contains(scheme) || URL(string: base)?.validPort != number
        return text.isExactly(base) || (needsPort && text.isExactly("\(base):\(number)"))
    }

    /// - Throws: `invalidParameter` for a text that is not an origin.
    package static func check(origins: [String]) throws(LoveseatError) {
        // Every origin is valid, or there is none.
        guard let origin = origins.first(where: { !isOrigin($0) }) else { return }
        throw LoveseatError(
            .invalidParameter,
            "\"\(origin)\" is not the origin of a web page: use a scheme, a host and a port, such as https://example.com, or *"
                + ", as browsers send it: in lower case, without the port 80 of http or 443 of https"
        )
    }

    /// - Throws: `invalidParameter` for a text that cannot be the name of a host. A name may begin with `*.`.
    package static func check(hostNames: [String]) throws(LoveseatError) {
        // Every name is valid, or there is none.
        guard let name = hostNames.first(where: { !isHostName($0) }) else { return }
        throw LoveseatError(
            .invalidParameter,
            "\"\(name)\" is not the name of a host: use a name without a scheme and a port, such as db.example.com"
        )
    }

    private static func isHostName(_ text: String) -> Bool {
        let name = text.hasPrefix("*.") ? text.dropFirst(2) : text[...]
        guard let first = name.utf8.first, first != UInt8(ascii: ".") else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."):
                true
            default: false
            }
        }
    }
}

extension RequestPolicy {
    /// Checks a request by its target as well, which may name a host, and by the values of its header `Transfer-Encoding`.
    ///
    /// - Throws: ``Refusal``.
    package func check(
        target: String,
        hosts: [String],
        origins: [String],
        transferEncodings: [String],
        isWebSocket: Bool = false
    ) throws(Refusal) {
        try check(hosts: hosts, origins: origins, isWebSocket: isWebSocket)
        if let host = try Self.host(ofTarget: target) {
            try check(hosts: [host], origins: origins, isWebSocket: isWebSocket)
        }
        let codings = transferEncodings.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        // The server's HTTP takes off chunks, and nothing else.
        guard codings.count <= 1,
            codings.allSatisfy({ $0.trimmingCharacters(in: .whitespaces).lowercased().isExactly("chunked") })
        else {
            throw Refusal(
                status: 501,
                reason:
                    "a body in the transfer encoding \(transferEncodings.joined(separator: ", ").prefix(200)) cannot be read: use chunked"
            )
        }
    }

    /// The host of a target in absolute form, such as `http://host:80/db`, which counts instead of the header `Host` (RFC 9112 §3.2.2);
    /// nil for a target that is only a path.
    private static func host(ofTarget target: String) throws(Refusal) -> String? {
        if target.hasPrefix("/") || target.isExactly("*") { return nil }
        guard let separator = target.range(of: "://"),
            ["http", "https"].contains(target[..<separator.lowerBound].lowercased())
        else {
            throw Refusal(status: 400, reason: "the target of the request must be a path or an http:// URL")
        }
        return String(target[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" })
    }

    /// Checks the head of a request.
    package func check(_ head: HTTPRequestHead) throws(HTTPRefusal) {
        let headers = head.headers
        do {
            try check(
                target: head.uri,
                hosts: headers["Host"],
                origins: headers["Origin"],
                transferEncodings: headers["Transfer-Encoding"],
                isWebSocket: UpgradeHeaders.hasToken("websocket", in: headers, "Upgrade")
            )
        } catch {
            throw HTTPRefusal(status: .init(statusCode: error.status), reason: error.reason)
        }
    }
}
