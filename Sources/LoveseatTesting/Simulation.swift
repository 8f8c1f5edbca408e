private import Foundation
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

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

    /// The result of a run.
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
    public mutating func makeUntidy() { worlds.formUnion(SimulatedWorld.untidyWorlds(for: seed)) }

    /// Runs the history.
    ///
    /// - Throws: ``LoveseatError`` if a database of the simulation itself fails.
    public func run() throws -> Report { try SimulationRun(self).run() }
}

/// One peer connects to another one.
struct Edge: Hashable {
    let source: Int
    let target: Int

    init(_ source: Int, _ target: Int) { (self.source, self.target) = (source, target) }
}

/// One run.
///
/// @unchecked because everything of it runs on the thread that calls ``run()``.
final class SimulationRun: @unchecked Sendable {
    let simulation: Simulation
    var generator: SeededGenerator
    let clock = VirtualClock()
    let runtime: SimulatedRuntime
    var peers: [SimulatedPeer] = []
    var edges: [Edge] = []
    var connections: [SimulatedConnection] = []
    /// The tasks that wait for the end of connections that fetch documents.
    var fetches: [ObjectIdentifier: CheckedContinuation<Bool, Never>] = [:]
    var report = Simulation.Report()
    let folder: String
    var hasPurged = false
    /// Whether all peers merge conflicts.
    var merges = false
    var isQuiescing = false
    let oracle = EditOracle()
    /// Random numbers for choices that were added later, so that a seed still gives the same history.
    var extras: SeededGenerator
    /// The only editor of each document, and what it wrote last; nil once there were several, or a purge.
    var soleEditors: [String: (peer: Int, body: JSONText?)?] = [:]
    var blobContents: [BlobDigest: [UInt8]] = [:]

    var hubs: Int { max(simulation.hubs, crowdHasHub ? 1 : 0) }

    /// The verdicts of the peers' resolvers, by the peers' numbers; empty if no peer has a resolver of its own.
    var verdicts: [Int: SimulatedVerdict] = [:]

