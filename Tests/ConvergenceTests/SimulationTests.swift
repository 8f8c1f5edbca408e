import LoveseatTesting
import Testing

// Group of this target in ./test: busy

@Suite struct SimulationTests {
    @Test(arguments: 0..<10) func `three hundred histories with a hub lose nothing`(part: UInt64) throws {
        for seed in part * 30 + 1...part * 30 + 30 {
            var simulation = Simulation(seed: seed)
            simulation.edits = 60
            simulation.hubs = 1
            let problems = try simulation.run().problems
            #expect(problems == [], "replay: simulate --hubs 1 --seeds \(seed) --edits 60")
        }
    }

    /// 213: a document that was purged and begun again with the same content had two first revisions. 495: a copy of a deletion was
    /// alive where it came as a part of a history.
    @Test(arguments: [213, 495]) func `histories with two hubs that once failed end well`(_ seed: Int) throws
    {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        simulation.hubs = 2
        simulation.repeatsContents = true
        #expect(try simulation.run().problems == [])
    }

    /// 3810: only a copy was left of a deletion whose author lost power, and it did not tell of the other document that the author had
    /// seen. 4047: a document came over a deletion, which the hub did not serve any more, as Couchbase Lite does.
    @Test(arguments: [3_810, 4_047]) func `histories with two hubs and lost commits end well`(_ seed: Int)
        throws
    {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        simulation.hubs = 2
        #expect(try simulation.run().problems == [])
    }

