private import Foundation
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// One run of a history with versions.
///
/// @unchecked because everything of it runs on the thread that calls ``run()``.
final class VersionSimulationRun: @unchecked Sendable {
    private static let stepBudget = 2_000_000

    /// A peer that connects to another one, by their numbers: Loveseats first, then hubs, then peers of Couchbase Lite.
    struct Edge: Hashable {
        let source: Int
        let target: Int
    }

    let simulation: VersionSimulation
    var dice: SeededGenerator
    let clock = VirtualClock()
    let runtime: SimulatedRuntime
    /// Loveseats, and hubs behind them.
    private(set) var peers: [SimulatedPeer] = []
    private(set) var lites: [LitePeer] = []
    private(set) var edges: [Edge] = []
    /// The draws of the seed for the whole history.
    struct Habits {
        /// Whether all peers merge conflicts.
        var merges = false
        var purges = false
    }

    private(set) var habits = Habits()
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
    private let folder: String

    init(_ simulation: VersionSimulation) {
        self.simulation = simulation
        dice = SeededGenerator(seed: simulation.seed)
        mistakes = simulation.fault.map { VersionMistakes($0, seed: simulation.seed) }
        runtime = SimulatedRuntime(clock, seed: simulation.seed ^ 0x7475_726E)
        if simulation.hasBlobs { oracles.blobs = VersionBlobs(seed: simulation.seed) }
        folder =
            FileManager.default.temporaryDirectory
            .appending(
                path: "loveseat-versions-\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
            ).path
    }

    // The run may have failed before it created the folder.
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func run() throws -> VersionSimulation.Report {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try makePeers()
        makeEdges()
        for peer in peers { peer.onDamage = { [unowned self] in add($0) } }
        schedule()
        runUntilQuiet()
        try quiesce()
        for peer in peers { try peer.store.close() }
        return report
    }

    func trace(_ event: String) {
        if simulation.isVerbose { print(clock.now, event) }
        for byte in event.utf8 { report.trace = (report.trace ^ UInt64(byte)) &* 0x100_0000_01B3 }
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

    // MARK: Setting up

    private func makePeers() throws {
        let count = dice.int(2...5)
        let hubs = dice.chance(0.3) ? 1 : 0
        for index in 0..<count + hubs {
            peers.append(
                try SimulatedPeer(
                    index: index,
                    collections: [.default],
                    blobFolder: "\(folder)/\(index)",
                    seed: dice.next(),
                    clock: clock,
                    isHub: index >= count
                )
            )
        }
        for number in 0..<dice.int(1...3) {
            let source = SourceID(high: dice.next() | 1, low: dice.next())
            let release = dice.chance(0.5) ? LiteRelease.release40 : .release41
            lites.append(LitePeer(index: count + hubs + number, release, clock, source: source))
        }
        // Versions that are more than two minutes ahead are refused.
        if dice.chance(0.7) {
            for peer in peers { peer.setClock(Int64(dice.int(-55_000...55_000))) }
            for lite in lites { lite.wall.offset = Int64(dice.int(-55_000...55_000)) }
        }
        habits.merges = dice.chance(0.2)
        habits.purges = dice.chance(0.2)
        report.peers = peers.count + lites.count
        trace("\(count) Loveseats, \(hubs) hubs, Couchbase Lite \(lites.map(\.database.release))")
    }

    private func makeEdges() {
        let loveseats = peers.filter { !$0.isHub }.count
        func add(_ source: Int, _ target: Int) {
            let edge = Edge(source: source, target: target)
            if !edges.contains(edge) { edges.append(edge) }
        }
        func addEitherWay(_ one: Int, _ other: Int) {
            if dice.chance(0.5) { add(one, other) } else { add(other, one) }
        }
        for index in 1..<loveseats { addEitherWay(index, dice.int(0...index - 1)) }
        for _ in 0..<dice.int(0...loveseats) {
            let (one, other) = (dice.int(0...loveseats - 1), dice.int(0...loveseats - 1))
            if one != other { add(one, other) }
        }
        for hub in peers where hub.isHub {
            for source in 0..<loveseats where source == 0 || dice.chance(0.5) { add(source, hub.index) }
        }
        for lite in lites {
            let first = dice.int(0...loveseats - 1)
            for other in 0..<loveseats where other == first || dice.chance(0.3) {
                addEitherWay(lite.index, other)
                if dice.chance(0.2) { addEitherWay(lite.index, other) }
            }
        }
        trace("edges \(edges.map { "\($0.source)>\($0.target)" })")
    }

    func lite(_ index: Int) -> LitePeer? {
        index < peers.count ? nil : lites[index - peers.count]
    }

    // MARK: The history

    private func schedule() {
        func at(_ last: Int, _ action: @escaping () -> Void) {
            clock.schedule(after: dice.int(0...last), action)
        }
        for _ in 0..<dice.int(10...max(10, simulation.edits)) {
            at(20_000) { [unowned self] in edit() }
        }
        for _ in 0..<edges.count * dice.int(2...6) {
            at(18_000) { [unowned self] in connect(dice.pick(edges)) }
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
        switch dice.int(0...1) {
        case 0:
            let lite = dice.pick(lites)
            trace("\(lite.index) starts again")
            for link in open.links where link.lite === lite { link.cut() }
            lite.database.reopen()
        default:
            trace("cut all")
            for link in open.links { link.cut() }
            for connection in open.connections { connection.cut() }
        }
    }

    func endAll() {
        for link in open.links { link.cut() }
        for connection in open.connections { connection.abandon() }
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
