import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

/// Mistakes of an app's programmer, which end the program as with Couchbase Lite. Each test is a process of its own.
// Group in ./test: programs
struct ProgrammerErrorTests {
    @Test func `an array's positions end the program beyond its end`() async {
        await #expect(processExitsWith: trap) { MutableArrayObject(data: [1]).setInt(2, at: 1) }
        await #expect(processExitsWith: trap) { MutableArrayObject(data: [1]).insertInt(2, at: 2) }
        await #expect(processExitsWith: trap) { MutableArrayObject(data: [1]).removeValue(at: -1) }
    }

    @Test func `a value of a type that documents do not have ends the program`() async {
        await #expect(processExitsWith: trap) {
            MutableDocument().setValue(URL(filePath: "/"), forKey: "a")
        }
        await #expect(processExitsWith: trap) {
            _ = MutableDictionaryObject(data: ["a": [Unlikely()]])
        }
    }

    @Test func `what can change has no JSON text`() async {
        await #expect(processExitsWith: trap) { _ = MutableDocument().toJSON() }
        await #expect(processExitsWith: trap) { _ = MutableDictionaryObject().toJSON() }
        await #expect(processExitsWith: trap) { _ = MutableArrayObject().toJSON() }
        await #expect(processExitsWith: trap) {
            _ = Blob(contentType: "a/b", data: Data([1])).toJSON()
        }
    }

    @Test func `a blob from JSON has no content before its document is saved`() async {
        await #expect(processExitsWith: trap) {
            let digest = "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00="
            let document = try MutableDocument(json: #"{"b":{"@type":"blob","digest":"\#(digest)"}}"#)
            _ = document.blob(forKey: "b")?.content
        }
        await #expect(processExitsWith: trap) {
            let pair = try ReplicaPair()
            try pair.removeFolder()
            _ = try pair.peer.getBlob(properties: ["digest": 7])
        }
    }

    @Test func `wrong settings of replicators end the program`() async {
        await #expect(processExitsWith: trap) {
            let pair = try ReplicaPair()
            var config = pair.config()
            try pair.removeFolder()
            config.heartbeat = -1
        }
        await #expect(processExitsWith: trap) {
            let pair = try ReplicaPair()
            var config = pair.config()
            try pair.removeFolder()
            config.maxAttemptWaitTime = -1
        }
        await #expect(processExitsWith: trap) {
            let pair = try ReplicaPair()
            var config = pair.config()
            try pair.removeFolder()
            config.proxyURL = URL(string: "socks://127.0.0.1")
        }
        await #expect(processExitsWith: trap) { _ = CollectionConfiguration.fromCollections([]) }
        await #expect(processExitsWith: trap) { _ = URLEndpointListenerConfiguration(collections: []) }
        await #expect(processExitsWith: trap) {
            let pair = try ReplicaPair()
            try pair.removeFolder()
            _ = ReplicatorConfiguration(
                collections: CollectionConfiguration.fromCollections([pair.ours, pair.theirs]),
                target: DatabaseEndpoint(database: pair.peer)
            )
        }
    }

    @Test func `a wrong URL ends the program`() async {
        await #expect(processExitsWith: trap) {
            _ = URLEndpoint(url: try #require(URL(string: "http://example.org/db")))
        }
        await #expect(processExitsWith: trap) {
            _ = URLEndpoint(url: try #require(URL(string: "wss://ada:secret@example.org/db")))
        }
    }

    @Test func `parameters of a query cannot be changed in it`() async {
        await #expect(processExitsWith: trap) {
            let pair = try ReplicaPair()
            let query = try pair.peer.createQuery("SELECT 1 FROM _")
            query.parameters = Parameters().setInt(1, forName: "a")
            try pair.removeFolder()
            query.parameters?.setInt(2, forName: "a")
        }
    }

    @Test func `an array index without expressions in its list ends the program`() async {
        await #expect(processExitsWith: trap) {
            _ = ArrayIndexConfiguration(path: "tags", expressions: [])
        }
        await #expect(processExitsWith: trap) {
            _ = ArrayIndexConfiguration(path: "tags", expressions: [""])
        }
    }

    @Test func `the ID of an object that was saved cannot be changed`() async {
        await #expect(processExitsWith: trap) {
            let (pair, tower) = (try ReplicaPair(), Tower())
            try pair.ours.save(from: tower)
            try pair.removeFolder()
            tower.id = "another"
        }
    }
}

/// How a program ends that finds a mistake; an error that a test throws ends it in another way.
#if arch(x86_64)
private let trap = ExitTest.Condition.signal(SIGILL)
#else
private let trap = ExitTest.Condition.signal(SIGTRAP)
#endif

extension ReplicaPair {
    /// Removes the databases, because a program that traps does not.
    fileprivate func removeFolder() throws { try FileManager.default.removeItem(atPath: world.scratch.path) }
}

private struct Unlikely {}

private final class Tower: Codable {
    @DocumentID var id: String?
    init() {}
}