    /// The special events of this history.
    let worlds: Set<SimulatedWorld>
    /// For the worlds, so that histories without them stay the same.
    var worldDice: SeededGenerator
    /// For the untidy worlds, so that histories without them stay the same.
    var untidyDice: SeededGenerator
    /// The peers that were put back to a backup.
    var restored: Set<Int> = []
    /// The changes that sessions have been given, for a planted mistake.
    let handedOut = HandedOut()
    /// A history of thousands of documents has a hub half of the time.
    let crowdHasHub: Bool
    /// Under which address a peer knows another one, where that is not the first one.
    var addresses: [Edge: String] = [:]
    /// The links that speak another wire.
    var foreignEdges: Set<Edge> = []
    /// Nobody purges: a purge makes everybody begin anew in the end, which hides what checkpoints leave out by mistake.
    var neverPurges: Bool {
        (simulation.wire != nil && simulation.seed % 4 != 0)
            || !worlds.isDisjoint(with: [.power, .backups, .twins, .doubles, .clocks])
    }
    /// For links of another wire, and what happens on them.
    var wireDice: SeededGenerator
    /// Peers beside the others, which see only a part of what their host has.
    var guests: [SimulatedGuest] = []
    /// Documents made in collections that were made anew.
    var freshDocuments: [String: (peer: Int, body: JSONText)] = [:]
    /// The documents that somebody once had and gave up.
    var purgedKeys: Set<String> = []
    /// Connections that lost a collection below them.
    var disturbed: Set<ObjectIdentifier> = []

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        worlds = simulation.wire == nil ? simulation.worlds : simulation.worlds.intersection(Self.wireWorlds)
        worldDice = SeededGenerator(seed: simulation.seed ^ 0x776F_726C_6473)
        untidyDice = SeededGenerator(seed: simulation.seed ^ 0x706C_6170)
        wireDice = SeededGenerator(seed: simulation.seed ^ 0x7769_7265)
        crowdHasHub = worldDice.chance(0.5) && worlds.contains(.thousands)
        generator = SeededGenerator(seed: simulation.seed)
        runtime = SimulatedRuntime(clock, seed: simulation.seed ^ 0x7475_726E)
        extras = SeededGenerator(seed: simulation.seed ^ 0x6875_6273)
        folder =
            FileManager.default.temporaryDirectory
            .appending(
                path: "loveseat-simulation-\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
            ).path
    }

    // The run may have failed before it created the folder.
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func run() throws -> Simulation.Report {
        try makePeers()
        for peer in peers { peer.onDamage = { [unowned self] in report.problems.append($0) } }
        scheduleHistory()
        try runUntilQuiet(limit: 3_000_000)
        try quiesce()
        for peer in peers { try peer.store.close() }
        return report
    }

    func trace(_ event: String) {
        if simulation.isVerbose { print(clock.now, event) }
        for byte in event.utf8 { report.trace = (report.trace ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    // MARK: Setting up

    private func makePeers() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let small = generator.chance(0.7)
        report.peers =
            small
            ? generator.int(2...min(4, simulation.maximumPeers)) : generator.int(2...simulation.maximumPeers)
        if simulation.wire != nil { report.peers = min(report.peers, 4) }
        // Twins have a peer in common.
        if worlds.contains(.twins) { report.peers = max(report.peers, 3) }
        if !worlds.isDisjoint(with: [.thousands, .bodies, .largeConflicts]) {
            report.peers = min(report.peers, 3)
        }
        merges = generator.chance(0.3)
        let names: [CollectionName] =
            generator.chance(0.4) && worlds.isDisjoint(with: [.collections, .namesakes])
            ? [.default]
            : [CollectionName(scope: "s", name: "one"), CollectionName(scope: "s", name: "two")].compactMap {
                $0
            }
        for index in 0..<report.peers {
            let peer = try SimulatedPeer(
                index: index,
                collections: names,
                blobFolder: "\(folder)/\(index)",
                seed: generator.next(),
                clock: clock,
                revisionDepth: drawnDepth(),
                fault: simulation.fault,
                runsTasksInPlace: simulation.wire != nil
            )
            peers.append(peer)
            guard index > 0 else { continue }
            // A spanning tree keeps everybody reachable, in either direction; further edges make rings and cliques.
            let other = generator.int(0...index - 1)
            edges.append(generator.chance(0.5) ? Edge(index, other) : Edge(other, index))
        }
        try makeHubs(names)
        for _ in 0..<generator.int(0...report.peers) {
            let (source, target) = (generator.int(0...report.peers - 1), generator.int(0...report.peers - 1))
            if source != target, !edges.contains(Edge(source, target)) { edges.append(Edge(source, target)) }
        }
        try makeGuests(names)
        drawWires()
        try makeCouch(names)
        drawVerdicts()
    }

    /// Peers of CouchDB's wire cannot tell that a leaf was edited if the history between was cut off.
    private func drawnDepth() -> Int {
        let depth = extras.pick([RevisionTree.maximumDepth, RevisionTree.maximumDepth, 4])
        return simulation.wire == nil ? depth : RevisionTree.maximumDepth
    }

    private func makeHubs(_ names: [CollectionName]) throws {
        for _ in 0..<hubs {
            let index = peers.count
            let hub = try SimulatedPeer(
                index: index,
                collections: names,
                blobFolder: "\(folder)/\(index)",
                seed: extras.next(),
                clock: clock,
                isHub: true,
                runsTasksInPlace: simulation.wire != nil
            )
            for source in 0..<report.peers where extras.chance(0.6) || source == index % report.peers {
                edges.append(Edge(source, index))
            }
            peers.append(hub)
            oracle.hubs.insert(index)
        }
    }

    // MARK: The history

    private func scheduleHistory() {
        let edits = generator.int(20...max(20, simulation.edits))
        for _ in 0..<edits { clock.schedule(after: generator.int(0...20_000)) { [unowned self] in edit() } }
        for _ in 0..<edges.count * generator.int(1...4) {
            let edge = generator.pick(edges)
            clock.schedule(after: generator.int(0...15_000)) { [unowned self] in connect(edge) }
        }
        for _ in 0..<generator.int(0...4) {
            clock.schedule(after: generator.int(0...20_000)) { [unowned self] in crash() }
            clock.schedule(after: generator.int(0...20_000)) { [unowned self] in partition() }
        }
        schedulePowerLosses()
        scheduleWorlds()
        scheduleWires()
        scheduleUntidyWorlds()
        // Continuous connections go on until somebody ends them.
        clock.schedule(after: 25_000) { [unowned self] in
            for connection in connections { connection.abandon() }
        }
    }
}
