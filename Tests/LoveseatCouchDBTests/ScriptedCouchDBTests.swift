import Foundation
import LoveseatCouchDBTesting
import Testing

/// The CouchDB of simulated histories, against recordings of a real one (Tests/Fixtures/couchdb/traffic).
@Suite struct ScriptedCouchDBTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/traffic")

    @Test(arguments: [
        "cr-pull-basic", "cr-pull-checkpoint-mismatch", "cr-pull-conflicts", "cr-pull-doc-ids",
        "cr-pull-long-history", "cr-pull-since-seq", "cr-pull-values", "cr-push-1000", "cr-push-basic",
        "cr-push-deletions", "cr-push-doc-ids", "cr-push-odd-ids",
    ])
    func `a scripted CouchDB answers as a real one did`(_ name: String) throws {
        let data = try Data(contentsOf: Self.folder.appending(path: "\(name).jsonl"))
        let recording = try CouchDBRecording(String(decoding: data, as: UTF8.self))
        let (compared, differences) = recording.compare(with: ScriptedCouchDB())
        #expect(compared > 5)
        #expect(differences == [])
    }
}
