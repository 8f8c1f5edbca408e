import HTTPTypes
import HummingbirdCore
import LoveseatAssertions
import LoveseatCouchDBReplication
import LoveseatModel
import NIOCore
import NIOHTTP1

/// The answer to a request.
struct Reply: Sendable {
    typealias Stream = @Sendable (inout any ResponseBodyWriter) async throws -> Void

    enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// `length`: nil if it is not known.
        case stream(length: Int?, Stream)
    }

    var status: Int
    var headers: [(name: String, value: String)] = []
    var body: Body = .none
    /// Whether the connection ends with it.
    var closes = false
    /// The memory that the request takes until the answer was sent.
    var memory: RequestMemory?

    init(_ status: Int, headers: [(String, String)] = [], body: Body = .none) {
        self.status = status
        self.headers = headers.map { (name: $0.0, value: $0.1) }
        self.body = body
    }

    /// A small JSON answer.
    static func json(_ status: Int = 200, _ value: JSONValue, headers: [(String, String)] = []) -> Reply {
        json(status, bytes: JSONText(canonical: value).bytes, headers: headers)
    }

    /// A JSON answer from text.
    static func json(_ status: Int = 200, bytes: [UInt8], headers: [(String, String)] = []) -> Reply {
        Reply(
            status,
            headers: [("Content-Type", "application/json")] + headers,
            body: .bytes(bytes + [UInt8(ascii: "\n")])
        )
    }

    /// A JSON answer that is written piece by piece.
    static func stream(
        _ status: Int = 200,
        type: String = "application/json",
        headers: [(String, String)] = [],
        length: Int? = nil,
        _ stream: @escaping Stream
    ) -> Reply {
        Reply(status, headers: [("Content-Type", type)] + headers, body: .stream(length: length, stream))
    }

    static let ok = json(200, ["ok": true])

    init(_ error: CouchDBError) {
        self = .json(error.status, ["error": .string(error.error), "reason": .string(error.reason)])
        headers += error.headers.map { (name: $0[0], value: $0[1]) }
    }

    func header(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Not modified, if the client has this content; the answer itself otherwise.
    func revalidated(_ etag: String, for exchange: Exchange) -> Reply {
        var reply = self
        reply.headers.append((name: "ETag", value: "\"\(etag)\""))
        let known =
            exchange.header("If-None-Match")?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
        guard exchange.isRead, known.contains(where: { $0 == "\"\(etag)\"" || $0 == "W/\"\(etag)\"" }) else {
            return reply
        }
        var unchanged = Reply(304)
        unchanged.headers = [(name: "ETag", value: "\"\(etag)\"")]
        return unchanged
    }

    /// The head to send. `isHead`: the body is left out; `eventLoop`: that of the connection; `request`: what is answered, for the log.
    func response(isHead: Bool, on eventLoop: any EventLoop, to request: String) -> Response {
        var fields = HTTPFields()
        for (name, value) in headers {
            guard let name = HTTPField.Name(name) else {
                impossible("\(name) is not the name of a header")
                continue
            }
            fields.append(HTTPField(name: name, value: value))
        }
        let status = HTTPResponse.Status(code: status)
        var body = ResponseBody()
        switch self.body {
        case .none: fields[.contentLength] = self.status == 304 || self.status == 204 ? nil : "0"
        case .bytes(let bytes):
            fields[.contentLength] = "\(bytes.count)"
            if isHead { break }
            let buffer = ByteBuffer(bytes: bytes)
            body =
                bytes.count <= PacedWriter.maximumBytes
                ? ResponseBody(byteBuffer: buffer)
                : paced(bytes.count, on: eventLoop, to: request) { try await $0.write(buffer) }
        case .stream(let length, let stream):
            if let length { fields[.contentLength] = "\(length)" }
            if !isHead { body = paced(length, on: eventLoop, to: request, stream) }
        }
        var response = Response(status: status, headers: fields)
        if !isHead { response.body = body }
        response.headers = fields
        return response
    }

    private func paced(
        _ length: Int?,
        on eventLoop: any EventLoop,
        to request: String,
        _ stream: @escaping Stream
    ) -> ResponseBody {
        ResponseBody(contentLength: length) { [memory] writer in
            defer { withExtendedLifetime(memory) {} }
            var paced: any ResponseBodyWriter = PacedWriter(writer, on: eventLoop)
            do { try await stream(&paced) } catch {
                CouchDBServer.logCut(error, in: request)
                throw (error as? PacedWriter.ClientIsGone)?.cause ?? error
            }
            try await paced.finish(nil)
        }
    }
}

extension ResponseBodyWriter {
    mutating func write(_ text: String) async throws { try await write(ByteBuffer(string: text)) }
    mutating func write(_ bytes: some Sequence<UInt8>) async throws {
        try await write(ByteBuffer(bytes: bytes))
    }
}
