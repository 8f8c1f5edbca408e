/// The clock that gives versions their times: the system's clock, but always later than every time that it gave or saw
/// (version-vectors.md §2.2).
///
/// It is a value without a clock of its own. The system's clock is an argument, `wall`, in nanoseconds since 1970. The low 16 bits of a time are a
/// counter, so that several versions have different times within 65.536 µs, and while the system's clock stands or was set back.
package struct HybridClock: Hashable, Sendable {
    /// The latest time that the clock gave or saw; 0 for none.
    package private(set) var last: UInt64

    /// Creates a clock that has given no time.
    package init() { last = 0 }

    /// Creates a clock that goes on after a time, such as the latest time of a database's own versions.
    ///
    /// - Throws: ``VersionError`` if it is neither 0 nor a valid time.
    package init(after last: UInt64) throws(VersionError) {
        guard last == 0 || Self.validTimes.contains(last) else { throw VersionError(.timeOutOfRange) }
        self.last = last
    }

    /// The times that versions of peers may have. The first one stands for generation 1 of a tree (version-vectors.md §2.1).
    package static let validTimes: ClosedRange<UInt64> = 0x100_0000_0000...0x7FFF_FFFF_FFFF_FFFF
    /// How far a peer's time may lie ahead of the system's clock: 120 seconds, in nanoseconds.
    package static let maximumLead: UInt64 = 120 * 1_000_000_000
    /// The bits of the counter.
    private static let counter: UInt64 = 0xFFFF

    /// Returns a time for a new version: the system's, or the last one and 1 if the system's is not later.
    ///
    /// - Parameters:
    ///   - wall: The system's clock.
    ///   - previous: A time after which the new one has to be, such as that of the author's version that it replaces.
    /// - Returns: The time, which is now ``last``.
    package mutating func now(wall: UInt64, after previous: UInt64 = 0) -> UInt64 {
        let reading = Self.upperPart(Self.valid(wall))
        let earliest = max(last, previous)
        // The counter carries into the upper bits. If it wrapped, time would run backwards.
        last = reading > Self.upperPart(earliest) ? reading : earliest.addingSaturated(1)
        return last
    }

    /// Notes a peer's time, so that later times of this clock are greater.
    ///
    /// - Throws: ``VersionError`` if the time is not valid, or lies more than ``maximumLead`` ahead of the system's clock and of everything that this
    ///   clock saw. Then the clock stays as it is.
    package mutating func see(_ time: UInt64, wall: UInt64) throws(VersionError) {
        guard Self.validTimes.contains(time) else { throw VersionError(.timeOutOfRange) }
        if time <= last { return }
        let wall = Self.valid(wall)
        guard Self.upperPart(time) <= wall.addingSaturated(Self.maximumLead) else {
            throw VersionError(.timeTooFarAhead)
        }
        let latest = Self.upperPart(max(time, last, wall))
        // The counters of those that are at the latest reading.
        let counters = [time, last].filter { Self.upperPart($0) == latest }.map { $0 & Self.counter }
        last = latest | (counters.max() ?? 0)
    }

    /// Notes the times of all versions of a vector that arrived, or of none if one of them is refused.
    ///
    /// The database's own versions are among them. A database that was restored from a backup is shown its own later versions by its
    /// peers, and must not give their times again.
    ///
    /// - Throws: ``VersionError``, as for a single time. Then the clock stays as it is.
    package mutating func see(_ vector: VersionVector, wall: UInt64) throws(VersionError) {
        var clock = self
        for version in vector.versions { try clock.see(version.time, wall: wall) }
        self = clock
    }

    /// A reading of the system's clock as a time that peers accept. The clocks of some devices begin at 1970, others are centuries ahead.
    private static func valid(_ wall: UInt64) -> UInt64 {
        min(max(wall, validTimes.lowerBound), validTimes.upperBound)
    }

    private static func upperPart(_ time: UInt64) -> UInt64 { time & ~counter }
}
