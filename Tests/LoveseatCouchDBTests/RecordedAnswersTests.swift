import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import Testing

/// The replicator pulls what a real CouchDB 3.5 sent, in its own bytes (Tests/Fixtures/couchdb/traffic).
struct RecordedAnswersTests {
    private static func lines(_ name: String) throws -> [JSONElement] {
        try String(contentsOf: TrafficTests.folder.appending(path: "\(name).jsonl"), encoding: .utf8)
            .split(separator: "\n").map { try JSONElement(parsing: Array($0.utf8)) }
    }

    /// Those whose puller asked for everything, with a feed that ends.
    static let scenarios = TrafficTests.scenarios.filter {
        $0.hasPrefix("cr-pull-") && (try? RecordedAnswers(lines($0)).isWhole) == true
    }

    @Test func `the recorded pulls are found`() { #expect(Self.scenarios.count == 8) }

    @Test(arguments: scenarios)
    func `a pull of what CouchDB sent brings every leaf, history and attachment`(_ name: String) async throws
    {
        let answers = try RecordedAnswers(try Self.lines(name))
        let server = try RawServer { answers.answer($0) }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/source"))
        let active = try ActiveSide()
        let pass = try await active.replicate(url, .pull)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty, "\(pass.failed)")
        #expect(answers.unknown.isEmpty, "\(answers.unknown)")
        // Compared as CouchDB's peers see it.
        var configuration = CouchDBListenerConfiguration(
            databases: ["copy": try active.collection],
            of: active.database
        )
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        let listener = CouchDBListener(configuration)
        try await listener.start()
        let client = RawClient(port: try #require(listener.port))
        let end = try JSONElement(
            parsing: Array(Data(contentsOf: TrafficTests.folder.appending(path: "\(name).end.json")))
        )
        let documents = try #require(end["listener"]?["docs"]).value
        #expect(documents.array?.isEmpty == false)
        let differences = try await offPool {
            var replay = TrafficReplay(client: client, database: "copy")
            try replay.compare(with: documents)
            return replay.differences
        }
        #expect(differences.isEmpty, "\(differences)")
        await listener.stop()
    }
}
