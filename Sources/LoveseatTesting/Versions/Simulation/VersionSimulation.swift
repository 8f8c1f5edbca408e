/// A whole history of Loveseats and peers of Couchbase Lite 4 on a virtual clock, made from one number.
///
/// Users edit, delete and make anew; Loveseats sync with each other by trees, and with peers of Couchbase Lite 4 by versions, in both roles; links
/// are cut at any frame, and clocks are wrong. With a ``mixture`` there are more kinds of peers and links. In the end everybody syncs until
/// nothing moves, and all must hold the same. The same seed gives the same history.
public struct VersionSimulation: Sendable {
    /// The number that the history is made from.
    public let seed: UInt64
    /// About how many edits the history has, at most.
    public var edits = 60
    /// Whether people write one of three contents again and again, as a checkbox does. By default this is the case in half of the
    /// histories.
    public var repeatsContents: Bool
    /// Whether some documents have blobs. The default is false. With them, a seed gives the same edits and connections as far as the time that
    /// blobs take changes nothing.
    public var hasBlobs = false
    /// The other kinds of peers and links that a history may have, each in about half of the histories. With any of them a seed gives
    /// another history than without.
    public var mixture: Set<Ingredient> = []
    /// CouchDB's wire, which some of the links between Loveseats speak if ``mixture`` has it; nil if this program does not have it.
    package var wire: (any SimulatedWire)?
    /// Prints every event.
    public var isVerbose = false
    /// The events that take place beside the usual ones; none by default.
    public var worlds: Set<World> = []
    /// The mistake that every Loveseat makes towards peers of Couchbase Lite; nil for none.
    public var fault: PlantedVersionFault?

    /// Events that a history has only if they are asked for.
    public enum World: String, CaseIterable, Sendable {
        /// Loveseats die and start again, while the system's clock is wrong.
        case restarts
        /// A Loveseat and a peer of Couchbase Lite edit a document at the very same time.
        case rivals
    }

    /// Plants a mistake, and adds the worlds without which it cannot show.
    public mutating func plant(_ mistake: PlantedVersionFault) {
        fault = mistake
        worlds.formUnion(mistake.worlds)
    }

    /// A history that is not run yet.
    public init(seed: UInt64) {
        self.seed = seed
        repeatsContents = Simulation.repeatsContents(seed: seed)
    }

    /// Something that a history may have beside Loveseats, hubs, and peers of Couchbase Lite 4.
    public enum Ingredient: String, CaseIterable, Sendable {
        /// Links between Loveseats that speak CouchDB's wire.
        case couchdb
        /// Peers that speak Couchbase's protocol without our extensions, as Couchbase Lite 3 does, and connect to Loveseats themselves.
        case plain
        /// A Sync Gateway, with which Loveseats replicate by trees.
        case gateway
    }

    /// The result of a run.
    public struct Report: Hashable, Sendable {
        /// Sentences about what is wrong; none if the peers agree, or differ for a reason that is Couchbase Lite's own.
        public var problems: [String] = []
        /// How often Couchbase Lite's own rules lost something, by cause.
        public var causes: [String: Int] = [:]
        /// A digest of every event, the same for the same seed.
        public var trace: UInt64 = 0xCBF2_9CE4_8422_2325
        /// The number of Loveseats and of all other peers, a gateway included.
        public var peers = 0
        /// The number of connections made.
        public var connections = 0
        /// The number of revisions that went over connections with Couchbase Lite 4.
        public var revisions = 0
        /// The largest number of frames of one connection with Couchbase Lite 4 or a gateway.
        public var longestConnection = 0
    }

    /// Runs the history.
    ///
    /// - Throws: `LoveseatError` if a database of the simulation itself fails.
    public func run() throws -> Report { try VersionSimulationRun(self).run() }
}
