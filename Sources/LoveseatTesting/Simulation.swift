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
    /// Prints every event.
    public var isVerbose = false

    /// A history that is not run yet.
    public init(seed: UInt64) { self.seed = seed }

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

/// One run.
final class SimulationRun {
    let simulation: Simulation
    var generator: SeededGenerator
    let clock = VirtualClock()
    var peers: [SimulatedPeer] = []
    var edges: [(source: Int, target: Int)] = []
    var connections: [SimulatedConnection] = []
    /// Who waits for the end of connections that fetch documents.
    private var fetches: [ObjectIdentifier: (Bool) -> Void] = [:]
    var report = Simulation.Report()
    private let folder: String
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
    var hubs: Int { max(simulation.hubs, simulation.fault?.needsHub == true ? 1 : 0) }

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        generator = SeededGenerator(seed: simulation.seed)
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

    private func trace(_ event: String) {
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
        merges = generator.chance(0.3)
        let names: [CollectionName] =
            generator.chance(0.4)
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
            edges.append(generator.chance(0.5) ? (index, other) : (other, index))
        }
        try makeHubs(names)
        for _ in 0..<generator.int(0...report.peers) {
            let (source, target) = (generator.int(0...report.peers - 1), generator.int(0...report.peers - 1))
            if source != target, !edges.contains(where: { $0.source == source && $0.target == target }) {
                edges.append((source, target))
            }
        }
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
                edges.append((source, index))
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
        // Continuous connections go on until somebody ends them.
        clock.schedule(after: 25_000) { [unowned self] in for connection in connections { connection.cut() } }
    }

    /// Commits reach the disk now and then, and some peers lose those that have not.
    private func schedulePowerLosses() {
        var power = SeededGenerator(seed: simulation.seed ^ 0x706F_7765_72)
        guard simulation.losesPower, power.chance(0.5) else { return }
        // Not hubs and others in one history: a hub that forgot a copy, and a maker who forgot that it is one, make the
        // original a copy of its copy, which revision trees refuse.
        let losesHubs = hubs > 0 && power.chance(0.5)
        let losers = peers.filter { $0.isHub == losesHubs }
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
                let busy = connections.flatMap { [$0.passive.owner, $0.active.owner] }
                    .filter { $0.isHub == losesHubs }
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
        do { try peer.losePower(oracle, isHeld: isHeld) } catch {
            report.problems.append("a restart failed: \(error)")
        }
        for (key, editor) in soleEditors {
            guard let entry = editor, entry.peer == peer.index, let number = Int(key.prefix(1)) else {
                continue
            }
            let current = peer.tree(String(key.dropFirst(2)), in: number)?.current
            let isKept = entry.body == nil ? current?.isDeleted == true : current?.body == entry.body
            if !isKept { soleEditors[key] = .some(nil) }
        }
    }

    /// Whether some peer has a body of a document.
    private func isHeld(_ key: String, _ body: JSONText) -> Bool {
        guard let collection = Int(key.prefix(1)) else { return false }
        return peers.contains { peer in
            peer.tree(String(key.dropFirst(2)), in: collection)?.nodes.values.contains { $0.body == body }
                == true
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

    private func connect(_ edge: (source: Int, target: Int)) {
        let isLinked = connections.contains {
            $0.active.owner.index == edge.source && $0.passive.owner.index == edge.target
        }
        guard !isQuiescing, !isLinked else { return }
        var plan = SimulatedConnection.Plan()
        switch generator.int(0...5) {
        case 0: plan.pulls = false
        case 1: plan.pushes = false
        default: break
        }
        plan.isContinuous = generator.chance(0.5)
        plan.latency = generator.pick([0...0, 1...5, 20...300])
        plan.storeDelay = generator.pick([0...0, 0...0, 0...30])
        plan.tuning = randomTuning()
        plan.cutAfter = generator.chance(0.4) ? generator.int(1...120) : nil
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
        open(edge, plan)
    }

    private func fetch(
        _ notice: FetchNotice,
        _ edge: (source: Int, target: Int),
        _ done: @escaping (Bool) -> Void
    ) {
        var plan = SimulatedConnection.Plan()
        plan.pushes = false
        plan.fetch = notice
        open(edge, plan)
        // A connection may be over before anybody could wait for its end.
        guard let connection = connections.last, connection.plan.fetch == notice else { return done(false) }
        fetches[ObjectIdentifier(connection)] = done
    }

    func open(_ edge: (source: Int, target: Int), _ plan: SimulatedConnection.Plan) {
        trace("connect \(edge.source)>\(edge.target)")
        var plan = plan
        plan.merges = merges
        let seed = generator.next()
        let faultSeed = generator.next()
        do {
            let connection = try SimulatedConnection(
                from: peers[edge.source],
                to: peers[edge.target],
                plan: plan,
                clock: clock,
                seed: seed,
                wrap: { [simulation, isQuiescing, oracle] store, owner in
                    let store = ObservedReplica(store, owner: owner, oracle: oracle)
                    guard let fault = simulation.fault, !isQuiescing else { return store }
                    return FaultyReplica(
                        store,
                        fault: fault,
                        seed: faultSeed &+ (owner.index == edge.source ? 1 : 2)
                    )
                },
                trace: { [unowned self] in trace($0) },
                onEnd: { [unowned self] in ended($0) }
            )
            if simulation.isVerbose {
                connection.detail = { [clock] text in
                    print(clock.now, text.replacing("LoveseatReplication.", with: ""))
                }
            }
            connection.onFetch = { [unowned self] notice, done in
                clock.schedule(after: 0) { [unowned self] in fetch(notice, edge, done) }
            }
            report.connections += 1
            connections.append(connection)
            connection.open()
        } catch { report.problems.append("a connection could not be made: \(error)") }
    }

    private func ended(_ connection: SimulatedConnection) {
        connections.removeAll { $0 === connection }
        fetches.removeValue(forKey: ObjectIdentifier(connection))?(connection.endedWell)
        report.revisionsSent += connection.active.peer.revisionsSent + connection.passive.peer.revisionsSent
        if let failure = connection.active.failure ?? connection.passive.failure, simulation.fault == nil {
            report.problems.append("a session failed: \(failure)")
        }
    }

    private func crash() {
        let peer = generator.pick(peers)
        trace("crash \(peer.index)")
        crash(peer)
    }

    private func crash(_ peer: SimulatedPeer) {
        for connection in connections
        where connection.active.owner === peer || connection.passive.owner === peer {
            connection.crash(peer)
        }
    }

    private func partition() {
        let side = Set(peers.indices.filter { _ in generator.chance(0.5) })
        trace("partition \(side.sorted())")
        for connection in connections
        where side.contains(connection.active.owner.index) != side.contains(connection.passive.owner.index) {
            connection.cut()
        }
    }

    // MARK: Edits

    private func edit() {
        let peer = generator.pick(peers)
        let collection = generator.int(0...peer.collections.count - 1)
        let id = "doc\(generator.int(0...generator.pick([3, 12, 40])))"
        let key = "\(collection)/\(id)"
        let kind = generator.int(0...19)
        trace("\(peer.index) edit \(kind) \(key)")
        let base = peer.tree(id, in: collection)?.current?.id
        defer {
            if let tree = peer.tree(id, in: collection) { oracle.edited(peer.index, key, tree, base: base) }
        }
        do {
            switch kind {
            case 0:
                if try peer.store.write({ try $0.purge(id, in: peer.collections[collection]) }) {
                    hasPurged = true
                    oracle.purged(peer.index, key)
                    soleEditors[key] = .some(nil)
                }
            case 1...3:
                let made = try peer.store.write {
                    try $0.save(
                        id,
                        in: peer.collections[collection],
                        body: .emptyObject,
                        isDeleted: true,
                        condition: .lastWriteWins
                    )
                }
                if made != nil { noteEdit(key, peer, nil) }
            case 4:
                let resolution = ManualMerge(peer: peer, collection: collection, documentID: id)
                if try resolution.merge() { soleEditors[key] = .some(nil) }
            default:
                let body = try randomBody(for: peer)
                _ = try peer.store.write {
                    try $0.save(
                        id,
                        in: peer.collections[collection],
                        body: body,
                        isDeleted: false,
                        condition: .lastWriteWins
                    )
                }
                noteEdit(key, peer, body)
            }
        } catch { report.problems.append("an edit failed: \(error)") }
        peer.changed(collection)
    }

    private func noteEdit(_ key: String, _ peer: SimulatedPeer, _ body: JSONText?) {
        switch soleEditors[key] {
        case nil: soleEditors[key] = (peer.index, body)
        case .some(.some(let entry)) where entry.peer == peer.index: soleEditors[key] = (peer.index, body)
        default: soleEditors[key] = .some(nil)
        }
    }

    private func randomBody(for peer: SimulatedPeer) throws -> JSONText {
        var value: JSONValue = ["n": JSONValue(generator.int(0...1_000_000)), "by": JSONValue(peer.index)]
        if generator.chance(0.3) {
            // Long enough for deltas, and much the same every time.
            value["log"] = .array((0..<generator.int(5...12)).map { JSONValue($0 * 1_000_003) })
            value["text"] = .string(
                String(repeating: "all work and no play ", count: 5) + String(generator.int(0...99))
            )
        }
        if generator.chance(0.1) {
            value["long"] = .string(String(repeating: "lorem ipsum ", count: generator.int(1...4_000)))
        }
        if generator.chance(0.15) {
            let content = generator.bytes(generator.pick([0, 10, 5_000, 200_000]))
            let writer = try peer.store.blobs.writer()
            try writer.write(content)
            let (digest, length) = try writer.finish()
            blobContents[digest] = content
            let type = generator.pick(["text/plain", "image/jpeg"])
            value["blob"] = BlobReference(digest: digest, length: length, contentType: type).json
        }
        return JSONText(canonical: value)
    }
}
