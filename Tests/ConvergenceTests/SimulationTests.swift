import LoveseatTesting
import Testing

@Suite struct SimulationTests {
    @Test(arguments: 0..<10) func `five hundred histories end with equal databases`(part: UInt64) throws {
        for seed in part * 50 + 1...part * 50 + 50 {
            var simulation = Simulation(seed: seed)
            simulation.edits = 60
            let report = try simulation.run()
            #expect(report.problems == [], "replay: swift run -c release simulate --seeds \(seed) --edits 60")
        }
    }

    /// 239: the wrong branch was closed when a losing one came back. 1690: two peers swapped their tombstones. 478, 1970:
    /// a branch lost while it was on its way to a peer. 540, 2761, 3382: three revisions of which each beats the next. 557: a
    /// higher deletion was known as a branch that lost. 2239: what lost was taken for what is current.
    @Test(
        arguments: [239, 478, 540, 557, 1_690, 1_970, 2_239, 2_761, 3_382].map { ($0, $0 == 1_690 ? 20 : 60) }
    )
    func `histories that once diverged end with equal databases`(_ seed: Int, _ edits: Int) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = edits
        #expect(try simulation.run().problems == [])
    }

    @Test func `a seed gives the same history twice`() throws {
        for seed in UInt64(1)...20 {
            #expect(try Simulation(seed: seed).run() == Simulation(seed: seed).run())
        }
    }

    @Test(arguments: PlantedFault.allCases) func `a planted fault is caught`(fault: PlantedFault) throws {
        for seed in UInt64(1)...60 {
            var simulation = Simulation(seed: seed)
            simulation.edits = 60
            // A history that fails by itself proves nothing.
            guard try simulation.run().problems.isEmpty else { continue }
            simulation.fault = fault
            if !(try simulation.run().problems.isEmpty) { return }
        }
        Issue.record("\(fault.rawValue) was not caught in 60 histories")
    }
}
