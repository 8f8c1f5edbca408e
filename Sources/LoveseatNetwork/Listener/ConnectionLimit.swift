import NIOConcurrencyHelpers
package import NIOCore
import NIOHTTP1

/// Counts the connections that became WebSockets, and refuses more than a maximum.
package final class ConnectionLimit: Sendable {
    private static let retryAfter = 5

    private let maximum: Int?
    private let count = NIOLockedValueBox(0)

    /// A nil maximum means no limit.
    package init(_ maximum: Int?) { self.maximum = maximum }

    /// Counts a connection until its channel closes.
    package func add(_ channel: any Channel) throws(HTTPRefusal) {
        // A listener without a maximum counts nothing.
        guard let maximum else { return }
        let isAdded = count.withLockedValue { count in
            guard count < maximum else { return false }
            count += 1
            return true
        }
        guard isAdded else {
            throw HTTPRefusal(
                status: .serviceUnavailable,
                reason: "too many peers are connected: try again later",
                headers: [["Retry-After", "\(Self.retryAfter)"]]
            )
        }
        channel.closeFuture.whenComplete { [count] _ in count.withLockedValue { $0 -= 1 } }
    }
}
