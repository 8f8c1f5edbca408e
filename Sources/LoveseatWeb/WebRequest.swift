import Foundation
public import HTTPTypes
import HummingbirdCore
package import LoveseatModel

/// A request of a browser that has the server's token.
public struct WebRequest: Sendable {
    /// Whether the method is POST. If not, it is GET or HEAD.
    public let isPost: Bool
    /// The decoded parts of the path.
    public let path: [String]
    /// The decoded parameters of the query.
    package let query: [ExactText: String]
    /// The headers.
    public let headers: HTTPFields
    /// The body of a POST.
    public let body: [UInt8]
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

    /// Returns a header's value.
    public func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }
}
