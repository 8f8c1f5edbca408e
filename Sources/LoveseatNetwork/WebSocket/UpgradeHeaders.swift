import Crypto
import LoveseatBLIPReplication
import LoveseatModel
import NIOHTTP1

/// The HTTP side of opening a WebSocket: pure functions, for both ends.
package enum UpgradeHeaders {
    /// The value by which a server proves that it understood the key (RFC 6455 §4.2.2).
    package static func accept(key: String) -> String {
        Base64.encode(
            Array(Insecure.SHA1.hash(data: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
        )
    }

    static func newKey() -> String { Base64.encode((0..<16).map { _ in UInt8.random(in: 0...255) }) }

    package static func basic(_ username: String, _ password: String) -> String {
        "Basic " + Base64.encode(Array("\(username):\(password)".utf8))
    }

    /// The user name and password of an `Authorization` header; nil if it is not Basic.
    static func credentials(_ header: String) -> (username: String, password: String)? {
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "basic",
            let bytes = Base64.decode(parts[1]), let text = String(validating: bytes, as: UTF8.self),
            let colon = text.firstIndex(of: ":")
        else { return nil }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }

    /// Whether a header that lists tokens names one, whatever its case.
    static func hasToken(_ token: String, in headers: HTTPHeaders, _ name: String) -> Bool {
        headers[canonicalForm: name].contains { $0.lowercased() == token }
    }

    /// The first protocol, in the client's order, that is supported here. Two Loveseats speak of trees if both can: only these carry all that
    /// both know of a document.
    static func negotiate(_ headers: HTTPHeaders) -> ReplicationProtocol? {
        let common = headers[canonicalForm: "Sec-WebSocket-Protocol"]
            .compactMap { ReplicationProtocol(rawValue: String($0)) }
        let prefersTrees = hasToken(treesToken, in: headers, treesField)
        let trees = prefersTrees ? common.first(where: ReplicationProtocol.trees.contains) : nil
        return trees ?? common.first
    }

    /// The header by which a Loveseat that also offers version vectors says that it would rather speak of trees with another Loveseat.
    static let treesField = "Loveseat"
    static let treesToken = "trees"
}
