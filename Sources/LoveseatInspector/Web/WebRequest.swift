import Foundation
import HTTPTypes
import HummingbirdCore
import LoveseatModel

/// A request of a browser that has the token.
struct WebRequest: Sendable {
    let isPost: Bool
    /// The decoded parts of the path.
    let path: [String]
    /// The decoded parameters of the query.
    let query: [ExactText: String]
    let headers: HTTPFields
    let body: [UInt8]
    let incoming: RequestBody

    init(_ request: Request, body: [UInt8]) {
        isPost = request.method == .post
        let target = request.head.path ?? "/"
        path = target.prefix { $0 != "?" }.split(separator: "/").map { $0.removingPercentEncoding ?? "" }
        query = Self.parameters(target.drop { $0 != "?" }.dropFirst())
        headers = request.headers
        self.body = body
        incoming = request.body
    }

    private static func parameters(_ text: Substring) -> [ExactText: String] {
        var parameters: [ExactText: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first?.removingPercentEncoding else { continue }
            let value = parts.count == 2 ? parts[1].replacing("+", with: " ") : ""
            parameters[ExactText(name)] = value.removingPercentEncoding ?? ""
        }
        return parameters
    }

    func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }

    /// A parameter that must be there.
    func required(_ name: String) throws(LoveseatError) -> String {
        guard let value = query[ExactText(name)] else {
            throw LoveseatError(.invalidParameter, "the parameter \(name) is missing")
        }
        return value
    }

    /// A number in a range; the default if the parameter is not there.
    func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) throws(LoveseatError)
        -> Int
    {
        guard let text = query[ExactText(name)] else { return standard }
        guard let number = Int(text), range.contains(number) else {
            throw LoveseatError(
                .invalidParameter,
                "\(name) must be a number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }

    /// The body as a JSON object, which may have a document in it.
    func json() throws(LoveseatError) -> JSONElement {
        do throws(JSONError) { return try JSONElement(scanning: body, limits: .envelope) } catch {
            throw LoveseatError(error, in: "the request's body")
        }
    }
}
