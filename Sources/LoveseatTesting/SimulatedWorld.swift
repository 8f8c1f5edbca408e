/// Something that happens in a history beside edits, connections and crashes.
public enum SimulatedWorld: String, CaseIterable, Sendable {
    /// One peer begins with thousands of documents. Two peers edit many of them, and one of the two then syncs under a new
    /// address.
    case thousands
    /// Peers become known under other addresses, earlier ones among them, and two addresses change places.
    case addresses
    /// Collections are deleted and made anew.
    case collections
    /// Peers whose filters are loosened later.
    case filters
    /// Peers whose host lets them have a part of its documents, which changes.
    case access
    /// Replications connect again by themselves, with growing waits; some are suspended, and servers restart.
    case network
    /// Some documents have bodies of megabytes.
    case bodies
    /// Peers lose power just after they acknowledged something, and replications connect again by themselves. Nobody purges: what
    /// marks leave out by mistake is then missing in the end.
    case power
    /// Every peer has a resolver of its own, and people decide too: nobody sees to it that they agree.
    case verdicts

    /// In how many of a thousand histories it takes part.
    private var share: Int {
        switch self {
        case .thousands, .bodies: 8
        case .power: 40
        case .addresses, .collections, .filters, .access, .verdicts: 80
        case .network: 200
        }
    }

    /// The worlds of a history, by its seed.
    static func drawn(for seed: UInt64) -> Set<SimulatedWorld> {
        var dice = SeededGenerator(seed: seed ^ 0x6472_6177)
        return Set(allCases.filter { world in dice.int(1...1_000) <= world.share })
    }
}
