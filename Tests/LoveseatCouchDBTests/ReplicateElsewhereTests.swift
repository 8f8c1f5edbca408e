import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// `_replicate` between a database of the listener and one elsewhere that the app allows.
struct ReplicateElsewhereTests {
    private func serve() async throws -> ServedDatabase {
        try await ServedDatabase {
            $0.allowsDatabaseCreation = true
            $0.allowsReplicationWith = { $0.host() == "127.0.0.1" }
        }
    }

    @Test func `a database is pushed to and pulled from exactly the URL that is named`() async throws {
        let served = try await serve()
        let remote = try await PassiveSide { $0.allowsDatabaseCreation = true }
        #expect(try await served.call("PUT", "/trips").status == 201)
        let file: JSONValue = ["a.bin": ["data": "AAEC"]]
        #expect(try await served.call("PUT", "/trips/a", ["_attachments": file]).status == 201)
        let url = JSONValue.string(try remote.url("far").absoluteString)
        let missing = try await served.replicate(["source": "trips", "target": url])
        #expect(missing.status == 500, "\(missing.text)")
        #expect(missing.json["error"] == "db_not_found", "\(missing.text)")
        let push: JSONValue = ["source": "trips", "target": url, "create_target": true]
        let pushed = try await served.replicate(push)
        #expect(pushed.status == 200, "\(pushed.text)")
        #expect(pushed.json["history"]?[0]?["docs_written"] == 1, "\(pushed.text)")
        #expect(pushed.json["source_last_seq"] == 1)
        #expect(try await remote.send("GET", "/far/a/a.bin").body == [0, 1, 2])
        let again = try await served.replicate(push)
        #expect(again.json["no_changes"] == true)
        #expect(again.json["session_id"] == pushed.json["session_id"])
        try await remote.send("PUT", "/far/b", #"{"n":1}"#)
        let pull: JSONValue = ["source": ["url": url], "target": "back", "create_target": true]
        let pulled = try await served.replicate(pull)
        #expect(pulled.status == 200, "\(pulled.text)")
        #expect(pulled.json["history"]?[0]?["docs_written"] == 2, "\(pulled.text)")
        #expect(try await served.call("GET", "/back/_all_docs").ids == ["a", "b"])
        #expect(try await served.replicate(pull).json["no_changes"] == true)
        await served.listener.stop()
        await remote.listener.stop()
    }

    @Test func `document IDs and selectors choose what is replicated`() async throws {
        let served = try await serve()
        let remote = try await PassiveSide()
        for (id, kind) in [("a", 1), ("b", 2), ("c", 3)] {
            try await remote.send("PUT", "/remote/\(id)", "{\"t\":\(kind)}")
        }
        let url = JSONValue.string(try remote.url().absoluteString)
        var request: JSONValue = ["source": url, "target": "main", "doc_ids": ["a"]]
        let listed = try await served.replicate(request)
        #expect(listed.json["docs_written"] == 1, "\(listed.text)")
        request["doc_ids"] = nil
        request["selector"] = ["t": 2]
        #expect(try await served.replicate(request).status == 200)
        #expect(try await served.call("GET", "/main/_all_docs").ids == ["a", "b"])
        request["selector"] = nil
        let unsupported: [(String, JSONValue, Int)] = [
            ("since_seq", 1, 501), ("winning_revs_only", true, 501), ("doc_ids", [], 400),
            ("filter", "_design", 400),
        ]
        for (name, value, status) in unsupported {
            var refused = request
            refused[name] = value
            #expect(try await served.replicate(refused).status == status, "\(name)")
        }
        let both = try await served.replicate(["source": url, "target": url])
        #expect(both.status == 501)
        await served.listener.stop()
        await remote.listener.stop()
    }

    @Test func `the app says which certificates it trusts elsewhere`() async throws {
        let scratch = try Scratch()
        let folder = URL(filePath: scratch.path).appending(path: "identities")
        let remote = try await PassiveSide {
            $0.disableTLS = false
            $0.identityStore = FileIdentityStore(folder: folder)
        }
        let fingerprint = try #require(remote.listener.tlsIdentity?.certs.first?.fingerprint)
        let port = try #require(remote.listener.port)
        let source = JSONValue.string("https://127.0.0.1:\(port)/remote")
        for (pin, status) in [(nil, 500), (String(repeating: "ab", count: 32), 500), (fingerprint, 200)] {
            let served = try await ServedDatabase {
                $0.allowsReplicationWith = { $0.host() == "127.0.0.1" }
                $0.prepareReplication = { _, settings in settings.pinnedServerFingerprint = pin }
            }
            let answer = try await served.replicate(["source": source, "target": "main"])
            #expect(answer.status == status, "\(pin ?? "no pin"): \(answer.text)")
            await served.listener.stop()
        }
        await remote.listener.stop()
    }

    @Test func `credentials come from the URL, the object or the headers`() async throws {
        let served = try await serve()
        let remote = try await PassiveSide {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
        }
        let url = try remote.url().absoluteString
        let basic: JSONValue = ["basic": ["username": "bob", "password": "bob"]]
        let sides: [JSONValue] = [
            .string(url.replacing("http://", with: "http://bob:bob@")),
            ["url": .string(url), "auth": basic],
            ["url": .string(url), "headers": ["Authorization": "Basic Ym9iOmJvYg=="]],
        ]
        for side in sides {
            let answer = try await served.replicate(["source": side, "target": "main"])
            #expect(answer.status == 200, "\(answer.text)")
        }
        let none = try await served.replicate(["source": .string(url), "target": "main"])
        #expect(none.status == 401, "\(none.text)")
        #expect(none.json["error"] == "unauthorized", "\(none.text)")
        let wrong = url.replacing("http://", with: "http://bob:ana@")
        let refused = try await served.replicate(["source": .string(wrong), "target": "main"])
        #expect(refused.status == 500, "\(refused.text)")
        #expect(refused.json["error"] == "replication_auth_error", "\(refused.text)")
        #expect(!refused.text.contains("ana"))
        await served.listener.stop()
        await remote.listener.stop()
    }

    @Test func `a continuous pull is listed once, follows changes, and ends with the listener`() async throws
    {
        let served = try await serve()
        let remote = try await PassiveSide()
        let url = JSONValue.string(try remote.url().absoluteString)
        let request: JSONValue = ["source": url, "target": "main", "continuous": true]
        let id = try await served.replicate(request).json["_local_id"]
        try await remote.send("PUT", "/remote/a", "{}")
        try await served.waitForDocument("a", in: "main")
        try await remote.send("PUT", "/remote/b", "{}")
        try await served.waitForDocument("b", in: "main")
        let tasks = try await served.tasks
        try #require(tasks.count == 1)
        #expect(tasks[0]["replication_id"] == id)
        #expect(tasks[0]["source"] == url)
        await served.listener.stop()
        #expect(served.database.session.replicationTasks.isEmpty)
        await remote.listener.stop()
    }
}
