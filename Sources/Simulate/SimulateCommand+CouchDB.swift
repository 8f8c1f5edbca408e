import ArgumentParser
import Foundation
import LoveseatModel
import LoveseatTesting

#if CouchDB
import LoveseatCouchDBTesting

extension SimulateCommand {
    /// Lets most links speak CouchDB's wire. `fault`: the mistake that is planted.
    func useCouchDB(_ simulation: inout Simulation, planting fault: String?) throws {
        simulation.restoresBackups = backups
        simulation.wire = SimulatedHTTPWire(
            planting: try fault.map { name in
                guard let fault = PlantedHTTPFault(rawValue: name) else {
                    let names = PlantedHTTPFault.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("no fault \"\(name)\": there are \(names)")
                }
                return fault
            }
        )
    }

    /// Lets links between Loveseats speak CouchDB's wire.
    func useCouchDB(_ simulation: inout VersionSimulation) throws { simulation.wire = SimulatedHTTPWire() }

    /// Compares the scripted CouchDB with recordings of a real one.
    func compareRecordings(in folder: String) throws {
        var unexplained = 0
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        for name in names where name.hasPrefix("cr-") && name.hasSuffix(".jsonl") {
            let data = try Data(contentsOf: URL(filePath: folder).appending(path: name))
            let recording = try CouchDBRecording(String(decoding: data, as: UTF8.self))
            let (compared, differences) = recording.compare(with: ScriptedCouchDB())
            print("\(name): \(compared) compared, \(differences.count.counted("difference"))")
            for difference in differences {
                print("  \(difference.text)\(difference.reason.map { ": allowed, since \($0)" } ?? "")")
            }
            unexplained += differences.count { $0.reason == nil }
        }
        print("\(unexplained.counted("difference")) without a reason")
        if unexplained > 0 { throw ExitCode(1) }
    }

    /// Plants every mistake in turn.
    func checkHTTPFaults(_ range: ClosedRange<UInt64>) throws {
        var missed = 0
        let chosen = try worlds.map(parseWorlds)
        for fault in PlantedHTTPFault.allCases {
            if let seed = try fault.search(range, { configure(&$0, chosen) }) {
                print("\(fault.rawValue): caught at seed \(seed)")
            } else {
                missed += 1
                print("\(fault.rawValue): MISSED in \(range.count) runs")
            }
        }
        if missed > 0 { throw ExitCode(1) }
    }
}
#else
extension SimulateCommand {
    func compareRecordings(in folder: String) throws {
        throw ValidationError("--recordings: this program was built without the trait CouchDB")
    }

    func useCouchDB(_ simulation: inout Simulation, planting fault: String?) throws {
        throw ValidationError("--couchdb: this program was built without the trait CouchDB")
    }

    func useCouchDB(_ simulation: inout VersionSimulation) throws {
        throw ValidationError("--mixed: this program was built without the trait CouchDB")
    }

    func checkHTTPFaults(_ range: ClosedRange<UInt64>) throws {
        throw ValidationError("--couchdb: this program was built without the trait CouchDB")
    }
}
#endif
