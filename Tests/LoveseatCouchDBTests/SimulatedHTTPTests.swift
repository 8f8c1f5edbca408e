import LoveseatCouchDBTesting
import LoveseatTesting
import Testing

/// Whole histories of peers on a virtual clock, most of whose links speak CouchDB's wire.
@Suite struct SimulatedHTTPTests {
    private func run(_ seed: UInt64, backups: Bool = false, worlds: Set<SimulatedWorld>? = nil) throws
        -> Simulation.Report
    {
        var simulation = Simulation(seed: seed)
        if let worlds { simulation.worlds = worlds }
        simulation.wire = SimulatedHTTPWire()
        simulation.restoresBackups = backups
        return try simulation.run()
    }

    @Test func `after a hundred and fifty histories of both wires all peers hold the same`() throws {
        for seed in UInt64(1)...150 {
            let problems = try run(seed).problems
            #expect(problems.isEmpty, "replay: simulate --couchdb --seeds \(seed): \(problems)")
        }
    }

    /// 3038: two people delete a document, one of them after both lost power. Both deletions have one ID, and the oracle takes one author's
    /// knowledge for the other's. 3928: a purged document is made anew with the content that it had at first, whose ID one peer knows
    /// as superseded, and the others do not.
    @Test(arguments: [3038, 3928] as [UInt64])
    func `histories that end badly over CouchDB's wire`(_ seed: UInt64) throws {
        let problems = try run(seed).problems
        withKnownIssue { #expect(problems.isEmpty) }
    }

    /// A leaf of another document that had only lost was shown with a tombstone on top, and was lost when the winner was deleted.
    @Test(arguments: [186, 255, 334, 386, 842, 969, 1215, 4687] as [UInt64])
    func `a document that has only lost is there when the other one is deleted`(_ seed: UInt64) throws {
        #expect(try run(seed).problems == [])
    }

    /// Two Loveseats knew the same IDs, and one of them lacked the content of a leaf, which it did not list then.
    @Test(arguments: [265, 349, 774, 955, 992] as [UInt64])
    func `every peer has the content of all leaves that are kept`(_ seed: UInt64) throws {
        #expect(try run(seed).problems == [])
    }

    @Test func `a tombstone that only closes a leaf deletes no document`() throws {
        #expect(try run(2747).problems == [])
    }

    /// The deletion of one of several leaves says nothing about the others.
    @Test(arguments: [3, 1037, 1761, 4529] as [UInt64])
    func `a leaf that is left when another one is deleted was not given up`(_ seed: UInt64) throws {
        #expect(try run(seed).problems == [])
    }

    @Test func `a power loss takes no reserve of sequences away`() throws {
        #expect(try run(1717).problems == [])
    }

    /// Of the same kinds: peers lose what they have just acknowledged.
    @Test(arguments: [5009, 5046, 5052, 5067, 5108] as [UInt64])
    func `histories with many power losses end well`(_ seed: UInt64) throws {
        #expect(try run(seed, worlds: [.power]).problems == [])
    }

    /// 34: a leaf that was closed elsewhere stayed open at its author. 35: a leaf that had only lost was closed by its tombstone, and then the
    /// winner, another document of that name, was deleted.
    @Test(arguments: [(34, .twins), (34, .doubles), (35, .namesakes)] as [(UInt64, SimulatedWorld)])
    func `histories of untidy worlds over CouchDB's wire end well`(_ seed: UInt64, _ world: SimulatedWorld)
        throws
    {
        #expect(try run(seed, worlds: [world]).problems == [])
    }

    @Test func `histories with a CouchDB among the peers end well`() throws {
        for seed in UInt64(1)...30 {
            let problems = try run(seed, worlds: [.couch]).problems
            #expect(
                problems.isEmpty,
                "replay: simulate --couchdb --worlds couch --seeds \(seed): \(problems)"
            )
        }
    }

    /// Of five requests, two answers were cut, two requests were lost, and a proxy answered 500.
    @Test func `a session that what is on the way ends is no finding`() throws {
        var simulation = Simulation(seed: 15)
        simulation.edits = 60
        simulation.makeUntidy()
        simulation.worlds.subtract(SimulatedWorld.ofOtherWires)
        simulation.wire = SimulatedHTTPWire()
        #expect(try simulation.run().problems == [])
    }

    @Test func `histories whose replications over CouchDB's wire wait for changes end well`() throws {
        for seed in UInt64(1)...30 {
            let problems = try run(seed, worlds: [.feeds]).problems
            #expect(
                problems.isEmpty,
                "replay: simulate --couchdb --worlds feeds --seeds \(seed): \(problems)"
            )
        }
    }

    @Test func `users of CouchDB's wire get what they may read, and nothing else`() throws {
        for seed in UInt64(1)...30 {
            let problems = try run(seed, worlds: [.rights]).problems
            #expect(
                problems.isEmpty,
                "replay: simulate --couchdb --worlds rights --seeds \(seed): \(problems)"
            )
        }
    }

    @Test(arguments: PlantedHTTPFault.allCases)
    func `a planted fault of CouchDB's wire is caught`(_ fault: PlantedHTTPFault) throws {
        #expect(try fault.search(fault == .leaveBranchOut ? 701...800 : 1...300) != nil)
    }

    /// The peer lost power in the middle of a session, which then saved a checkpoint that covered what was lost.
    @Test(arguments: [251, 280, 328] as [UInt64])
    func `a session during which the peer lost power does not count as done`(_ seed: UInt64) throws {
        #expect(try run(seed).problems == [])
    }

    @Test func `a seed gives the same history of CouchDB's wire twice`() throws {
        for seed in UInt64(1)...5 { #expect(try run(seed) == run(seed)) }
    }
}
