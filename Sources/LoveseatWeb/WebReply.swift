public import HTTPTypes
public import HummingbirdCore
import NIOCore

/// The answer to a request of a browser.
public struct WebReply: Sendable {
    /// Writes a body in parts.
    public typealias Stream = @Sendable (inout any ResponseBodyWriter) async throws -> Void

    /// The body of a reply.
    public enum Body: Sendable {
        /// A body in memory.
        case bytes([UInt8])
        /// A body that is written in parts. `length`: nil if it is not known.
        case stream(length: Int?, Stream)
    }

    /// The status.
    public var status: HTTPResponse.Status
    /// The headers, without those that every reply has.
    public var headers: [(name: String, value: String)]
    /// The body.
    public var body: Body

    /// Creates a reply.
    public init(_ status: HTTPResponse.Status, _ headers: [(name: String, value: String)], _ body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Creates a reply with a short text.
    public static func text(_ status: HTTPResponse.Status, _ text: String) -> WebReply {
        WebReply(status, [("Content-Type", "text/plain; charset=utf-8")], .bytes(Array("\(text)\n".utf8)))
    }

    /// Creates a reply with content that was made when the program was built, or that is as it is now.
    public static func content(_ type: String, _ bytes: [UInt8]) -> WebReply {
        WebReply(.ok, [("Content-Type", type), ("Cache-Control", "no-store")], .bytes(bytes))
    }

    private static let policy =
        "default-src 'self'; img-src 'self' blob:; script-src 'self'; style-src 'self'; "
        + "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

    /// The response to send. Every one has the page's security policy, unless it has a stricter one.
    func response(isHead: Bool) -> Response {
        var fields = HTTPFields()
        var headers = headers
        headers.append(("X-Content-Type-Options", "nosniff"))
        headers.append(("Referrer-Policy", "no-referrer"))
        if !headers.contains(where: { $0.name == "Content-Security-Policy" }) {
            headers.append(("Content-Security-Policy", Self.policy))
        }
        for (name, value) in headers {
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        var body = ResponseBody()
        switch self.body {
        case .bytes(let bytes):
            if status != .notModified { fields[.contentLength] = "\(bytes.count)" }
            if !isHead { body = ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)) }
        case .stream(let length, let stream):
            if let length { fields[.contentLength] = "\(length)" }
            if !isHead {
                body = ResponseBody(contentLength: length) { writer in
                    try await stream(&writer)
                    try await writer.finish(nil)
                }
            }
        }
        var response = Response(status: status, headers: fields)
        if !isHead { response.body = body }
        response.headers = fields
        return response
    }
}
