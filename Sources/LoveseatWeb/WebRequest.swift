import Foundation
package import LoveseatModel
import NIOHTTP1

/// A request of a browser that has the server's token.
public struct WebRequest: Sendable {
    /// Whether the method is POST. If not, it is GET or HEAD.
    public let isPost: Bool
    /// The decoded parts of the path.
    public let path: [String]
    /// The decoded parameters of the query.
    package let query: [ExactText: String]
    /// The body of a POST.
    public let body: [UInt8]
    private let headers: HTTPHeaders

    init(_ head: HTTPRequestHead, body: [UInt8]) {
        isPost = head.method == .POST
        path = head.uri.prefix { $0 != "?" }.split(separator: "/").map { $0.removingPercentEncoding ?? "" }
        query = Self.parameters(head.uri.drop { $0 != "?" }.dropFirst())
        headers = head.headers
        self.body = body
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

    /// Returns a header's value; of several with the name, the first.
    public func header(_ name: String) -> String? { headers.first(name: name) }
}
