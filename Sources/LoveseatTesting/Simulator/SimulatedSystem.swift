/// The operating system of a simulated peer.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class SimulatedSystem: @unchecked Sendable {
    let wall: SimulatedWallClock
    /// How often it was started again after a power loss.
    var starts = 0
    private var sources: UInt64 = 0

    init(_ clock: VirtualClock) { wall = SimulatedWallClock(clock) }

    /// Random bits for a source of versions, the same in each run of a history.
    func newSource(of seed: UInt64) -> [UInt8] {
        sources += 1
        var generator = SeededGenerator(seed: seed ^ 0x736F_7572_6365 &+ sources << 32)
        return generator.bytes(16)
    }
}
