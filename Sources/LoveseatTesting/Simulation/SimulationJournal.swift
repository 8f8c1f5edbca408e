/// The events of a history, and the problems that were found in it.
final class SimulationJournal {
    let isVerbose: Bool
    private let clock: VirtualClock
    var report = Simulation.Report()

    init(isVerbose: Bool, _ clock: VirtualClock) { (self.isVerbose, self.clock) = (isVerbose, clock) }

    func trace(_ event: String) {
        if isVerbose { print(clock.now, event) }
        report.trace.addEvent(event)
    }

    /// Adds a problem to the report.
    func add(_ problem: String) { report.problems.append(problem) }

    /// Does something. If it fails, this is a problem: `name` did not succeed.
    func attempt(_ name: String, _ act: () throws -> Void) {
        do { try act() } catch { add("\(name) failed: \(error)") }
    }
}
