import Hummingbird
import Logging
import Loveseat

/// What a client of the API is told, as JSON: `{"error": {"code": "invalid", "message": "…", "fields": {"title": "…"}}}`.
package enum APIError: Error, Equatable {
    case unauthorized
    case notFound(String)
    /// The order was changed, or exists already.
    case conflict
    case invalid([String: String])
    /// Another error of the request: a body that is not JSON, or that is too large.
    case badRequest(String, HTTPResponse.Status = .badRequest)
    case busy
    case failed

    /// The error of a request's handler. What is nobody's business goes to the log only.
    init(_ error: any Error, log: (String) -> Void) {
        switch error {
        case let error as APIError: self = error
        case let error as HTTPError where error.status == .notFound: self = .notFound("such path")
        case let error as HTTPError where error.status.code < 500:
            self = .badRequest(error.body ?? error.status.reasonPhrase, error.status)
        case LoveseatError.Code.badDocID:
            self = .invalid(["id": "must have 1 to 240 bytes, and not begin with _"])
        case LoveseatError.Code.busy, LoveseatError.Code.timeout: self = .busy
        default:
            log("\(error)")
            self = .failed
        }
    }

    private struct Body: ResponseEncodable {
        struct Content: Encodable {
            let code: String
            let message: String
            let fields: [String: String]?
        }
        let error: Content
    }

    private var content: (code: String, message: String) {
        switch self {
        case .unauthorized: ("unauthorized", "send the header Authorization: Bearer TOKEN")
        case .notFound(let what): ("notFound", "there is no \(what)")
        case .conflict:
            ("conflict", "it was changed meanwhile, or exists: read it again, and send its revisionID")
        case .invalid(let fields):
            ("invalid", "these are not valid: \(fields.keys.sorted().joined(separator: ", "))")
        case .badRequest(let why, _): ("badRequest", why)
        case .busy: ("busy", "the server is busy: try again")
        case .failed: ("failed", "the server failed: its log says why")
        }
    }
}

extension APIError: HTTPResponseError {
    package var status: HTTPResponse.Status {
        switch self {
        case .unauthorized: .unauthorized
        case .notFound: .notFound
        case .conflict: .conflict
        case .invalid: .unprocessableContent
        case .badRequest(_, let status): status
        case .busy: .serviceUnavailable
        case .failed: .internalServerError
        }
    }

    package func response(from request: Request, context: some RequestContext) throws -> Response {
        var fields: [String: String]?
        if case .invalid(let named) = self { fields = named }
        let body = Body(error: .init(code: content.code, message: content.message, fields: fields))
        var response = try body.response(from: request, context: context)
        response.status = status
        if self == .unauthorized { response.headers[.wwwAuthenticate] = "Bearer" }
        return response
    }
}

/// Gives every error the API's form.
struct TypedErrors<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do { return try await next(request, context) } catch {
            throw APIError(error) { context.logger.error("request failed: \($0)") }
        }
    }
}

/// Lets only those in that know the token.
struct RequireToken<Context: RequestContext>: RouterMiddleware {
    let token: String

    func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let given = request.headers[.authorization] ?? ""
        guard ListenerPasswordAuthenticator.isEqual(given, "Bearer \(token)") else {
            throw APIError.unauthorized
        }
        return try await next(request, context)
    }
}
