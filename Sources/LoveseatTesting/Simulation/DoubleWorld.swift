import LoveseatModel

/// Two replicators of one database sync with one peer at the same time.
struct DoubleWorld: HistoryWorld {
    unowned let run: SimulationRun

    func mayDouble() -> Bool { worlds.contains(.doubles) && dice.untidy.chance(0.7) }

    func schedule() {
        for _ in 0..<dice.untidy.int(2...8) {
            let (edge, second) = (dice.untidy.pick(mesh.edges), dice.untidy.int(0...400))
            untidyAt(0...20_000) {
                traffic.connect(edge)
                clock.schedule(after: second) { traffic.connect(edge) }
            }
        }
    }
}
