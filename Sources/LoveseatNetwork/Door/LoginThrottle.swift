/// Slows down guessing at passwords. Pure: the caller passes the time, in seconds.
///
/// Failures count for the pair of an address and a user name, for the address, and for the user name, each with its own
/// allowance. The longest of the three delays counts. A right
/// password from a busy address, or for a user name that others guess at, waits for ``maximumSharedWait`` at most. A busy address
/// gets ``attemptsPerSecond``, whatever the number of names and connections: attempts beyond these are refused. A success
/// takes back the failures of its own pair, and no others; for ten minutes, its pair does not wait because of others' failures.
package struct LoginThrottle: Sendable {
    /// The number of failures of one user name from one address before attempts are delayed.
    package static let freeFailures = 3
    private static let freeAddressFailures = 15
    private static let freeUserFailures = 30
    private static let firstDelay = 0.5
    private static let maximumDelay = 30.0
    /// The maximum delay of an attempt, in seconds. An attempt that would have to wait longer is refused at once.
    package static let maximumWait = 5.0
    /// The maximum delay because of other clients' failures, in seconds.
    package static let maximumSharedWait = 2.0
    /// How many attempts an address gets that has failed too often, with names that have not logged in from there.
    package static let attemptsPerSecond = 10.0
    private static let forgetAfter = 600.0
    private static let maximumEntries = 10_000
    /// The maximum length of a user name, in bytes; names that differ only after that are delayed together.
    private static let maximumName = 128

    private enum Key: Hashable {
        case pair(address: String, user: String)
        case address(String)
        case user(String)
    }

    private struct Entry {
        var failures = 0
        var notBefore = 0.0
        var lastFailure = 0.0
        /// When an address may make the next attempt.
        var nextAttempt = 0.0
    }

    private var entries: [Key: Entry] = [:]
    /// When each pair has logged in last.
    private var successes: [Key: Double] = [:]

    package init() {}

    /// The number of remembered pairs, addresses and names.
    package var count: Int { entries.count + successes.count }

    /// The answer to an attempt.
    package enum Permission: Hashable {
        /// Try after a number of seconds.
        case after(Double)
        /// Refused for a number of seconds.
        case refused(retryAfter: Double)
    }

    private static func keys(_ address: String, _ user: String) -> (pair: Key, shared: [(Key, free: Int)]) {
        let user = String(decoding: user.utf8.prefix(maximumName), as: UTF8.self)
        return (
            .pair(address: address, user: user),
            [(.address(address), freeAddressFailures), (.user(user), freeUserFailures)]
        )
    }

    /// Asks for an attempt of an address with a user name.
    package mutating func ask(_ address: String, user: String = "", now: Double) -> Permission {
        let (pair, shared) = Self.keys(address, user)
        let own = wait(of: pair, free: Self.freeFailures, now: now)
        guard own <= Self.maximumWait else { return .refused(retryAfter: own) }
        if let success = successes[pair], now - success < Self.forgetAfter {
            queue(pair, free: Self.freeFailures, now: now)
            return .after(own)
        }
        var others = shared.map { min(wait(of: $0.0, free: $0.free, now: now), Self.maximumSharedWait) }
        if let entry = entries[.address(address)], entry.failures >= Self.freeAddressFailures {
            let turn = max(now, entry.nextAttempt)
            guard turn - now <= Self.maximumSharedWait else { return .refused(retryAfter: turn - now) }
            entries[.address(address)]?.nextAttempt = turn + 1 / Self.attemptsPerSecond
            others.append(turn - now)
        }
        // The next attempt waits for this one.
        queue(pair, free: Self.freeFailures, now: now)
        for (key, free) in shared { queue(key, free: free, now: now) }
        return .after(max(own, others.max() ?? 0))
    }

    package mutating func failed(_ address: String, user: String = "", now: Double) {
        let (pair, shared) = Self.keys(address, user)
        for (key, free) in [(pair, Self.freeFailures)] + shared.map({ ($0.0, $0.free) }) {
            if entries[key] == nil, entries.count >= Self.maximumEntries { forgetOldest() }
            var entry = entries[key] ?? Entry()
            entry.failures += 1
            entry.lastFailure = now
            if entry.failures >= free {
                entry.notBefore = max(entry.notBefore, now + Self.delay(entry.failures - free))
            }
            entries[key] = entry
        }
    }

    package mutating func succeeded(_ address: String, user: String = "", now: Double) {
        let (pair, shared) = Self.keys(address, user)
        if successes[pair] == nil, successes.count >= Self.maximumEntries {
            successes = successes.filter { now - $0.value < Self.forgetAfter }
            if successes.count >= Self.maximumEntries { successes = [:] }
        }
        successes[pair] = now
        // The pair has not failed, so that there is nothing to take back.
        guard let own = entries.removeValue(forKey: pair)?.failures else { return }
        for (key, _) in shared {
            guard var entry = entries[key] else { continue }
            entry.failures -= own
            entries[key] = entry.failures > 0 ? entry : nil
        }
    }

    private mutating func wait(of key: Key, free: Int, now: Double) -> Double {
        guard let entry = entries[key] else { return 0 }
        guard now - entry.lastFailure < Self.forgetAfter else {
            entries[key] = nil
            return 0
        }
        return entry.failures >= free ? max(0, entry.notBefore - now) : 0
    }

    private mutating func queue(_ key: Key, free: Int, now: Double) {
        // Within its allowance, an attempt does not delay the next one.
        guard let entry = entries[key], entry.failures >= free else { return }
        entries[key]?.notBefore = max(now, entry.notBefore) + Self.delay(entry.failures - free)
    }

    /// Forgets half of the entries, so that this is rarely needed.
    private mutating func forgetOldest() {
        let times = entries.values.map(\.lastFailure).sorted()
        let middle = times[times.count / 2]
        entries = entries.filter { $0.value.lastFailure > middle }
        if entries.count >= Self.maximumEntries { entries = [:] }
    }

    private static func delay(_ failures: Int) -> Double {
        // 2^10 exceeds the maximum already.
        min(maximumDelay, firstDelay * Double(1 << min(failures, 10)))
    }
}
