/// A whole history of a gateway and its clients on a virtual clock, made from one number.
///
/// Users' clients edit and delete, REST writers and administrators change documents, rights and roles, documents grant and
/// take rights, connections break and the gateway restarts. In the end every client syncs until nothing moves, and must
/// hold exactly what its user may see. The same seed gives the same history.
public struct GatewaySimulation: Sendable {
    /// The number that the history is made from.
    public let seed: UInt64
    /// About how many things happen in the history, at most.
    public var edits = 60
    /// A mistake to make on purpose: clients keep the documents that are taken away from them.
    public var keepsWhatIsTakenAway = false
    /// Whether the gateway is put back to backups of itself.
    public var restoresBackups = false
    /// Whether the gateway becomes one of version 4 during the history, and some of the clients offer it versions. Everybody may see everything, and
    /// nothing is purged.
    public var speaksVersions = false
    /// Whether people write one of three contents again and again, as a checkbox does. By default this is the case in half of the
    /// histories.
    public var repeatsContents: Bool
    /// Prints every event.
    public var isVerbose = false

    /// A history that is not run yet.
    public init(seed: UInt64) {
        self.seed = seed
        repeatsContents = Simulation.repeatsContents(seed: seed)
    }

    /// The result of a run.
    public struct Report: Hashable, Sendable {
        /// Sentences about what is wrong; none if every client holds what it should.
        public var problems: [String] = []
        /// A digest of every event, the same for the same seed.
        public var trace: UInt64 = 0xCBF2_9CE4_8422_2325
        /// The number of clients.
        public var clients = 0
        /// The number of connections made.
        public var connections = 0
        /// The number of revisions that the gateway took from clients.
        public var revisionsTaken = 0
        /// The largest number of frames of one connection.
        public var longestConnection = 0
    }

    /// Runs the history.
    ///
    /// - Throws: `LoveseatError` if a client's database fails.
    public func run() throws -> Report { try GatewaySimulationRun(self).run() }
}
