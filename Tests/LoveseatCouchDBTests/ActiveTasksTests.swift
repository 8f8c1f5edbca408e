import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// `_active_tasks`: the replications of this process and of its clients.
struct ActiveTasksTests {
    private func tasks(_ served: ServedDatabase, as user: String? = nil) async throws -> [JSONValue] {
        try await served.call("GET", "/_active_tasks", as: user).json.array ?? []
    }

    @Test func `a client that pulls and one that pushes are listed with what they did`() async throws {
        let served = try await ServedDatabase()
        #expect(try await tasks(served).isEmpty)
        let agent = [("User-Agent", "CouchDB-Replicator/3.5.0")]
        _ = try await served.call("PUT", "/main/d", [:])
        _ = try await served.call("GET", "/main/_changes?style=all_docs", nil, agent)
        _ = try await served.call("POST", "/main/_bulk_get?revs=true", ["docs": [["id": "d"]]], agent)
        _ = try await served.call("POST", "/main/_revs_diff", ["x": ["1-a"], "d": ["1-b"]], agent)
        let docs: JSONValue = [["_id": "x", "_rev": "1-a"], ["_id": "d", "_rev": "1-b"]]
        _ = try await served.call("POST", "/main/_bulk_docs", ["new_edits": false, "docs": docs], agent)
        let found = try await tasks(served)
        let pull = try #require(found.first { $0["source"] == "main" })
        #expect(pull["docs_read"] == 1)
        #expect(pull["type"] == "replication")
        #expect(pull["continuous"] == false)
        #expect(pull["target"]?.string?.hasPrefix("CouchDB-Replicator/3.5.0 at ") == true)
        let push = try #require(found.first { $0["target"] == "main" })
        #expect(push["docs_written"] == 2)
        #expect(push["revisions_checked"] == 2)
        #expect(push["missing_revisions_found"] == 2)
        #expect(push["doc_write_failures"] == 0)
        #expect(push["started_on"]?.int != nil)
        #expect(push["updated_on"]?.int != nil)
        await served.listener.stop()
    }

    @Test func `of a batch of a replicator, local documents are neither written nor failures`() async throws {
        let served = try await ServedDatabase()
        let docs: JSONValue = [
            ["_id": "x", "_rev": "1-a"], ["_id": "_local/one", "_rev": "0-1"],
            ["_id": "_local/two", "_rev": "0-1"],
            ["_id": "y", "_rev": "1-a", "_deleted": 1],
        ]
        _ = try await served.call("POST", "/main/_bulk_docs", ["new_edits": false, "docs": docs])
        let push = try #require(try await tasks(served).first { $0["target"] == "main" })
        #expect(push["docs_written"] == 1)
        #expect(push["doc_write_failures"] == 1)
        await served.listener.stop()
    }

    @Test func `replicators and peers of the other wire are listed too`() async throws {
        let served = try await ServedDatabase()
        let other = try served.scratch.database("other")
        var configuration = URLEndpointListenerConfiguration(collections: [try other.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        let url = try #require(listener.urls?.first)
        var active = ReplicatorConfiguration(
            collections: [try served.database.defaultCollection()],
            target: URLEndpoint(url)
        )
        active.continuous = true
        let replicator = Replicator(active)
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        let found = try await tasks(served)
        #expect(found.count == 1)
        #expect(found[0]["target"]?.string == url.absoluteString)
        #expect(found[0]["continuous"] == true)
        #expect(other.session.replicationTasks.map(\.target) == ["other"])
        replicator.stop()
        await replicator.waitUntilStopped()
        #expect(try await tasks(served).isEmpty)
        await listener.stop()
        await served.listener.stop()
    }

    @Test func `with an access policy a client sees its own replications`() async throws {
        let served = try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
            $0.accessPolicy = AccessPolicy { _, _, _ in .write }
        }
        for user in ["ana", "bob"] {
            _ = try await served.call("GET", "/main/_changes?style=all_docs", as: user)
        }
        for user in ["ana", "bob"] {
            #expect(try await tasks(served, as: user).map { $0["user"]?.string } == [user])
        }
        await served.listener.stop()
    }
}
