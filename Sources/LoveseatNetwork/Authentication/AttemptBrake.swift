/// Slows down addresses whose attempts to log in fail. Pure: times are seconds of somebody else's clock.
///
/// The first failures are free. After them every attempt of the address waits, each failure longer than the one before,
/// and one that would have to wait too long is refused. A success forgets the failures, and so does time.
package struct AttemptBrake: Sendable {
    package static let freeFailures = 3
    private static let firstDelay = 0.5
    private static let longestDelay = 30.0
    /// An attempt that would have to wait longer is refused at once, in seconds.
    package static let longestWait = 5.0
    private static let forgetAfter = 600.0
    private static let mostAddresses = 10_000

    private struct Entry {
        var failures = 0
        var notBefore = 0.0
        var lastFailure = 0.0
    }

    private var entries: [String: Entry] = [:]

    package init() {}

    /// Addresses that are remembered.
    package var count: Int { entries.count }

    /// What an attempt may do.
    package enum Permission: Hashable {
        /// Go on after so many seconds.
        case after(Double)
        /// Come back in so many seconds.
        case refused(retryAfter: Double)
    }

    /// An address wants to try.
    package mutating func ask(_ address: String, now: Double) -> Permission {
        guard let entry = entries[address] else { return .after(0) }
        guard now - entry.lastFailure < Self.forgetAfter else {
            entries[address] = nil
            return .after(0)
        }
        guard entry.failures >= Self.freeFailures else { return .after(0) }
        let wait = max(0, entry.notBefore - now)
        guard wait <= Self.longestWait else { return .refused(retryAfter: wait) }
        // The next one queues behind this.
        entries[address]?.notBefore = max(now, entry.notBefore) + Self.delay(entry.failures)
        return .after(wait)
    }

    package mutating func failed(_ address: String, now: Double) {
        if entries[address] == nil, entries.count >= Self.mostAddresses {
            forgetOldest()
        }
        var entry = entries[address] ?? Entry()
        entry.failures += 1
        entry.lastFailure = now
        if entry.failures >= Self.freeFailures {
            entry.notBefore = max(entry.notBefore, now + Self.delay(entry.failures))
        }
        entries[address] = entry
    }

    /// Forgets half of the addresses, so that it is seldom done.
    private mutating func forgetOldest() {
        let times = entries.values.map(\.lastFailure).sorted()
        let middle = times[times.count / 2]
        entries = entries.filter { $0.value.lastFailure > middle }
        if entries.count >= Self.mostAddresses { entries = [:] }
    }

    package mutating func succeeded(_ address: String) { entries[address] = nil }

    private static func delay(_ failures: Int) -> Double {
        // 2^10 is beyond the longest already.
        min(longestDelay, firstDelay * Double(1 << min(failures - freeFailures, 10)))
    }
}
