private import Foundation
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
    /// The most peers.
    public var maximumPeers = 16
    /// How many hubs there are beside: foreign passive peers with one line of revisions, which take only what descends from
    /// their current one, and are edited behind everybody's back.
    public var hubs = 0
    /// Whether peers lose power, and with it every commit that has not reached the disk.
    public var losesPower = true
    /// What happens in the history beside edits, connections and crashes. By default the seed decides.
    public var worlds: Set<SimulatedWorld>
    /// Prints every event.
    public var isVerbose = false

    /// A history that is not run yet.
    public init(seed: UInt64) {
        self.seed = seed
        worlds = SimulatedWorld.drawn(for: seed)
    }

    /// What a run found.
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
    /// Those who wait for the end of connections that fetch documents.
    private var fetches: [ObjectIdentifier: CheckedContinuation<Bool, Never>] = [:]
    var report = Simulation.Report()
    let folder: String
    var hasPurged = false
    /// Whether all peers merge conflicts.
    var merges = false
    var isQuiescing = false
    let oracle = EditOracle()
    /// For what came later, so that a seed goes on to give the same history.
    var extras: SeededGenerator
    /// The only editor of each document, and what it wrote last; nil once there were several, or a purge.
    var soleEditors: [String: (peer: Int, body: JSONText?)?] = [:]
    var blobContents: [BlobDigest: [UInt8]] = [:]

    /// Some mistakes show only where there is a hub.
    var hubs: Int { max(simulation.hubs, simulation.fault?.needsHub == true || crowdHasHub ? 1 : 0) }

    /// What is special in this history.
    let worlds: Set<SimulatedWorld>
    /// For the worlds, so that histories without them stay the same.
    var worldDice: SeededGenerator
    /// A history of thousands of documents has a hub half of the time.
    let crowdHasHub: Bool
    /// Under which address a peer knows another one, where that is not the first one.
    var addresses: [Edge: String] = [:]
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
        worlds = simulation.worlds.union(simulation.fault?.world.map { [$0] } ?? [])
        worldDice = SeededGenerator(seed: simulation.seed ^ 0x776F_726C_6473)
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

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func run() throws -> Simulation.Report {
        try makePeers()
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
        if !worlds.isDisjoint(with: [.thousands, .bodies]) { report.peers = min(report.peers, 3) }
        merges = generator.chance(0.3)
        let names: [CollectionName] =
            generator.chance(0.4) && !worlds.contains(.collections)
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
                revisionDepth: extras.pick([RevisionTree.maximumDepth, RevisionTree.maximumDepth, 4]),
                omissions: simulation.fault?.omissions ?? []
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
    }

    private func makeHubs(_ names: [CollectionName]) throws {
        for _ in 0..<hubs {
            let index = peers.count
            let hub = try SimulatedPeer(
                index: index,
                collections: names,
                blobFolder: "\(folder)/\(index)",
                seed: extras.next(),
                isHub: true
            )
            for source in 0..<report.peers where extras.chance(0.6) || source == index % report.peers {
                edges.append(Edge(source, index))
            }
            peers.append(hub)
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
        // Continuous connections go on until somebody ends them.
        clock.schedule(after: 25_000) { [unowned self] in
            for connection in connections { connection.abandon() }
        }
    }

    /// Commits reach the disk now and then, and some peers lose those that have not.
    private func schedulePowerLosses() {
        var power = SeededGenerator(seed: simulation.seed ^ 0x706F_7765_72)
        guard simulation.losesPower, power.chance(0.5) else { return }
        // Not hubs and others in one history: a hub that forgot a copy, and a maker who forgot that it is one, make the
        // original a copy of its copy, which revision trees refuse.
        let losesHubs = hubs > 0 && power.chance(0.5)
        let losers = peers.filter { $0.isHub == losesHubs && !sharesGrants($0) }
        guard !losers.isEmpty else { return }
        for peer in losers {
            sync(peer)
            for _ in 0..<power.int(0...3) {
                clock.schedule(after: power.int(0...20_000)) { [unowned self] in sync(peer) }
            }
        }
        for _ in 0..<power.int(1...4) {
            let number = power.int(0...1_000)
            clock.schedule(after: power.int(0...22_000)) { [unowned self] in
                // Most of what can go wrong goes wrong in the middle of a session.
                let busy = connections.flatMap { [$0.target, $0.source] }
                    .filter { $0.isHub == losesHubs && !sharesGrants($0) }
                losePower(busy.isEmpty ? losers[number % losers.count] : busy[number % busy.count])
            }
        }
    }

    private func sync(_ peer: SimulatedPeer) {
        trace("sync \(peer.index)")
        do { try peer.sync(oracle) } catch { report.problems.append("a sync failed: \(error)") }
    }

    private func losePower(_ peer: SimulatedPeer) {
        trace("power loss \(peer.index)")
        crash(peer)
        do { try peer.losePower(oracle) } catch {
            report.problems.append("a restart failed: \(error)")
        }
        for (key, editor) in soleEditors {
            guard let entry = editor, entry.peer == peer.index, let number = Int(key.prefix(1)) else {
                continue
            }
            let current = peer.tree(String(key.dropFirst(2)), in: number)?.current
            let isKept = entry.body == nil ? current?.isDeleted == true : current?.body == entry.body
            if !isKept {
                soleEditors[key] = .some(nil)
                freshDocuments[key] = nil
            }
        }
    }

    private func randomTuning() -> ReplicationTuning {
        var tuning = ReplicationTuning()
        tuning.changesPerMessage = generator.pick([10, 20, 200])
        tuning.insertBatch = generator.pick([1, 5, 100])
        tuning.revisionsTransmitting = generator.pick([1, 3, 10])
        tuning.revisionsRequested = generator.pick([5, 50, 200])
        tuning.listsInFlight = generator.pick([1, 5])
        tuning.revisionsQueued = generator.pick([5, 600])
        tuning.checkpointDelay = generator.pick([50, 500, 5_000])
        tuning.blobPiece = generator.pick([1_000, 64 << 10])
        return tuning
    }

    private func randomLink() -> SimulatedLink.Plan {
        var link = SimulatedLink.Plan()
        link.latency = generator.pick([0...0, 1...5, 20...300])
        link.bytesPerMillisecond = generator.pick([50, 2_000, 1_000_000])
        link.capacity = generator.pick([1, 10_000, 1 << 20])
        link.cutAfter =
            generator.chance(0.4) ? generator.pick([1_000, 10_000, 200_000]) : nil
        link.notice = generator.pick([0...0, 0...50, 0...3_000])
        link.losesWhatIsUnderWay = generator.chance(0.5)
        return link
    }

    func connect(_ edge: Edge) {
        let isLinked = connections.contains {
            $0.source.index == edge.source && $0.target.index == edge.target
        }
        guard !isQuiescing, !isLinked else { return }
        var plan = SimulatedConnection.Plan()
        switch generator.int(0...5) {
        case 0: plan.pulls = false
        case 1: plan.pushes = false
        default: break
        }
        plan.isContinuous = generator.chance(0.5)
        plan.link = randomLink()
        plan.storeDelay = generator.pick([0...0, 0...0, 0...30])
        plan.tuning = randomTuning()
        plan.resolverFailures = generator.pick([0, 0, 0.3])
        plan.reset = generator.chance(0.05) ? .checkpoint : .none
        plan.activeDeltas = generator.chance(0.6)
        plan.passiveDeltas = generator.chance(0.6)
        if generator.chance(0.15) { plan.pushFilter = generator.int(0...2) }
        if generator.chance(0.15) { plan.pullFilter = generator.int(0...2) }
        if generator.chance(0.1) {
            plan.isContinuous = false
            plan.documentIDs = (0..<5).map { _ in "doc\(generator.int(0...40))" }
        }
        persist(&plan)
        open(edge, plan)
    }

    /// Pulls documents by their IDs over a connection of its own; returns whether it ended well.
    private func fetch(_ notice: FetchNotice, _ edge: Edge, _ remoteName: String?) async -> Bool {
        var plan = SimulatedConnection.Plan()
        plan.pushes = false
        plan.fetch = notice
        plan.remoteName = remoteName
        guard !Task.isCancelled, let connection = open(edge, plan) else { return false }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { fetches[ObjectIdentifier(connection)] = $0 }
        } onCancel: {
            connection.stop()
        }
    }

    @discardableResult
    func open(_ edge: Edge, _ plan: SimulatedConnection.Plan) -> SimulatedConnection? {
        trace("connect \(edge.source)>\(edge.target)")
        var plan = plan
        plan.merges = merges
        plan.remoteName = plan.remoteName ?? addresses[edge]
        plan.omissions = simulation.fault?.driverOmissions ?? []
        plan.trustsOwnCheckpoint = simulation.fault == .trustOwnCheckpoint
        guests.first { $0.peer.index == edge.source }?.restrict(&plan)
        let seed = generator.next()
        let connection = SimulatedConnection(
            from: peers[edge.source],
            to: peers[edge.target],
            plan: plan,
            seed: seed,
            surroundings(edge, plan.remoteName, faultSeed: generator.next())
        )
        report.connections += 1
        connections.append(connection)
        connection.open()
        return connection
    }

    private func surroundings(_ edge: Edge, _ remoteName: String?, faultSeed: UInt64)
        -> SimulatedConnection.Surroundings
    {
        SimulatedConnection.Surroundings(
            runtime: runtime,
            access: { [unowned self] in access(to: edge.target, from: edge.source) },
            wrap: { [unowned self, isQuiescing] store, owner in
                let store = ObservedReplica(
                    store,
                    owner: owner,
                    oracle: oracle,
                    inspect: inspector(of: owner)
                )
                guard let fault = simulation.fault, !isQuiescing else { return store }
                return FaultyReplica(
                    store,
                    fault: fault,
                    seed: faultSeed &+ (owner.index == edge.source ? 1 : 2)
                )
            },
            fetch: { [unowned self] in await fetch($0, edge, remoteName) },
            trace: { [unowned self] in trace($0) },
            detail: simulation.isVerbose
                ? { [clock] text in print(clock.now, text.replacing("LoveseatReplication.", with: "")) }
                : nil,
            onEnd: { [unowned self] in ended($0) }
        )
    }

    private func ended(_ connection: SimulatedConnection) {
        connections.removeAll { $0 === connection }
        fetches.removeValue(forKey: ObjectIdentifier(connection))?.resume(returning: connection.endedWell)
        report.revisionsSent += connection.revisionsSent
        let isDisturbed = disturbed.remove(ObjectIdentifier(connection)) != nil
        if connection.hasLeftTimers { report.problems.append("a driver left timers behind") }
        if let failure = connection.failure, !isDisturbed, simulation.fault == nil {
            report.problems.append("a session failed: \(failure)")
        }
    }

    private func crash() {
        let peer = generator.pick(peers)
        trace("crash \(peer.index)")
        crash(peer)
    }

    func crash(_ peer: SimulatedPeer) {
        for connection in connections
        where connection.source === peer || connection.target === peer {
            connection.crash(peer)
        }
    }

    private func partition() {
        let side = Set(peers.indices.filter { _ in generator.chance(0.5) })
        trace("partition \(side.sorted())")
        for connection in connections
        where side.contains(connection.source.index) != side.contains(connection.target.index) {
            connection.cut()
        }
    }
}
