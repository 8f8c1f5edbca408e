import HTTPTypes
import HummingbirdCore
import LoveseatModel
import NIOCore

/// The answer to a request of a browser.
struct WebReply: Sendable {
    typealias Stream = @Sendable (inout any ResponseBodyWriter) async throws -> Void

    enum Body: Sendable {
        case bytes([UInt8])
        /// `length`: nil if it is not known.
        case stream(length: Int?, Stream)
    }

    var status: HTTPResponse.Status
    var headers: [(name: String, value: String)]
    var body: Body

    init(_ status: HTTPResponse.Status, _ headers: [(name: String, value: String)], _ body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// An error as JSON.
    static func failure(_ status: HTTPResponse.Status, _ message: String) -> WebReply {
        let json: JSONValue = ["error": .string(message)]
        var reply = content("application/json", Array(json.description.utf8))
        reply.status = status
        return reply
    }

    /// An error of the database as JSON.
    static func failure(_ error: LoveseatError) -> WebReply {
        let status: HTTPResponse.Status =
            switch error.code {
            case .notFound, .httpNotFound: .notFound
            case .conflict: .conflict
            case .busy, .timeout: .serviceUnavailable
            case .notWriteable, .ioError, .corruptData, .unexpectedError: .internalServerError
            default: .badRequest
            }
        return failure(status, error.message)
    }

    static let notFound = failure(.notFound, "there is no such page")

    static func json(_ value: JSONValue) -> WebReply {
        content("application/json", Array(value.description.utf8))
    }

    /// JSON text that was made already.
    static func json(_ text: [UInt8]) -> WebReply { content("application/json", text) }

    /// Content that was made when the program was built, or belongs to the database as it is now.
    static func content(_ type: String, _ bytes: [UInt8]) -> WebReply {
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
