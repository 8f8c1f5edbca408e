import LoveseatTesting
import Testing

@Suite struct GatewaySimulationTests {
    /// What is left: after a purge at the gateway a client keeps a descendant of what another one uploads again (187), or
    /// uploads a deletion of what was purged (330). Nothing else may come, and no more than this.
    @Test func `after five hundred histories clients hold what their users may see`() throws {
        var found: [UInt64] = []
        for seed in UInt64(1)...500 {
            let problems = try GatewaySimulation(seed: seed).run().problems
            let known = problems.filter { problem in
                ["INVENTED", "DIFFERS"].contains { problem.contains($0) }
            }
            if !known.isEmpty { found.append(seed) }
            #expect(
                problems.count == known.count,
                "replay: simulate --gateway --seeds \(seed) --edits 60: \(problems)"
            )
        }
        #expect(found.count <= 3, "\(found)")
    }

    /// Two clients put their content over each other's at the gateway with every sync; a removal and a deletion came in one list.
    @Test(arguments: [1250, 2695, 3212, 3250, 3359] as [UInt64])
    func `histories that did not come to rest, or lost a deletion, end well`(_ seed: UInt64) throws {
        #expect(try GatewaySimulation(seed: seed).run().problems == [])
    }

    @Test func `a seed gives the same history of a gateway twice`() throws {
        for seed in UInt64(1)...20 {
            #expect(try GatewaySimulation(seed: seed).run() == GatewaySimulation(seed: seed).run())
        }
    }

    @Test func `clients that keep what is taken away from them are caught`() throws {
        var caught = false
        for seed in UInt64(1)...50 where !caught {
            var simulation = GatewaySimulation(seed: seed)
            simulation.keepsWhatIsTakenAway = true
            caught = try simulation.run().problems.contains { $0.contains("KEEPS") }
        }
        #expect(caught)
    }
}
