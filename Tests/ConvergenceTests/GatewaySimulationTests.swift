import LoveseatTesting
import Testing

@Suite struct GatewaySimulationTests {
    @Test func `after five hundred histories clients hold what their users may see`() throws {
        for seed in UInt64(1)...500 {
            let problems = try GatewaySimulation(seed: seed).run().problems
            #expect(
                problems.isEmpty,
                "replay: simulate --gateway --seeds \(seed) --edits 60: \(problems)"
            )
        }
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

    /// The gateway accepted a revision that it has on a deleted branch, and changed nothing.
    @Test(
        arguments: [1205, 23_723, 301_083, 304_852, 306_122, 311_555, 316_036, 318_756] as [UInt64]
    )
    func `histories in which a deleted branch came again end well`(_ seed: UInt64) throws {
        #expect(try GatewaySimulation(seed: seed).run().problems == [])
    }

    /// A document came back to an older revision after this client had pushed an edit of it (1229), or after it had given that up
    /// for another document, which was deleted since (313222, 313467).
    @Test(arguments: [1229, 313_222, 313_467] as [UInt64])
    func `histories in which a gateway fell back end well`(_ seed: UInt64) throws {
        #expect(try GatewaySimulation(seed: seed).run().problems == [])
    }

    /// The gateway dated a loss before the document came into the channel (20144 to 304285), or did not remember it (306166,
    /// 306580).
    @Test(
        arguments: [20_144, 300_036, 301_370, 301_645, 304_285, 306_166, 306_580] as [UInt64]
    )
    func `documents of whose loss a gateway tells nobody are kept`(_ seed: UInt64) throws {
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
