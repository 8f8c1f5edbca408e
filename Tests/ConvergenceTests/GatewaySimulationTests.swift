import LoveseatTesting
import Testing

@Suite struct GatewaySimulationTests {
    /// One line cannot say that two documents were put on top of each other, so a deletion of one may reach the other: rarely.
    @Test func `after five hundred histories clients hold what their users may see`() throws {
        var invented: [UInt64] = []
        for seed in UInt64(1)...500 {
            let problems = try GatewaySimulation(seed: seed).run().problems
            let inventions = problems.filter { $0.hasPrefix("INVENTED") }
            if !inventions.isEmpty { invented.append(seed) }
            #expect(
                problems.count == inventions.count,
                "replay: simulate --gateway --seeds \(seed) --edits 60: \(problems)"
            )
        }
        #expect(invented.count <= 2, "\(invented)")
    }

    @Test func `a gateway that is put back to backups gets back what its clients have`() throws {
        for seed in UInt64(254)...400 {
            var simulation = GatewaySimulation(seed: seed)
            simulation.restoresBackups = true
            let problems = try simulation.run().problems
            #expect(
                problems.isEmpty,
                "replay: simulate --gateway --backups --seeds \(seed) --edits 60: \(problems)"
            )
        }
    }

    /// A revision whose line the gateway knows as a part of a deleted branch goes on top of what it has.
    @Test func `what a gateway refuses for its history goes there as content`() throws {
        #expect(try GatewaySimulation(seed: 23_055).run().problems == [])
    }

    /// The gateway purged a document, and a client that had not heard of the newest revision brought an older one back.
    @Test(arguments: [1235, 2390, 20_037, 20_147, 20_945] as [UInt64])
    func `histories in which a document came back after a purge end well`(_ seed: UInt64) throws {
        #expect(try GatewaySimulation(seed: seed).run().problems == [])
    }

    /// A client that had not heard of a deletion put what was deleted on top of what was made anew.
    @Test(arguments: [1270, 1623, 2531, 2863, 10_283, 20_369, 20_849, 20_912, 21_603, 21_732] as [UInt64])
    func `histories in which deleted content came back lose nothing else by it`(_ seed: UInt64) throws {
        #expect(try GatewaySimulation(seed: seed).run().problems == [])
    }

    /// A deletion that a gateway took is met by an edit of the same document (2052, 21869); an edit that was taken away meets a
    /// deletion (21664); a copy is forbidden (21427).
    @Test(arguments: [2052, 21_427, 21_664, 21_869] as [UInt64])
    func `histories with refused and overtaken edits end well`(_ seed: UInt64) throws {
        #expect(try GatewaySimulation(seed: seed).run().problems == [])
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
