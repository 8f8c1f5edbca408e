import HTTPTypes
import HummingbirdCore
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import NIOCore

/// A request to a listener.
struct Exchange: Sendable {
    let method: String
    /// The method in the first line, which `X-HTTP-Method-Override` does not change.
    let sentMethod: String
    /// The target as it was sent.
    private let target: String
    /// The decoded segments of the path, without empty ones.
    let path: [String]
    let query: Query
    let headers: HTTPFields
    private let body: RequestBody
    /// The client's identity.
    var peer = PeerIdentity()
    var login = Login.none
    /// The name with which the client reached the listener.
    let host: String
    let isSecure: Bool
    let channel: any Channel
    /// The memory that the request takes.
    let memory: RequestMemory

    init(_ request: Request, _ channel: any Channel, isSecure: Bool, _ memory: RequestMemory)
        throws(CouchDBError)
    {
        self.channel = channel
        self.memory = memory
        let target = request.head.path ?? "/"
        self.target = target
        sentMethod = request.method.rawValue
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var raw = parts[0]
        // Clients behind proxies may send the whole URL.
        if raw.hasPrefix("http://") || raw.hasPrefix("https://") {
            raw = raw.drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" }
        }
        var path: [String] = []
        for segment in raw.split(separator: "/") {
            guard let text = PercentCoding.decode(segment) else {
                throw .badRequest("the path is not percent-encoded UTF-8")
            }
            path.append(text)
        }
        self.path = path
        query = try Query(parts.count > 1 ? parts[1] : "")
        var method = request.method.rawValue
        if method == "POST", let name = HTTPField.Name("X-HTTP-Method-Override"),
            let other = request.headers[name]
        {
            method = other.uppercased()
        }
        self.method = method
        headers = request.headers
        body = request.body
        host = request.head.authority ?? "localhost"
        self.isSecure = isSecure
    }

    /// A header's value.
    func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }

    /// Whether text names the request's target, alone or as a whole URL.
    func isTarget(_ text: String) -> Bool {
        if text.isExactly(target) { return true }
        guard let scheme = text.firstRange(of: "://") else { return false }
        return String(text[scheme.upperBound...].drop { $0 != "/" }).isExactly(target)
    }

    /// The body. A client that waits for that (`Expect: 100-continue`) is asked for it now, and so not for one that is refused before.
    func requestedBody() -> RequestBody {
        if header("Expect")?.lowercased().isExactly("100-continue") == true {
            channel.triggerUserOutboundEvent(BodyRequester.Event(), promise: nil)
        }
        return body
    }

    var isRead: Bool { method == "GET" || method == "HEAD" }

    /// The absolute URL of something on this listener, for `Location`.
    func location(_ path: [String]) -> String {
        "\(isSecure ? "https" : "http")://\(host)/"
            + path.map { PercentCoding.encode($0) }.joined(separator: "/")
    }
}

/// Percent-encoding of URLs.
enum PercentCoding {
    /// Decodes text; a plus sign is a space. Nil for text that is not UTF-8 or is cut.
    static func decode(_ text: some StringProtocol) -> String? {
        let utf8 = Array(text.utf8)
        guard utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "+") }) else {
            return String(text)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        var index = 0
        while index < utf8.count {
            let byte = utf8[index]
            if byte == UInt8(ascii: "+") {
                bytes.append(UInt8(ascii: " "))
            } else if byte == UInt8(ascii: "%") {
                guard index + 2 < utf8.count, let high = hexadecimalDigit(utf8[index + 1]),
                    let low = hexadecimalDigit(utf8[index + 2])
                else { return nil }
                bytes.append(high << 4 | low)
                index += 2
            } else {
                bytes.append(byte)
            }
            index += 1
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Encodes everything but unreserved characters.
    static func encode(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
