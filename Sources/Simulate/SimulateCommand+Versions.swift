import ArgumentParser
import Foundation
import LoveseatModel
import LoveseatTesting

extension SimulateCommand {
    func simulateVersions(_ range: ClosedRange<UInt64>) throws {
        let chosen = try parseVersionWorlds()
        if faults { return try checkVersionFaults(range, chosen) }
        let planted = try fault.map(parseVersionFault)
        var failures = 0
        var totals = (connections: 0, revisions: 0, longest: 0)
        var causes: [String: Int] = [:]
        for seed in range {
            var simulation = VersionSimulation(seed: seed)
            configure(&simulation, chosen)
            if let planted { simulation.plant(planted) }
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
                "  replay: swift run -c release simulate --versions --seeds \(seed) --edits \(edits)\(fault.map { " --fault \($0)" } ?? "")\(worlds.map { " --worlds \($0)" } ?? "")\(blobs ? " --blobs" : "")\(chosenContents)"
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

    private func configure(_ simulation: inout VersionSimulation, _ chosen: Set<VersionSimulation.World>) {
        simulation.edits = edits
        simulation.isVerbose = verbose
        simulation.hasBlobs = blobs
        simulation.worlds = chosen
        if let contents { simulation.repeatsContents = contents == .few }
    }

    private func checkVersionFaults(
        _ range: ClosedRange<UInt64>,
        _ chosen: Set<VersionSimulation.World>
    ) throws {
        var missed = 0
        for fault in PlantedVersionFault.allCases {
            if let seed = try fault.search(range, { configure(&$0, chosen) }) {
                print("\(fault.rawValue): caught at seed \(seed)")
            } else {
                missed += 1
                print("\(fault.rawValue): MISSED in \(range.count.counted("run"))")
            }
        }
        let count = PlantedVersionFault.allCases.count
        print("\(count - missed) of \(count) faults caught")
        if missed > 0 { throw ExitCode(1) }
    }

    private func parseVersionFault(_ name: String) throws -> PlantedVersionFault {
        guard let fault = PlantedVersionFault(rawValue: name) else {
            let names = PlantedVersionFault.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("no fault \"\(name)\" with --versions: there are \(names)")
        }
        return fault
    }

    private func parseVersionWorlds() throws -> Set<VersionSimulation.World> {
        guard let worlds, worlds != "none" else { return [] }
        return Set(
            try worlds.split(separator: ",").map { name in
                guard let world = VersionSimulation.World(rawValue: String(name)) else {
                    let names = VersionSimulation.World.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("no world \"\(name)\" with --versions: there are \(names)")
                }
                return world
            }
        )
    }

    /// Plays recordings with a Loveseat in the place of each peer in turn.
    func playStories(_ path: String) throws {
        var isFolder: ObjCBool = false
        let isWhole =
            FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
        let folder = isWhole ? URL(filePath: path) : URL(filePath: path).deletingLastPathComponent()
        let prefix = isWhole ? "" : URL(filePath: path).lastPathComponent
        let suffix = ".trace.jsonl"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
            .filter { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }.map { String($0.dropLast(suffix.count)) }
        guard !names.isEmpty else { throw ValidationError("--recordings: no recordings in \(path)") }
        var (played, failures) = (0, 0)
        for name in names {
            func text(_ suffix: String) throws -> String {
                try String(contentsOf: folder.appending(path: name + suffix), encoding: .utf8)
            }
            let recording = try LiteRecording(trace: text(suffix), expected: text(".expected.json"))
            for peer in OwnStory.peers(in: recording) {
                if verbose { print("\(name), \(peer)") }
                let outcome = try OwnStory.play(
                    in: recording,
                    own: peer,
                    detail: verbose ? { print($0) } : nil
                )
                played += 1
                failures += outcome.differences.isEmpty ? 0 : 1
                for difference in outcome.differences { print("\(name), \(peer): \(difference)") }
                for id in outcome.disagreements {
                    print("\(name), \(peer): \(id) is different at the two peers")
                }
            }
        }
        print("\(played - failures) passed, \(failures) failed")
        if failures > 0 { throw ExitCode(1) }
    }
}
