import NIOCore
import NIOHTTP1

/// The answer to a request of a browser.
public struct WebReply: Sendable {
    /// A status of HTTP (RFC 9110 §15).
    public struct Status: Hashable, Sendable {
        /// The number, such as 404.
        public let code: Int

        /// Creates a status.
        public init(code: Int) { self.code = code }

        /// 200.
        public static let ok = Status(code: 200)
        /// 202.
        public static let accepted = Status(code: 202)
        /// 206.
        public static let partialContent = Status(code: 206)
        /// 303.
        public static let seeOther = Status(code: 303)
        /// 304.
        public static let notModified = Status(code: 304)
        /// 400.
        public static let badRequest = Status(code: 400)
        /// 403.
        public static let forbidden = Status(code: 403)
        /// 404.
        public static let notFound = Status(code: 404)
        /// 409.
        public static let conflict = Status(code: 409)
        /// 416.
        public static let rangeNotSatisfiable = Status(code: 416)
        /// 500.
        public static let internalServerError = Status(code: 500)
        /// 503.
        public static let serviceUnavailable = Status(code: 503)
    }

    /// Writes a body in parts.
    public struct Writer: Sendable {
        let channel: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>

        /// Writes a part, and waits until the browser has room for more.
        ///
        /// - Throws: An error if the browser has disconnected.
        public func write(_ bytes: some Sequence<UInt8>) async throws {
            try await channel.write(.body(.byteBuffer(ByteBuffer(bytes: bytes))))
        }
    }

    /// The body of a reply.
    public enum Body: Sendable {
        /// A body in memory.
        case bytes([UInt8])
        /// A body that is written in parts. `length`: in bytes, nil if it is not known.
        case stream(length: Int?, @Sendable (Writer) async throws -> Void)
    }

    /// The status.
    public var status: Status
    /// The headers, without those that every reply has.
    public var headers: [(name: String, value: String)]
    /// The body.
    public var body: Body

    /// Creates a reply.
    public init(_ status: Status, _ headers: [(name: String, value: String)], _ body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Creates a reply with a short text.
    public static func text(_ status: Status, _ text: String) -> WebReply {
        WebReply(status, [("Content-Type", "text/plain; charset=utf-8")], .bytes(Array("\(text)\n".utf8)))
    }

    /// Creates a reply with content that was made when the program was built, or that is as it is now.
    public static func content(_ type: String, _ bytes: [UInt8]) -> WebReply {
        WebReply(.ok, [("Content-Type", type), ("Cache-Control", "no-store")], .bytes(bytes))
    }

    private static let policy =
        "default-src 'self'; img-src 'self' blob:; script-src 'self'; style-src 'self'; "
        + "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

    /// The headers to send. Every reply has the page's security policy, unless it has a stricter one.
    private var allHeaders: HTTPHeaders {
        var all = HTTPHeaders(headers.map { ($0.name, $0.value) })
        all.add(name: "X-Content-Type-Options", value: "nosniff")
        all.add(name: "Referrer-Policy", value: "no-referrer")
        if !all.contains(name: "Content-Security-Policy") {
            all.add(name: "Content-Security-Policy", value: Self.policy)
        }
        return all
    }

    /// The body's length in bytes, if it is known.
    private var length: Int? {
        switch body {
        case .bytes(let bytes): bytes.count
        case .stream(let length, _): length
        }
    }

    /// Sends the reply, and returns whether the connection can be used for another one.
    func send(
        to channel: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>,
        isHead: Bool,
        keepsConnection: Bool
    ) async throws -> Bool {
        var headers = allHeaders
        if let length, status != .notModified { headers.add(name: "Content-Length", value: "\(length)") }
        // The encoder sends an empty body in chunks if there is no length, also after HEAD.
        let keepsConnection = keepsConnection && (length != nil || !isHead)
        if !keepsConnection { headers.add(name: "Connection", value: "close") }
        let head = HTTPResponseHead(
            version: .http1_1,
            status: .init(statusCode: status.code),
            headers: headers
        )
        try await channel.write(.head(head))
        if !isHead {
            switch body {
            case .bytes([]): break
            case .bytes(let bytes): try await channel.write(.body(.byteBuffer(ByteBuffer(bytes: bytes))))
            case .stream(_, let stream): try await stream(Writer(channel: channel))
            }
        }
        try await channel.write(.end(nil))
        return keepsConnection
    }
}
