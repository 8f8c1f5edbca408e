import ArgumentParser
import LoveseatModel
import LoveseatTesting

@main
struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract:
            "Runs whole histories of several peers, each made from one number, and checks that all end up equal.",
        discussion: """
            EXAMPLES:
              simulate --seeds 1..20000          run twenty thousand histories
              simulate --seeds 4711 --verbose    replay one, and print every event
              simulate --faults                  plant every known fault, and check that each is caught
              simulate --gateway --seeds 1..500  run histories of clients of a Sync Gateway
              simulate --versions --seeds 1..500 run histories with peers of Couchbase Lite 4
              simulate --versions --mixed all    the same with a gateway, plain peers and CouchDB's wire as well
              simulate --versions --faults       plant every known fault of version vectors
              simulate --gateway --versions      run histories of clients of a Sync Gateway 4
              simulate --couchdb --seeds 1..500  run histories in which most links speak CouchDB's wire
            """
    )

    @Option(help: "One seed, or a range such as 1..100000.")
    var seeds = "1..500"

    @Option(help: "About how many edits a history has, at most.")
    var edits = 150

    @Option(help: "How many hubs there are: foreign passive peers with one line of revisions.")
    var hubs = 0

    @Option(
        help:
            "What happens beside edits and crashes: \(SimulatedWorld.allCases.map(\.rawValue).joined(separator: ", ")), with commas; none; by default the seed decides. With --versions: \(VersionSimulation.World.allCases.map(\.rawValue).joined(separator: ", ")); none by default."
    )
    var worlds: String?

    @Flag(
        help:
            "Draw none of the worlds that were added later, such as backups and clocks, so that a seed gives the history that it gave before."
    )
    var tidy = false

    @Option(
        help:
            "What people write: few (one of three contents, again and again) or many; by default the seed decides."
    )
    var contents: Contents?

    enum Contents: String, ExpressibleByArgument, CaseIterable { case few, many }

    @Option(help: "Plant this fault in every history.")
    var fault: String?

    @Flag(help: "Plant every fault in turn, and check that the simulator catches it.")
    var faults = false

    @Flag(help: "Run histories of a gateway's clients, users, REST writers and administrators instead.")
    var gateway = false

    @Flag(
        help:
            "Run histories of Loveseats and peers of Couchbase Lite 4 instead. With --gateway: the gateway becomes one of version 4, and some clients speak of versions with it."
    )
    var versions = false

    @Flag(help: "Give documents of --versions blobs.")
    var blobs = false

    @Option(
        help:
            "With --versions: what histories may also have: \(VersionSimulation.Ingredient.allCases.map(\.rawValue).joined(separator: ", ")), with commas; or all. The seed decides."
    )
    var mixed: String?

    @Flag(help: "Let most links speak CouchDB's wire, with the client and the server that ship.")
    var couchdb = false

    @Option(
        help:
            "Compare the CouchDB of the world couch with recordings of a real one in this folder, instead of running histories. With --versions: play recordings of Couchbase Lite 4 with a Loveseat in the place of each peer in turn; instead of a folder, the path may be the beginning of recordings' names."
    )
    var recordings: String?

    @Flag(help: "Put the gateway, or the peers of --couchdb, back to backups of themselves.")
    var backups = false

    @Flag(help: "Run every history twice, and check that both runs are the same, event for event.")
    var twice = false

    @Flag(help: "Print every event.")
    var verbose = false

    func run() throws {
        if mixed != nil, !versions || gateway || recordings != nil {
            throw ValidationError("--mixed goes with --versions, and not with --gateway or --recordings")
        }
        if let recordings {
            return try versions ? playStories(recordings) : compareRecordings(in: recordings)
        }
        let range = try parseSeeds()
        if gateway { return try simulateGateway(range) }
        if versions { return try simulateVersions(range) }
        if faults { return couchdb ? try checkHTTPFaults(range) : try checkFaults(range) }
        let planted =
            try couchdb
            ? nil
            : fault.map { name in
                guard let fault = PlantedFault(rawValue: name) else {
                    let names = PlantedFault.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("no fault \"\(name)\": there are \(names)")
                }
                return fault
            }
        let chosen = try worlds.map(parseWorlds)
        let options =
            "\(couchdb ? " --couchdb" : "")\(hubs > 0 ? " --hubs \(hubs)" : "")\(fault.map { " --fault \($0)" } ?? "")\(worlds.map { " --worlds \($0)" } ?? "")\(tidy ? " --tidy" : "")"
        let totals = try runHistories(range, options: options) { seed in
            let report = try simulate(seed, planted, chosen)
            var outcome = Outcome(report.peers.counted("peer"), report.problems, report.trace)
            (outcome.connections, outcome.revisions) = (report.connections, report.revisionsSent)
            return outcome
        }
        print("\(totals.connections.counted("connection")), \(totals.revisions.counted("revision")) sent")
        if totals.failures > 0 { throw ExitCode(1) }
    }

    /// The outcome of one history, of whatever kind.
    struct Outcome {
        /// How many take part, in words.
        let parties: String
        var problems: [String]
        let trace: UInt64
        var connections = 0
        var revisions = 0
        var longestConnection = 0

        init(_ parties: String, _ problems: [String], _ trace: UInt64) {
            (self.parties, self.problems, self.trace) = (parties, problems, trace)
        }
    }

    /// The outcome of all histories together.
    struct Totals {
        var failures = 0
        var connections = 0
        var revisions = 0
        var longestConnection = 0

        mutating func add(_ outcome: Outcome) {
            failures += outcome.problems.isEmpty ? 0 : 1
            connections += outcome.connections
            revisions += outcome.revisions
            longestConnection = max(longestConnection, outcome.longestConnection)
        }
    }

    /// Runs histories, and prints the problems of each and how many failed. `options`: those that replay a history, beside its seed and its
    /// edits.
    func runHistories(
        _ range: ClosedRange<UInt64>,
        options: String,
        _ run: (UInt64) throws -> Outcome
    ) throws -> Totals {
        var totals = Totals()
        for seed in range {
            var outcome = try run(seed)
            if twice, try run(seed).trace != outcome.trace { outcome.problems.append("two runs differ") }
            totals.add(outcome)
            guard !outcome.problems.isEmpty else { continue }
            print("seed \(seed): \(outcome.parties), \(outcome.problems.count.counted("problem"))")
            for problem in outcome.problems.prefix(5) { print("  \(problem)") }
            print(
                "  replay: swift run -c release simulate\(options) --seeds \(seed) --edits \(edits)\(chosenContents)"
            )
        }
        print("\(range.count - totals.failures) passed, \(totals.failures) failed")
        return totals
    }

    var chosenContents: String { contents.map { " --contents \($0.rawValue)" } ?? "" }

    private func simulate(_ seed: UInt64, _ fault: PlantedFault?, _ chosen: Set<SimulatedWorld>?) throws
        -> Simulation.Report
    {
        var simulation = Simulation(seed: seed)
        configure(&simulation, chosen)
        if couchdb { try useCouchDB(&simulation, planting: self.fault) }
        if let fault { simulation.plant(fault) }
        return try simulation.run()
    }

    func configure(_ simulation: inout Simulation, _ chosen: Set<SimulatedWorld>?) {
        simulation.edits = edits
        simulation.hubs = hubs
        simulation.isVerbose = verbose
        if let contents { simulation.repeatsContents = contents == .few }
        if let chosen { simulation.worlds = chosen } else if !tidy { simulation.makeUntidy() }
    }

    private func simulateGateway(_ range: ClosedRange<UInt64>) throws {
        let options = " --gateway\(versions ? " --versions" : "")\(backups ? " --backups" : "")"
        let totals = try runHistories(range, options: options) { seed in
            var simulation = GatewaySimulation(seed: seed)
            simulation.edits = edits
            simulation.restoresBackups = backups
            simulation.speaksVersions = versions
            simulation.isVerbose = verbose
            if let contents { simulation.repeatsContents = contents == .few }
            let report = try simulation.run()
            var outcome = Outcome(report.clients.counted("client"), report.problems, report.trace)
            (outcome.connections, outcome.revisions) = (report.connections, report.revisionsTaken)
            outcome.longestConnection = report.longestConnection
            return outcome
        }
        print("\(totals.connections.counted("connection")), \(totals.revisions.counted("revision")) taken")
        print("\(totals.longestConnection.counted("frame")) in the longest connection")
        if totals.failures > 0 { throw ExitCode(1) }
    }

    private func checkFaults(_ range: ClosedRange<UInt64>) throws {
        var missed = 0
        let chosen = try worlds.map(parseWorlds)
        for fault in PlantedFault.allCases {
            if let seed = try fault.search(range, { configure(&$0, chosen) }) {
                print("\(fault.rawValue): caught at seed \(seed)")
            } else {
                missed += 1
                print("\(fault.rawValue): MISSED in \(range.count.counted("run"))")
            }
        }
        print("\(PlantedFault.allCases.count - missed) of \(PlantedFault.allCases.count) faults caught")
        if missed > 0 { throw ExitCode(1) }
    }

    func parseWorlds(_ text: String) throws -> Set<SimulatedWorld> {
        guard text != "none" else { return [] }
        return Set(
            try text.split(separator: ",").map { name in
                guard let world = SimulatedWorld(rawValue: String(name)) else {
                    let names = SimulatedWorld.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("no world \"\(name)\": there are \(names)")
                }
                return world
            }
        )
    }

    private func parseSeeds() throws -> ClosedRange<UInt64> {
        let parts = seeds.split(separator: ".", omittingEmptySubsequences: true).map { UInt64($0) }
        guard let first = parts.first ?? nil, let last = parts.last ?? nil, parts.count <= 2, first <= last
        else {
            throw ValidationError("--seeds takes a number or a range such as 1..500, not \"\(seeds)\"")
        }
        return first...last
    }
}
