/// The wall clock of a simulated peer, which may be wrong.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
package final class SimulatedWallClock: @unchecked Sendable {
    private let clock: VirtualClock
    /// How far it is ahead, in milliseconds.
    var offset: Int64 = 0
    /// The last sequence of each of the peer's collections when it was set back last.
    var sequencesAtSetback: [UInt64] = []

    init(_ clock: VirtualClock) { self.clock = clock }

    /// Milliseconds since 1970.
    var now: Int64 { SimulatedRuntime.beginning + Int64(clock.now) + offset }
}
