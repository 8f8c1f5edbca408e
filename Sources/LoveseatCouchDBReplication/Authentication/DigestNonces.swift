import LoveseatModel

/// The nonces of a server's Digest challenges. Pure: callers give the time, in seconds, and the random bytes.
///
/// A nonce says when it was made and is signed, so that nothing is kept for clients that have not authenticated. For those that have, the
/// counts that were used are kept: each is accepted once, in any order within a window, since a client may use a nonce on several
/// connections.
package struct DigestNonces: Sendable {
    /// How long a nonce is valid, in seconds.
    package static let lifetime = 300.0
    /// The maximum number of nonces whose counts are kept.
    package static let maximumKept = 4_096

    /// Whether a count of a nonce may be used.
    package enum Verdict: Hashable, Sendable {
        case accepted
        /// The nonce is too old, or the count was used before: the client needs a new nonce.
        case stale
        /// The nonce was not made here.
        case unknown
    }

    private struct Use {
        let made: UInt64
        var counts = CountWindow()
    }

    private let sign: @Sendable ([UInt8]) -> [UInt8]
    private var used: [String: Use] = [:]
    /// Nonces that were made before this time and are not kept are stale: their counts are forgotten.
    private var forgottenBefore: UInt64 = 0

    /// `sign` returns a signature of at least 16 bytes.
    package init(sign: @escaping @Sendable ([UInt8]) -> [UInt8]) { self.sign = sign }

    /// The number of nonces whose counts are kept.
    package var keptCount: Int { used.count }

    /// Makes a nonce. `random`: 12 bytes.
    package func make(random: [UInt8], now: Double) -> String {
        let time = UInt64(max(0, now) * 1_000)
        var content = (0..<8).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * UInt64($0))) }
        content += random
        return Base64.encode(content + sign(content).prefix(16))
    }

    private func time(of nonce: String) -> UInt64? {
        guard nonce.utf8.count <= 128, let bytes = Base64.decode(Substring(nonce)), bytes.count > 24,
            Base64.encode(bytes) == nonce
        else { return nil }
        let content = Array(bytes.dropLast(16))
        let difference = zip(bytes.suffix(16), sign(content)).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
        guard difference == 0 else { return nil }
        return content.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }

    /// Uses a count of a nonce, after the client's proof was checked.
    package mutating func use(_ nonce: String, count: UInt32, now: Double) -> Verdict {
        guard let made = time(of: nonce) else { return .unknown }
        let oldest = UInt64(max(0, now - Self.lifetime) * 1_000)
        guard made >= oldest else {
            used[nonce] = nil
            return .stale
        }
        if used[nonce] == nil {
            guard made >= forgottenBefore else { return .stale }
            if used.count >= Self.maximumKept { forget(before: oldest) }
            used[nonce] = Use(made: made)
        }
        return used[nonce]?.counts.use(count) == true ? .accepted : .stale
    }

    /// Forgets expired nonces, or else the older half.
    private mutating func forget(before oldest: UInt64) {
        used = used.filter { $0.value.made >= oldest }
        if used.count < Self.maximumKept { return }
        let times = used.values.map(\.made).sorted()
        let middle = times[times.count / 2]
        forgottenBefore = max(forgottenBefore, middle + 1)
        used = used.filter { $0.value.made > middle }
    }
}

/// Which of the last counts were used.
private struct CountWindow {
    /// How far a count may be behind the highest one.
    private static let size: UInt32 = 512

    private var highest: UInt32 = 0
    private var bits = [UInt64](repeating: 0, count: 8)

    /// Returns false for a count that was used, or that is too far behind.
    mutating func use(_ count: UInt32) -> Bool {
        if count > highest {
            let gap = count - highest
            if gap >= Self.size {
                bits = [UInt64](repeating: 0, count: bits.count)
            } else {
                for passed in (highest + 1)...count { clear(passed) }
            }
            highest = count
        } else if highest - count >= Self.size {
            return false
        }
        let (word, bit) = Self.place(count)
        guard bits[word] & bit == 0 else { return false }
        bits[word] |= bit
        return true
    }

    private mutating func clear(_ count: UInt32) {
        let (word, bit) = Self.place(count)
        bits[word] &= ~bit
    }

    private static func place(_ count: UInt32) -> (Int, UInt64) {
        let index = count % size
        return (Int(index / 64), 1 << UInt64(index % 64))
    }
}
