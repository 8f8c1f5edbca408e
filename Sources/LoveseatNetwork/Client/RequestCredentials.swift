import Crypto
package import LoveseatCore
import LoveseatIdentity
import LoveseatModel

/// The credentials of a request for a WebSocket, as far as cookies depend on them.
package struct RequestCredentials {
    private let options: ConnectionOptions
    /// Names the credentials, without their secrets: cookies that came with others are not sent. Nil for none, with which no
    /// cookie is sent or kept.
    package let name: String?

    package init(_ options: ConnectionOptions) {
        self.options = options
        var parts: [String] = []
        // The password is left out: a digest of it would be on the disk. A server checks the header in addition to the cookie.
        if let basic = options.credentials ?? options.authenticator as? BasicAuthenticator {
            parts.append("user \(basic.username)")
        }
        if let session = options.authenticator as? SessionAuthenticator {
            parts.append("session \(session.cookieName)=\(session.sessionID)")
        }
        if let leaf = (options.authenticator as? ClientCertificateAuthenticator)?.identity.certs.first {
            parts.append("certificate \(leaf.fingerprint)")
        }
        for (header, value) in options.headers.sorted(by: { $0.key < $1.key }) {
            switch header.lowercased() {
            case "authorization":
                parts.append("header \(UpgradeHeaders.credentials(value)?.username ?? value)")
            case "cookie": parts.append("cookie \(value)")
            default: break
            }
        }
        name =
            parts.isEmpty
            ? nil
            : SHA256.hash(data: Array(parts.joined(separator: "\n").utf8)).prefix(16).hexadecimalText
    }

    /// The cookies of a request, each name once: the app's cookies replace kept ones.
    package func cookies(for address: WebSocketAddress, now: Int64) -> [String] {
        var given: [(name: String, text: String)] = []
        if let session = options.authenticator as? SessionAuthenticator {
            given.append((session.cookieName, "\(session.cookieName)=\(session.sessionID)"))
        }
        for (header, value) in options.headers where header.lowercased() == "cookie" {
            for part in value.split(separator: ";") {
                let text = String(part.drop { $0 == " " })
                let name = String(text.prefix { $0 != "=" })
                if !text.isEmpty, !given.contains(where: { $0.name == name }) { given.append((name, text)) }
            }
        }
        let kept = name.flatMap { name in
            options.cookies?.load()
                .matching(
                    host: address.host,
                    path: address.path,
                    isSecure: address.isSecure,
                    credentials: name,
                    now: now
                )
        }
        var names = Set(given.map(\.name))
        // The longest path first, as browsers do.
        let others = (kept ?? []).sorted { $0.path.utf8.count > $1.path.utf8.count }
            .filter { names.insert($0.name).inserted }
        return others.map { "\($0.name)=\($0.value)" } + given.map(\.text)
    }
}