    /// 2417: as 8240 with one hub. 1696, 3380: each of many clients put what a deletion's author had given up on top of it again,
    /// until the author gave way.
    @Test(arguments: [1_696, 2_417, 3_380])
    func `histories with two hubs in which clients put back what was given up end well`(_ seed: Int) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        simulation.hubs = 2
        #expect(try simulation.run().problems == [])
    }

    /// In each of them an edit that repeated an older content was taken for a copy, and something was lost by that.
    @Test(arguments: [1, 66, 71, 80, 157, 169, 177, 249, 296, 1427])
    func `histories in which people write the same again lose nothing`(_ seed: Int) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        simulation.hubs = 1
        simulation.repeatsContents = true
        #expect(try simulation.run().problems == [])
    }

    /// 10177: a copy that had been closed as an edit was open again when it was known as a copy. 20603, 21413: an unknown revision
    /// between two copies of one document took its place. 20328, 20782: the oracle took the author of an edit of a copy for somebody
    /// who had seen all that the maker of the copy knew. 51610: a hub accepted what it had below a deletion, with a mark in doubt.
    @Test(arguments: [10_177, 20_328, 20_603, 20_782, 21_413, 51_610])
    func `histories with a hub that once lost a document lose none`(_ seed: UInt64) throws {
        var simulation = Simulation(seed: seed)
        simulation.edits = 60
        simulation.hubs = 1
        simulation.worlds = []
        #expect(try simulation.run().problems == [])
    }

    /// 11720, 16979, 18511, 18762, 18777: a deletion gave way to what its author had given up, where a client that could not know that
    /// put it on top again. 8713: clients gave way to each other, and of all that was given up a deletion was left. 1867: the simulator
    /// let an older attempt of a connection outlive its process. In the others the oracle held that somebody knew what nobody could tell:
    /// 8287, and 1178, which takes longer: a hub's own deletion, in whose place another document came. 14113: the author of a deletion purged
    /// what it was told. 18142: a twin of what was purged. 17332: a guest's edit lies on what its host does not let it write any more.
    /// 6270, 6792, 8240, 8338: a deletion gave way to what its author had given up, when another client put it beside the deletion.
    @Test(arguments: [
        1_867, 6_270, 6_792, 8_240, 8_287, 8_338, 8_713, 11_720, 14_113, 16_979, 17_332, 18_142, 18_511,
        18_762, 18_777,
    ])
    func `histories with a hub whose line does not tell all end well`(_ seed: Int) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        simulation.hubs = 1
        #expect(try simulation.run().problems == [])
    }

    /// Two deletions, one of them edited further: the higher was an ancestor of a branch that had lost elsewhere.
    @Test(arguments: [(930_156, 150), (1_410_182, 600)])
    func `large histories that once diverged agree`(_ seed: Int, _ edits: Int) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = edits
        simulation.worlds = []
        #expect(try simulation.run().problems == [])
    }

    @Test(arguments: 0..<10) func `five hundred histories end with equal databases`(part: UInt64) throws {
        for seed in part * 50 + 1...part * 50 + 50 {
            var simulation = Simulation(seed: seed)
            simulation.edits = 60
            let report = try simulation.run()
            #expect(report.problems == [], "replay: swift run -c release simulate --seeds \(seed) --edits 60")
        }
    }

    /// Peers that lost power twice gave sequences again that others had heard of; marks outlived doubts about them; and those who
    /// had forgotten the middle of a line took a part of it for another branch. 604128: an old checkpoint came back with lost commits. 620244:
    /// changes were announced out of order. 1003466, 1054583: an app's resolver merged an edit with a forgotten revision of its own line.
    /// 1001708, 1049097: an edit was held against what the lost author of an equal revision had known. 1047857: the deletion of what was
    /// deleted already was lost, and came back from where it had been pushed.
    @Test(arguments: [
        1_000_742, 1_002_728, 1_003_381, 1_005_796, 1_006_996, 1_007_956, 1_008_857, 1_009_097, 1_009_144,
        1_009_464,
        2_000_203, 2_000_239, 2_004_976, 2_008_111, 2_009_588, 2_009_837, 2_010_456, 3_002_203, 4_000_479,
        5_022_151, 5_025_686, 8_002_966, 8_004_365, 250_007_920, 250_030_727, 604_128, 620_244, 700_092,
        1_001_708, 1_003_466, 1_047_857, 1_049_097, 1_054_583,
    ])
    func `histories with lost commits and short memories that once diverged agree`(_ seed: Int) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        simulation.worlds = []
        #expect(try simulation.run().problems == [])
    }

    /// 7004179: a mark from before a hub's power loss was believed where a resolver took the hub's revision. 7005897: a copy came
    /// back from a hub to a peer that had lost its commits, and was taken for an edit. 7008036: a connection went on with a
    /// collection made anew. 7004050: a removal counted as news of what the peer has. 7009412: an edit was refused for what the
    /// host had of the document already. 2033: a document was taken away of which only an outdated announcement had been stored. 20009853: a checkpoint that says nothing vouched for marks, also where the peer had lost
    /// its copy. 20008555: a removal was acknowledged before the documents were gone.
    @Test(arguments: [
        7_004_179, 7_005_897, 7_008_036, 7_004_050, 7_009_412, 2_033, 20_009_853, 20_008_555,
    ])
    func `histories in all their worlds that once lost something lose nothing`(_ seed: Int) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        #expect(try simulation.run().problems == [])
    }

    /// 154, 386, 398: a peer that may read a part was not told why another version is the current one. 460: with a resolver, the
    /// deletion of a document that came from elsewhere was never fetched. 26: content that a pull filter refuses came along with a
    /// revision that it let in.
    @Test(arguments: [
        (154, SimulatedWorld.access), (386, .access), (398, .access), (460, .access), (26, .filters),
    ])
    func `peers that see only a part once diverged, and agree`(_ seed: Int, _ world: SimulatedWorld) throws {
        var simulation = Simulation(seed: UInt64(seed))
        simulation.edits = 60
        simulation.worlds = [world]
        #expect(try simulation.run().problems == [])
    }

    /// 32: after the second of two power losses without a write between them, a simulated database used sequences again.
    @Test func `a peer that loses power twice in a row loses nothing that others have`() throws {
        var simulation = Simulation(seed: 32)
        simulation.edits = 60
        simulation.worlds = [.power]
        #expect(try simulation.run().problems == [])
    }

    /// `LOVESEAT_SIMULATED_VERDICT_SEEDS` is the number of histories with each number of hubs.
    @Test(arguments: 0...2)
    func `whatever resolvers and people decide, somebody has a version of each document that nobody deleted`(
        _ hubs: Int
    ) throws {
        for seed in PropertySeeds.of("SIMULATED_VERDICT", 60) {
            var simulation = Simulation(seed: seed)
            simulation.edits = 60
            simulation.hubs = hubs
            simulation.worlds = [.verdicts]
            let problems = try simulation.run().problems
            #expect(
                problems == [],
                "replay: simulate --hubs \(hubs) --worlds verdicts --seeds \(seed) --edits 60"
            )
        }
    }

    @Test func `each world takes part in some of the five hundred histories`() {
        let others = SimulatedWorld.untidy + SimulatedWorld.ofOtherWires
        for world in SimulatedWorld.allCases where !others.contains(world) {
            #expect((UInt64(1)...500).contains { Simulation(seed: $0).worlds.contains(world) }, "\(world)")
        }
    }

    @Test func `a seed gives the same history twice`() throws {
        for seed in UInt64(1)...20 {
            #expect(try Simulation(seed: seed).run() == Simulation(seed: seed).run())
        }
    }

    @Test(arguments: PlantedFault.allCases) func `a planted fault is caught`(fault: PlantedFault) throws {
        let seed = try fault.search(1...400) { $0.edits = 60 }
        #expect(seed != nil, "\(fault.rawValue) was not caught in 400 histories")
    }
}
