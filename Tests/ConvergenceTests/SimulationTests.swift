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

    /// 1475, 2394, 2929: of two deletions the lower stood, where a peer knew both already. (Seeds from before the simulation
    /// drew filters and deltas are other histories now; what they found is in RevisionTests.)
    @Test(arguments: [(1_475, 60), (2_394, 60), (2_929, 60)])
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
