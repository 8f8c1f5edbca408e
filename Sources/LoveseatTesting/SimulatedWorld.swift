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

    // The worlds below are as untidy as people's. They were added later: ``Simulation/makeUntidy()`` draws them.

    /// Peers are put back to backups of themselves. Nobody purges here, nor in the next two worlds and that of the clocks.
    case backups
    /// Two devices begin with one copied folder, or with one backup.
    case twins
    /// Two replicators of one database sync with one peer at the same time.
    case doubles
    /// Documents share blobs, and conflict about them.
    case sharedBlobs
    /// Wall clocks are far apart, and are set back.
    case clocks
    /// Documents expire, and some are kept at the last moment.
    case expirations
    /// People purge a lot, and make anew what they purged.
    case purges
    /// An old export of a database is imported again, there or elsewhere.
    case imports
    /// Two collections have documents with the same IDs and the same content.
    case namesakes
    /// Databases are compacted at any moment.
    case compactions
    /// Documents of megabytes conflict.
    case largeConflicts
    /// One of the peers is a CouchDB. Only histories of that wire have this world.
    case couch

    // Only histories of another wire have the worlds below.

    /// Replications over the other wire go on, too, and wait for changes at the feeds of their peers.
    case feeds
    /// Users of the other wire whose host lets them have a part of its documents, which changes. They only pull.
    case rights

    /// The worlds that ``Simulation/makeUntidy()`` draws.
    public static let untidy: [SimulatedWorld] = [
        .backups, .twins, .doubles, .sharedBlobs, .clocks, .expirations, .purges, .imports, .namesakes,
        .compactions, .largeConflicts, .couch,
    ]

    /// The worlds that only histories of another wire have.
    package static let ofOtherWires: [SimulatedWorld] = [.feeds, .rights]

    /// In how many of a thousand histories it takes part.
    private var share: Int {
        switch self {
        case .thousands, .bodies, .largeConflicts: 8
        case .power: 40
        case .addresses, .collections, .filters, .access, .verdicts, .backups, .twins, .doubles, .sharedBlobs,
            .clocks, .expirations, .purges, .imports, .namesakes, .compactions, .couch, .feeds, .rights:
            80
        case .network: 200
        }
    }

    /// The tidy worlds of a history, by its seed.
    static func drawn(for seed: UInt64) -> Set<SimulatedWorld> {
        draw(allCases.filter { !untidy.contains($0) && !ofOtherWires.contains($0) }, seed ^ 0x6472_6177)
    }

    /// The untidy worlds of a history, by its seed.
    static func untidyWorlds(for seed: UInt64) -> Set<SimulatedWorld> {
        draw(untidy, seed ^ 0x756E_7469_6479)
    }

    /// The worlds of another wire that a history has, by its seed.
    static func worldsOfOtherWires(for seed: UInt64) -> Set<SimulatedWorld> {
        draw(ofOtherWires, seed ^ 0x7769_7265_73)
    }

    private static func draw(_ worlds: [SimulatedWorld], _ seed: UInt64) -> Set<SimulatedWorld> {
        var dice = SeededGenerator(seed: seed)
        return Set(worlds.filter { world in dice.int(1...1_000) <= world.share })
    }
}
