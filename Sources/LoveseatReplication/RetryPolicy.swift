package import LoveseatModel

/// Decides when to connect again (replication.md §17.2). It counts attempts, and reads no clock.
package struct RetryPolicy: Hashable, Sendable {
    /// Attempts in all, the first included.
    private let maxAttempts: UInt
    /// The longest wait, in seconds.
    private let maxWait: UInt
    private let isContinuous: Bool
    private let reconnectsAfterGoingAway: Bool
    private var retries: UInt = 0
    /// A server that fails to connect us may do better later; one that fails to store a document will not.
    private static let serverError = LoveseatError.Code(10_500)
    /// A server that closes connections since it is shut down, is started again, or has too many of them.
    private static let goingAway: Set = [
        .webSocketGoingAway, LoveseatError.Code(11_012), LoveseatError.Code(11_013),
    ]

    /// Defaults: 10 attempts for one-shot replication, no end for continuous, 300 seconds between two at most.
    package init(
        isContinuous: Bool,
        maxAttempts: UInt? = nil,
        maxWait: UInt? = nil,
        reconnectsAfterGoingAway: Bool = false
    ) {
        self.isContinuous = isContinuous
        self.reconnectsAfterGoingAway = reconnectsAfterGoingAway
        self.maxAttempts = maxAttempts ?? (isContinuous ? .max : 10)
        self.maxWait = maxWait ?? 300
    }

    /// The peer accepted a connection.
    package mutating func connected() { retries = 0 }

    /// How many seconds to wait before the next attempt; nil if the error is final.
    package mutating func wait(after error: LoveseatError) -> UInt? {
        let mayPass =
            error.isTransient || error.code == Self.serverError || (isContinuous && error.isNetworkDependent)
            || (reconnectsAfterGoingAway && Self.goingAway.contains(error.code))
        guard mayPass, retries + 1 < maxAttempts else { return nil }
        retries += 1
        // A server may ask for more time than that, but not for more than the longest wait.
        return min(max(1 << min(retries, 16), error.retryAfter ?? 0), maxWait)
    }

    /// Spreads the waits of many clients of one server that went away, by up to a fifth, but not beyond the longest wait. `random` is
    /// from -1 to 1. A wait that the server asked for only gets longer.
    package func spread(_ seconds: UInt, after error: LoveseatError, random: Double) -> Double {
        let isAsked = error.retryAfter.map { $0 >= seconds } ?? false
        let shortest = Double(seconds) * (isAsked ? 1 : 0.8)
        let longest = min(Double(seconds) * 1.2, Double(max(maxWait, seconds)))
        return shortest + (longest - shortest) * (isAsked ? abs(random) : (random + 1) / 2)
    }
}
