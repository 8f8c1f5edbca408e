import LoveseatModel

/// A whole history of N peers on a virtual clock, made from one number.
///
/// Peers edit, delete, purge, resolve and attach; connections come, are cut at any message and come again; peers die
/// and start again from what they stored. In the end everybody syncs until nothing moves, and all must hold the same.
/// The same seed gives the same history, event for event.
public struct Simulation: Sendable {
    /// The number that the history is made from.
    public let seed: UInt64
    /// A mistake to make on purpose.
    public var fault: PlantedFault?
    /// About how many edits the history has, at most.
    public var edits = 150
    /// The maximum number of peers.
    public var maximumPeers = 16
    /// How many hubs there are beside: foreign passive peers with one line of revisions, which take only what descends from
    /// their current one, and are edited behind everybody's back.
    public var hubs = 0
    /// Whether peers lose power, and with it every commit that has not reached the disk.
    public var losesPower = true
    /// The events in the history besides edits, connections and crashes. By default the seed decides, and draws none of the untidy worlds,
    /// so that the histories of earlier versions stay the same.
    public var worlds: Set<SimulatedWorld>
    /// Whether people write one of three contents again and again, as a checkbox does. By default this is the case in half of the
    /// histories.
    public var repeatsContents: Bool
    /// Prints every event.
    public var isVerbose = false
    /// Puts peers of another wire back to backups of themselves.
    package var restoresBackups = false
    /// Another wire, which most links speak; nil for none.
    package var wire: (any SimulatedWire)?

    /// A history that is not run yet.
    public init(seed: UInt64) {
        self.seed = seed
        worlds = SimulatedWorld.drawn(for: seed)
        repeatsContents = Self.repeatsContents(seed: seed)
    }

    /// Whether contents repeat in the history of a seed.
    static func repeatsContents(seed: UInt64) -> Bool {
        var dice = SeededGenerator(seed: seed ^ 0x7265_7065_6174)
        return dice.chance(0.5)
    }

    /// The result of a
    public struct Report: Hashable, Sendable {
        /// Sentences about what is wrong; none if the peers agree.
        public var problems: [String] = []
        /// A digest of every event, the same for the same seed.
        public var trace: UInt64 = 0xCBF2_9CE4_8422_2325
        /// The number of peers.
        public var peers = 0
        /// The number of connections made.
        public var connections = 0
        /// The number of revisions sent over all of them.
        public var revisionsSent = 0
        /// The number of documents in the end, tombstones included.
        public var documents = 0
    }

    /// Whether a mistake is planted, in either wire.
    var isPlanted: Bool { fault != nil || wire?.mistake != nil }

    /// Plants a mistake, and adds the worlds and hubs without which it cannot show.
    public mutating func plant(_ mistake: PlantedFault) {
        fault = mistake
        worlds.formUnion(mistake.worlds)
        hubs = max(hubs, mistake.hubs)
    }

    /// Adds the untidy worlds that the seed draws: what people do beside syncing, by a generator of its own.
    public mutating func makeUntidy() {
        worlds.formUnion(SimulatedWorld.untidyWorlds(for: seed))
        worlds.formUnion(SimulatedWorld.worldsOfOtherWires(for: seed))
    }

    /// Runs the history.
    ///
    /// - Throws: `LoveseatError` if a database of the simulation itself fails.
    public func run() throws -> Report { try SimulationRun(self).run() }
}
