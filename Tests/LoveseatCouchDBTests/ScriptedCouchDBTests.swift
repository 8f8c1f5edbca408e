import Foundation
import LoveseatCouchDBTesting
import Testing

/// The CouchDB of simulated histories, against recordings of a real one (Tests/Fixtures/couchdb/traffic).
@Suite struct ScriptedCouchDBTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/traffic")

    /// The recordings of a real one's replicator.
    private static let recordings: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasPrefix("cr-") && $0.hasSuffix(".jsonl") }.map { String($0.dropLast(6)) }
            .sorted()
    }()

    @Test func `the recordings are found`() { #expect(Self.recordings.count == 25) }

    @Test(arguments: recordings)
    func `a scripted CouchDB answers as a real one did, where there is no reason to differ`(_ name: String)
        throws
    {
        let data = try Data(contentsOf: Self.folder.appending(path: "\(name).jsonl"))
        let recording = try CouchDBRecording(String(decoding: data, as: UTF8.self))
        let (compared, differences) = recording.compare(with: ScriptedCouchDB())
        #expect(compared > 0)
        #expect(differences.filter { $0.reason == nil }.map(\.text) == [])
    }
}
