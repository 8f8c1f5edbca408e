import LoveseatTesting
import Testing

@Suite struct SimulationTests {
    @Test(arguments: 0..<10) func `five hundred histories end with equal databases`(part: UInt64) throws {
        for seed in part * 50 + 1...part * 50 + 50 {
            var simulation = Simulation(seed: seed)
            simulation.edits = 20
            let report = try simulation.run()
            #expect(report.problems == [], "replay: swift run -c release simulate --seeds \(seed) --edits 20")
        }
    }

    /// 239: the wrong branch was closed when a losing one came back. 1690: two peers swapped their tombstones.
    @Test(arguments: [(239, 60), (1_690, 20)] as [(UInt64, Int)])
    func `histories that once diverged end with equal databases`(_ seed: UInt64, _ edits: Int) throws {
        var simulation = Simulation(seed: seed)
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
