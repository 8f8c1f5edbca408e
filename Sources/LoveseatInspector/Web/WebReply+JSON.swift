import LoveseatModel
import LoveseatWeb

extension WebReply {
    /// An error as JSON.
    static func failure(_ status: Status, _ message: String) -> WebReply {
        var reply = json(["error": .string(message)])
        reply.status = status
        return reply
    }

    /// An error of the database as JSON.
    static func failure(_ error: LoveseatError) -> WebReply {
        let status: Status =
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
}
