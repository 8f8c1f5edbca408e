import LoveseatTesting
import Testing

// Group of this target in ./test: busy

/// Histories of the worlds that are as untidy as people's: backups, copied folders, two replicators at once, wrong clocks and so on.
@Suite struct UntidyWorldTests {
    /// `repeatsContents`: nil if the seed decides.
    private func run(
        _ seed: UInt64,
        in worlds: Set<SimulatedWorld>,
        plants fault: PlantedFault? = nil,
        repeatsContents: Bool? = nil
    ) throws -> [String] {
        var simulation = Simulation(seed: seed)
        simulation.edits = 60
        simulation.worlds = worlds
        simulation.fault = fault
        // Where contents repeat, two collections come to have one revision without anybody's doing.
        if let repeatsContents { simulation.repeatsContents = repeatsContents }
        // A power loss would show some of the mistakes, too.
        if fault != nil { simulation.losesPower = false }
        return try simulation.run().problems
    }

    @Test(arguments: 0..<10) func `a hundred histories of all worlds end with equal databases`(part: UInt64)
        throws
    {
        for seed in part * 10 + 1...part * 10 + 10 {
            var simulation = Simulation(seed: seed)
            simulation.edits = 60
            simulation.makeUntidy()
            #expect(try simulation.run().problems == [], "replay: simulate --seeds \(seed) --edits 60")
        }
    }

    @Test(arguments: SimulatedWorld.untidy) func `histories of one untidy world lose nothing`(
        _ world: SimulatedWorld
    ) throws {
        for seed in UInt64(1)...12 {
            let problems = try run(seed, in: [world])
            #expect(problems == [], "replay: simulate --worlds \(world) --seeds \(seed) --edits 60")
        }
    }

    @Test func `untidy worlds change no history that does not draw them`() throws {
        for seed in UInt64(1)...100 {
            var simulation = Simulation(seed: seed)
            let tidy = simulation.worlds
            simulation.makeUntidy()
            let others = SimulatedWorld.untidy + SimulatedWorld.ofOtherWires
            #expect(tidy == simulation.worlds.subtracting(others))
        }
    }

    @Test(arguments: PlantedFault.untidy)
    func `a mistake that only one world can show is caught in it, and nowhere else`(_ fault: PlantedFault)
        throws
    {
        var caught: UInt64?
        for seed in UInt64(1)...200 where caught == nil {
            guard try !run(seed, in: fault.worlds, plants: fault).isEmpty else { continue }
            if try run(seed, in: fault.worlds).isEmpty { caught = seed }
        }
        let seed = try #require(caught, "\(fault.rawValue) was not caught in 200 histories")
        for other in 1...seed {
            let problems = try run(other, in: [], plants: fault, repeatsContents: false)
            #expect(problems == [], "\(fault.rawValue) shows without its world: seed \(other)")
        }
    }
}
