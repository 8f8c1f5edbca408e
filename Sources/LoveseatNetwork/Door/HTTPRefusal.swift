import LoveseatModel
package import NIOHTTP1

/// A response that refuses a request.
package struct HTTPRefusal: Error, Hashable {
    package let status: HTTPResponseStatus
    package let reason: String
    package var headers: [[String]] = []

    package static let unauthorized = HTTPRefusal(
        status: .unauthorized,
        reason: "wrong or missing user name and password",
        headers: [["WWW-Authenticate", "Basic realm=\"Loveseat\", charset=\"UTF-8\""]]
    )

    static func tooManyAttempts(retryAfter seconds: Int) -> HTTPRefusal {
        HTTPRefusal(
            status: .tooManyRequests,
            reason: "too many failed attempts: try again in \(seconds.counted("second"))",
            headers: [["Retry-After", "\(seconds)"]]
        )
    }
}
