import LoveseatReplication
import LoveseatStorage

/// One run of a history: its parts, and the order of what happens.
///
/// @unchecked because everything of it runs on the thread that calls ``run()``.
final class SimulationRun: @unchecked Sendable {
    let simulation: Simulation
    /// The special events of this history.
    let worlds: Set<SimulatedWorld>
    let dice: SimulationDice
    let clock = VirtualClock()
    let runtime: SimulatedRuntime
    let journal: SimulationJournal
    let mesh: SimulatedMesh
    let ledger = EditLedger()
    private(set) lazy var traffic = SimulatedTraffic(run: self)
    let folder = SimulationFolder("simulation")
    /// Everybody syncs for the last time.
    var isQuiescing = false

    init(_ simulation: Simulation) {
        self.simulation = simulation
        worlds = simulation.wire == nil ? simulation.worlds : simulation.worlds.intersection(WireWorld.worlds)
        dice = SimulationDice(seed: simulation.seed)
        // A history of thousands of documents has a hub half of the time.
        let crowdHasHub = dice.worlds.chance(0.5) && worlds.contains(.thousands)
        mesh = SimulatedMesh(hubs: max(simulation.hubs, crowdHasHub ? 1 : 0))
        runtime = SimulatedRuntime(clock, seed: simulation.seed ^ 0x7475_726E)
        journal = SimulationJournal(isVerbose: simulation.isVerbose, clock)
    }

    /// Nobody purges: a purge makes everybody begin anew in the end, which hides what checkpoints leave out by mistake.
    var neverPurges: Bool {
        (simulation.wire != nil && simulation.seed % 4 != 0)
            || !worlds.isDisjoint(with: [.power, .backups, .twins, .doubles, .clocks])
    }

    func run() throws -> Simulation.Report {
        try folder.create()
        try MeshMaking(run: self).make()
        for peer in mesh.peers { peer.onDamage = { [unowned self] in journal.add($0) } }
        scheduleHistory()
        try runUntilQuiet(limit: 3_000_000)
        isQuiescing = true
        try FinalSync(run: self).quiesce()
        for peer in mesh.peers { try peer.store.close() }
        return journal.report
    }

    // MARK: The history

    private func scheduleHistory() {
        let edits = dice.history.int(20...max(20, simulation.edits))
        for _ in 0..<edits {
            clock.schedule(after: dice.history.int(0...20_000)) { [unowned self] in
                UserEdits(run: self).edit()
            }
        }
        for _ in 0..<mesh.edges.count * dice.history.int(1...4) {
            let edge = dice.history.pick(mesh.edges)
            clock.schedule(after: dice.history.int(0...15_000)) { [unowned self] in traffic.connect(edge) }
        }
        for _ in 0..<dice.history.int(0...4) {
            clock.schedule(after: dice.history.int(0...20_000)) { [unowned self] in
                Accidents(run: self).crash()
            }
            clock.schedule(after: dice.history.int(0...20_000)) { [unowned self] in
                Accidents(run: self).partition()
            }
        }
        PowerWorld(run: self).schedule()
        // Guests, and links of another wire, are there or not.
        for (world, part) in parts where world.map(worlds.contains) ?? true { part.schedule() }
        // Continuous connections go on until somebody ends them.
        clock.schedule(after: 25_000) { [unowned self] in
            for connection in traffic.connections { connection.abandon() }
        }
    }

    /// The worlds that happen beside the rest; nil where something else decides. Their order decides over a seed's history.
    private var parts: [(SimulatedWorld?, any HistoryWorld)] {
        [
            (.thousands, CrowdWorld(run: self)), (.addresses, AddressWorld(run: self)),
            (.collections, RemakeWorld(run: self)), (nil, GuestWorld(run: self)),
            (.network, NetworkWorld(run: self)), (.bodies, BodyWorld(run: self)),
            (.verdicts, VerdictWorld(run: self)), (nil, WireWorld(run: self)),
            (.backups, BackupWorld(run: self)), (.twins, TwinWorld(run: self)),
            (.doubles, DoubleWorld(run: self)), (.clocks, ClockWorld(run: self)),
            (.expirations, ExpirationWorld(run: self)), (.purges, PurgeWorld(run: self)),
            (.imports, ImportWorld(run: self)), (.compactions, CompactionWorld(run: self)),
            (.couch, CouchWorld(run: self)), (.largeConflicts, LargeConflictWorld(run: self)),
        ]
    }

    func runUntilQuiet(limit: Int) throws {
        let (start, checks) = (clock.steps, VersionChecks(run: self))
        while clock.step() {
            if simulation.wire != nil { noteChanges() }
            checks.checkLists { try $0.newlyUnserved() }
            guard clock.steps - start < limit else {
                journal.add("the history does not end: \(limit) events and more to come")
                return
            }
        }
    }

    /// Tells the oracle what databases have come to know, whoever wrote it.
    private func noteChanges() {
        do {
            for peer in mesh.peers {
                let inspect = GuestWorld(run: self).inspector(of: peer)
                let (documents, isDurable) = try peer.drainChanges()
                for (collection, id) in documents {
                    guard let tree = peer.tree(id, in: collection) else { continue }
                    ledger.oracle.note(peer.index, "\(collection)/\(id)", tree)
                    inspect?(id, tree)
                }
                if isDurable { peer.reachedDisk(ledger.oracle) }
            }
        } catch { journal.add("a database cannot be read: \(error)") }
    }
}
