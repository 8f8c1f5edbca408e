import LoveseatModel

/// The state of a history in which the gateway gives versions.
final class GatewayVersionWorld {
    /// Which edits the author of each edit had seen.
    let oracle = VersionOracle()
    let contents = VersionContents()
    /// The gateway's clock.
    let wall: SimulatedWallClock
    /// Whether the gateway gives versions.
    var isUpgraded = false
    /// The gateway's last sequence when its documents were looked at.
    var sequenceNoted: Int?
    private var sources: SeededGenerator

    init(_ clock: VirtualClock, seed: UInt64) {
        wall = SimulatedWallClock(clock)
        sources = SeededGenerator(seed: seed ^ 0x736F_7572_6365)
    }

    /// A source that the gateway has not had.
    func newSource() -> SourceID { SourceID(high: sources.next() | 1, low: sources.next()) }
}
