/// A part of a history: the events of one world, or how the history begins or ends. It has no state of its own.
protocol HistoryPart {
    var run: SimulationRun { get }
}

/// The events in histories besides edits, connections and crashes.
protocol HistoryWorld: HistoryPart {
    init(run: SimulationRun)
    func schedule()
}

extension HistoryPart {
    var simulation: Simulation { run.simulation }
    var worlds: Set<SimulatedWorld> { run.worlds }
    var dice: SimulationDice { run.dice }
    var clock: VirtualClock { run.clock }
    var journal: SimulationJournal { run.journal }
    var mesh: SimulatedMesh { run.mesh }
    var peers: [SimulatedPeer] { run.mesh.peers }
    var ledger: EditLedger { run.ledger }
    var oracle: EditOracle { run.ledger.oracle }
    var traffic: SimulatedTraffic { run.traffic }
    var accidents: Accidents { Accidents(run: run) }
    var edits: UserEdits { UserEdits(run: run) }

    func trace(_ event: String) { journal.trace(event) }

    /// Something happens in a tidy world.
    func at(_ times: ClosedRange<Int>, _ event: @escaping () throws -> Void) {
        clock.schedule(after: dice.worlds.int(times)) { [journal] in journal.attempt("an event", event) }
    }

    /// Something happens in an untidy world.
    func untidyAt(_ times: ClosedRange<Int>, _ event: @escaping () throws -> Void) {
        later(dice.untidy.int(times), "an untidy event", event)
    }

    /// Something happens in so many milliseconds, unless everybody syncs for the last time then.
    func later(_ delay: Int, _ name: String, _ event: @escaping () throws -> Void) {
        clock.schedule(after: delay) { [unowned run = run] in
            if !run.isQuiescing { run.journal.attempt(name, event) }
        }
    }

    /// A peer that does what people do, in an untidy world.
    func pickUser() -> SimulatedPeer { dice.untidy.pick(mesh.users) }
}
