import ArgumentParser
import Foundation
import LoveseatModel
import LoveseatTesting

extension SimulateCommand {
    func simulateVersions(_ range: ClosedRange<UInt64>) throws {
        let chosen = try parseVersionWorlds()
        let mixture = try mixed.map(parseMixture) ?? []
        if faults { return try checkVersionFaults(range, chosen, mixture) }
        let planted = try fault.map(parseVersionFault)
        // By seed: a history that is run twice has its causes once.
        var causes: [UInt64: [String: Int]] = [:]
        let totals = try runHistories(range, options: versionOptions) { seed in
            var simulation = VersionSimulation(seed: seed)
            try configure(&simulation, chosen, mixture)
            if let planted { simulation.plant(planted) }
            let report = try simulation.run()
            causes[seed] = report.causes
            var outcome = Outcome(report.peers.counted("peer"), report.problems, report.trace)
            (outcome.connections, outcome.revisions) = (report.connections, report.revisions)
            outcome.longestConnection = report.longestConnection
            return outcome
        }
        print(
            "\(totals.connections.counted("connection")), \(totals.revisions.counted("revision")) with Couchbase Lite 4"
        )
        print("\(totals.longestConnection.counted("frame")) in the longest connection")
        let counts = causes.values.reduce(into: [String: Int]()) { $0.merge($1, uniquingKeysWith: +) }
        for (cause, count) in counts.sorted(by: { $0.key < $1.key }) { print("\(count): \(cause)") }
        if totals.failures > 0 { throw ExitCode(1) }
    }

    /// The options that replay a history with versions, beside its seed and its edits.
    private var versionOptions: String {
        let named = [("mixed", mixed), ("fault", fault), ("worlds", worlds)]
        let values = named.compactMap { name, value in value.map { " --\(name) \($0)" } }.joined()
        return " --versions\(values)\(blobs ? " --blobs" : "")"
    }

    private func parseMixture(_ text: String) throws -> Set<VersionSimulation.Ingredient> {
        if text == "all" { return Set(VersionSimulation.Ingredient.allCases) }
        return Set(
            try text.split(separator: ",").map { name in
                guard let ingredient = VersionSimulation.Ingredient(rawValue: String(name)) else {
                    let names = VersionSimulation.Ingredient.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("--mixed: nothing is called \"\(name)\": there are \(names)")
                }
                return ingredient
            }
        )
    }

    private func configure(
        _ simulation: inout VersionSimulation,
        _ chosen: Set<VersionSimulation.World>,
        _ mixture: Set<VersionSimulation.Ingredient>
    ) throws {
        simulation.edits = edits
        simulation.isVerbose = verbose
        simulation.hasBlobs = blobs
        simulation.worlds = chosen
        simulation.mixture = mixture
        if mixture.contains(.couchdb) { try useCouchDB(&simulation) }
        if let contents { simulation.repeatsContents = contents == .few }
    }

    private func checkVersionFaults(
        _ range: ClosedRange<UInt64>,
        _ chosen: Set<VersionSimulation.World>,
        _ mixture: Set<VersionSimulation.Ingredient>
    ) throws {
        var missed = 0
        for fault in PlantedVersionFault.allCases {
            if let seed = try fault.search(range, { try configure(&$0, chosen, mixture) }) {
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
