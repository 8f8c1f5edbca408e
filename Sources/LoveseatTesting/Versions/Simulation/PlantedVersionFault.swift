/// A mistake that a peer with version vectors could make. A ``VersionSimulation`` must notice every one of them; otherwise its findings about the
/// others are worth nothing.
///
/// That revisions behind a vector are left out does not show in these histories, in which no peer has documents from before its upgrade. The
/// recorded stories have them.
public enum PlantedVersionFault: String, CaseIterable, Sendable {
    /// A state that the current one includes counts as newer, and its content comes back.
    case ignoreCover
    /// A state that includes the current one counts as older.
    case takeNewerForOlder
    /// The clock of a process that died is forgotten.
    case forgetClock
    /// The vector of an edit keeps the author's previous version.
    case keepOwnEntry
    /// Of two versions with equal times, each side keeps its own.
    case keepOwnOfEqualTimes
    /// A state that arrives in a conflict gets the content of the one that is here.
    case mixUpContents
    /// A state that has won a conflict is sent with the vector that it had before, which does not include the loser.
    case forgetLoser
    /// A version is sent without those before it.
    case leavePreviousOut
    /// A proposal that the peer refuses with 409 counts as pushed.
    case countRefusalAsSuccess

    /// The worlds without which the mistake cannot show.
    public var worlds: Set<VersionSimulation.World> {
        switch self {
        case .forgetClock: [.restarts]
        case .keepOwnOfEqualTimes: [.rivals]
        default: []
        }
    }

    /// Plants the mistake in one history after another, each in the worlds without which it cannot show.
    ///
    /// - Returns: the first seed whose history notices it, and has no problem without it; nil if there is none.
    public func search(
        _ seeds: ClosedRange<UInt64>,
        _ configure: (inout VersionSimulation) throws -> Void = { _ in }
    ) throws -> UInt64? {
        for seed in seeds {
            var simulation = VersionSimulation(seed: seed)
            try configure(&simulation)
            simulation.plant(self)
            guard try !simulation.run().problems.isEmpty else { continue }
            simulation.fault = nil
            if try simulation.run().problems.isEmpty { return seed }
        }
        return nil
    }
}
