import ArgumentParser
import LoveseatModel
import LoveseatTesting

extension SimulateCommand {
    func simulateVersions(_ range: ClosedRange<UInt64>) throws {
        var failures = 0
        var totals = (connections: 0, revisions: 0, longest: 0)
        var causes: [String: Int] = [:]
        for seed in range {
            var simulation = VersionSimulation(seed: seed)
            simulation.edits = edits
            simulation.isVerbose = verbose
            if let contents { simulation.repeatsContents = contents == .few }
            let report = try simulation.run()
            totals.connections += report.connections
            totals.revisions += report.revisions
            totals.longest = max(totals.longest, report.longestConnection)
            causes.merge(report.causes, uniquingKeysWith: +)
            var problems = report.problems
            if twice, try simulation.run().trace != report.trace { problems.append("two runs differ") }
            guard !problems.isEmpty else { continue }
            failures += 1
            print("seed \(seed): \(report.peers.counted("peer")), \(problems.count.counted("problem"))")
            for problem in problems.prefix(5) { print("  \(problem)") }
            print(
                "  replay: swift run -c release simulate --versions --seeds \(seed) --edits \(edits)\(chosenContents)"
            )
        }
        print("\(range.count - failures) passed, \(failures) failed")
        print(
            "\(totals.connections.counted("connection")), \(totals.revisions.counted("revision")) with Couchbase Lite 4"
        )
        print("\(totals.longest.counted("frame")) in the longest connection")
        for (cause, count) in causes.sorted(by: { $0.key < $1.key }) { print("\(count): \(cause)") }
        if failures > 0 { throw ExitCode(1) }
    }
}
