import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// One run of a history with versions.
///
/// @unchecked because everything of it runs on the thread that calls ``run()``.
final class VersionSimulationRun: @unchecked Sendable {
    private static let stepBudget = 2_000_000

    let simulation: VersionSimulation
    var dice: SeededGenerator
    let clock = VirtualClock()
    let runtime: SimulatedRuntime
    var mesh = VersionMesh()
    var peers: [SimulatedPeer] { mesh.peers }
    var lites: [LitePeer] { mesh.lites }
    /// The draws of the seed for the whole history.
    struct Habits {
        /// Whether all peers merge conflicts.
        var merges = false
        var purges = false
    }

    var habits = Habits()
    var merges: Bool { habits.merges }
    var purges: Bool { habits.purges }
    /// All that look for what must not be.
    private struct Oracles {
        let edits = VersionOracle()
        let contents = VersionContents()
        let issued = IssuedVersions()
        /// Nil without any blobs.
        var blobs: VersionBlobs?
    }

    private var oracles = Oracles()
    var oracle: VersionOracle { oracles.edits }
    var contents: VersionContents { oracles.contents }
    var issued: IssuedVersions { oracles.issued }
    /// The blobs of the history; nil without any.
    var blobs: VersionBlobs? { oracles.blobs }
    /// Makes the planted mistake; nil without one.
    let mistakes: VersionMistakes?
    /// Documents that are different somewhere because of what Couchbase Lite does.
    var excused: [String: Set<String>] = [:]
    var report = VersionSimulation.Report()
    /// The connections that are open.
    struct Open {
        var connections: [SimulatedConnection] = []
        var links: [LiteLink] = []
        /// The tasks that wait for the end of connections that fetch documents.
        var fetches: [ObjectIdentifier: CheckedContinuation<Bool, Never>] = [:]
        /// The revisions that went over all connections.
        var revisionsSent = 0
    }

    var open = Open()
    var isQuiescing = false
    let folder = SimulationFolder("versions")

    init(_ simulation: VersionSimulation) {
        self.simulation = simulation
        dice = SeededGenerator(seed: simulation.seed)
        mistakes = simulation.fault.map { VersionMistakes($0, seed: simulation.seed) }
        runtime = SimulatedRuntime(clock, seed: simulation.seed ^ 0x7475_726E)
        if simulation.hasBlobs { oracles.blobs = VersionBlobs(seed: simulation.seed) }
    }

    func run() throws -> VersionSimulation.Report {
        try folder.create()
        try makeParties()
        makeEdges()
        for peer in peers { peer.onDamage = { [unowned self] in add($0) } }
        schedule()
        runUntilQuiet()
        try quiesce()
        report.connections += mesh.gateway?.traffic.connections ?? 0
        for peer in peers { try peer.store.close() }
        return report
    }

    func trace(_ event: String) {
        if simulation.isVerbose { print(clock.now, event) }
        report.trace.addEvent(event)
    }

    func add(_ problem: String) {
        if simulation.isVerbose { print(clock.now, "PROBLEM", problem) }
        report.problems.append(problem)
    }

    /// Something was lost by a rule of Couchbase Lite.
    func excuse(_ id: String, _ cause: String) {
        if simulation.isVerbose { print(clock.now, "CAUSE", id, cause) }
        if excused[id, default: []].insert(cause).inserted { report.causes[cause, default: 0] += 1 }
    }

    // MARK: The history

    private func schedule() {
        func at(_ last: Int, _ action: @escaping () -> Void) {
            clock.schedule(after: dice.int(0...last), action)
        }
        for _ in 0..<dice.int(10...max(10, simulation.edits)) {
            at(20_000) { [unowned self] in edit() }
        }
        for _ in 0..<mesh.edges.count * dice.int(2...6) {
            at(18_000) { [unowned self] in connect(dice.pick(mesh.edges)) }
        }
        for _ in 0..<dice.int(0...3) { at(20_000) { [unowned self] in disturb() } }
        if simulation.worlds.contains(.restarts) {
            for _ in 0..<dice.int(2...5) { at(20_000) { [unowned self] in restart() } }
        }
        if simulation.worlds.contains(.rivals) {
            for _ in 0..<dice.int(2...5) { at(24_000) { [unowned self] in editAtOneTime() } }
        }
        // Continuous connections go on until somebody ends them.
        clock.schedule(after: 25_000) { [unowned self] in endAll() }
    }

    private func disturb() {
        switch dice.int(mesh.disturbances) {
        case 0:
            let lite = dice.pick(lites)
            trace("\(lite.index) starts again")
            for link in open.links where link.lite === lite { link.cut() }
            lite.database.reopen()
        case 2: if let gateway = mesh.gateway { disturb(gateway.traffic.twin) }
        default:
            trace("cut all")
            for link in open.links { link.cut() }
            for connection in open.connections { connection.cut() }
            mesh.gateway?.traffic.cutAll()
        }
    }

    private func disturb(_ twin: GatewayTwin) {
        if dice.chance(0.5) {
            trace("the gateway starts again")
            return twin.restart()
        }
        trace("the gateway is offline")
        twin.setOnline(false, VersionMesh.Gateway.database)
        clock.schedule(after: dice.int(1...3_000)) { twin.setOnline(true, VersionMesh.Gateway.database) }
    }

    func endAll() {
        for link in open.links { link.cut() }
        for connection in open.connections { connection.abandon() }
        mesh.gateway?.traffic.cutAll()
    }

    func runUntilQuiet() {
        let start = clock.steps
        while clock.step() {
            noteChanges()
            guard clock.steps - start < Self.stepBudget else {
                return add("ENDLESS: \(Self.stepBudget) events and more to come")
            }
        }
    }

    /// Looks at what databases have come to hold, whoever wrote it.
    func noteChanges() {
        do {
            for peer in peers where !peer.isHub {
                for (_, id) in try peer.drainChanges().documents {
                    guard let tree = peer.tree(id, in: 0) else { continue }
                    note(tree, of: id, at: peer)
                }
            }
        } catch { add("a database cannot be read: \(error)") }
        for lite in lites {
            let changed = lite.drainChanges()
            if changed.isEmpty { continue }
            for id in changed { note(lite, id) }
            for link in open.links where link.lite === lite { link.scheduleWork() }
        }
    }

    private func note(_ tree: RevisionTree, of id: String, at peer: SimulatedPeer) {
        for (revision, vector) in tree.vectors.sorted(by: { $0.key < $1.key }) {
            guard let version = vector.current, version.source != .revisionTree else { continue }
            mistakes?.note(vector, of: id)
            if version.source == peer.store.source, let problem = issued.note(version, of: id) {
                add(problem)
            }
            guard let node = tree.node(revision), let body = node.body else { continue }
            let content = VersionContents.Content(isDeleted: node.isDeleted, JSONElement(body).value)
            if let problem = contents.note(version, content, of: id, at: peer.index) { add(problem) }
        }
    }

    private func note(_ lite: LitePeer, _ id: String) {
        // A document without a version of its own, or that was purged, is not compared.
        guard let current = lite.database.documents()[id]?.current,
            let version = current.vector.current, version.source != .revisionTree
        else { return }
        let content = VersionContents.Content(isDeleted: current.isDeleted, .object(current.body ?? [:]))
        if let problem = contents.note(version, content, of: id, at: lite.index) {
            if simulation.isVerbose { print(problem) }
            excuse(id, "a version gets the content of another one (12.1, cause 3; correction 10)")
        }
    }
}
