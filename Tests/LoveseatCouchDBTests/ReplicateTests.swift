import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

extension ServedDatabase {
    func replicate(_ request: JSONValue, as user: String? = nil) async throws -> RawClient.Answer {
        try await call("POST", "/_replicate", request, as: user)
    }

    /// The URL of one of the listener's databases.
    func url(_ name: String) -> String { "http://127.0.0.1:\(client.port)/\(name)" }

    var tasks: [JSONValue] {
        get async throws { try await call("GET", "/_active_tasks").json.array ?? [] }
    }

    /// Waits until a database has a document, without asking again and again.
    func waitForDocument(_ id: String, in name: String) async throws {
        var since = 0
        while true {
            let path = "/\(name)/_changes?feed=longpoll&timeout=60000&since=\(since)"
            let answer = try await call("GET", path)
            if answer.ids.contains(id) { return }
            let last = try #require(answer.json["last_seq"]?.int)
            try #require(last > since, "nothing changes any more")
            since = last
        }
    }
}

/// `_replicate` between databases of one listener.
struct ReplicateTests {
    private let pair: JSONValue = ["source": "main", "target": "copy"]

    private func serve(_ change: (inout CouchDBListenerConfiguration) throws -> Void = { _ in }) async throws
        -> ServedDatabase
    {
        let served = try await ServedDatabase {
            $0.allowsDatabaseCreation = true
            try change(&$0)
        }
        #expect(try await served.call("PUT", "/copy").status == 201)
        return served
    }

    private func put(_ served: ServedDatabase, _ path: String, _ json: JSONValue) async throws {
        let answer = try await served.call("PUT", path, json)
        #expect(answer.status == 201 || answer.status == 200, "\(answer.text)")
    }

    @Test func `leaves, tombstones, histories and attachments are copied`() async throws {
        let served = try await serve()
        for (revision, isDeleted) in [("3-c", false), ("2-x", false), ("3-y", true)] {
            let parts = revision.split(separator: "-")
            let ids: JSONValue = [.string(String(parts[1])), .string("b" + parts[1]), "a"]
            let body: JSONValue = [
                "_revisions": ["start": JSONValue(Int(parts[0]) ?? 1), "ids": ids],
                "from": .string(revision), "_deleted": .bool(isDeleted),
            ]
            try await put(served, "/main/forked?new_edits=false", body)
        }
        try await put(served, "/main/gone", ["n": 1])
        let gone = try await served.call("GET", "/main/gone").json["_rev"]?.string ?? ""
        #expect(try await served.call("DELETE", "/main/gone?rev=\(gone)").status == 200)
        let file: JSONValue = ["a.bin": ["data": "AAEC", "content_type": "application/octet-stream"]]
        try await put(served, "/main/photo", ["_attachments": file])
        try await put(served, "/main/_design/d", ["views": [:]])
        let answer = try await served.replicate(["source": "main", "target": "other", "create_target": true])
        #expect(answer.status == 200, "\(answer.text)")
        let entry = answer.json["history"]?[0]
        #expect(answer.json["ok"] == true)
        #expect(answer.json["no_changes"] == nil)
        #expect(entry?["docs_written"] == 6)
        #expect(entry?["missing_checked"] == 6)
        #expect(entry?["start_last_seq"] == 0)
        #expect(entry?["doc_write_failures"] == 0)
        #expect(entry?["session_id"] == answer.json["session_id"])
        #expect(entry?["start_time"]?.string?.hasSuffix(" GMT") == true)
        let accept = [("Accept", "application/json")]
        for id in ["forked", "gone", "photo", "_design/d"] {
            let query = "?open_revs=all&revs=true&attachments=true"
            let there = try await served.call("GET", "/main/\(id)\(query)", nil, accept)
            let here = try await served.call("GET", "/other/\(id)\(query)", nil, accept)
            #expect(there.json.array?.isEmpty == false, "\(id)")
            #expect(there.json == here.json, "\(id)")
        }
        #expect(try await served.call("GET", "/other/photo/a.bin").body == [0, 1, 2])
        #expect(try await served.call("GET", "/other/_changes?style=all_docs").ids.count == 4)
        // Compaction keeps what both have.
        let attached = try await served.call("GET", "/main/photo").json["_rev"]?.string ?? ""
        #expect(try await served.call("DELETE", "/main/photo?rev=\(attached)").status == 200)
        try served.database.performMaintenance(type: .compact)
        #expect(try await served.call("GET", "/other/photo/a.bin").body == [0, 1, 2])
        try served.database.performMaintenance(type: .integrityCheck)
        await served.listener.stop()
    }

    @Test func `a repeated replication shows the last run, after a restart, too`() async throws {
        let served = try await serve()
        try await put(served, "/main/a", ["n": 1])
        let first = try await served.replicate(pair).json
        #expect(first["source_last_seq"] == 1)
        #expect(first["replication_id_version"] == 4)
        let again = try await served.replicate(pair).json
        #expect(again["ok"] == true)
        #expect(again["no_changes"] == true)
        #expect(again["session_id"] == first["session_id"])
        #expect(again["history"] == first["history"])
        await served.listener.stop()
        let other = CouchDBListener(served.listener.config)
        try await other.start()
        let client = RawClient(port: try #require(other.port))
        let body = JSONText(canonical: pair).bytes
        let headers = [("Content-Type", "application/json")]
        let later = try await offPool { try client.send("POST", "/_replicate", headers, body: body) }
        #expect(later.json["no_changes"] == true)
        #expect(later.json["session_id"] == first["session_id"])
        let edit = Array(#"{"n":2}"#.utf8)
        _ = try await offPool { try client.send("PUT", "/main/b", headers, body: edit) }
        let last = try await offPool { try client.send("POST", "/_replicate", headers, body: body) }
        #expect(last.json["no_changes"] == nil)
        #expect(last.json["history"]?.array?.count == 2)
        #expect(last.json["history"]?[0]?["start_last_seq"] == 1)
        #expect(last.json["history"]?[0]?["docs_written"] == 1)
        let logs = try await offPool { try client.send("GET", "/copy/_local_docs?include_docs=true") }
        #expect(logs.json["rows"]?[0]?["doc"]?["session_id"] == last.json["session_id"])
        await other.stop()
    }

    @Test func `a target that was created again gets everything again`() async throws {
        let served = try await serve()
        try await put(served, "/main/a", ["n": 1])
        _ = try await served.replicate(pair)
        #expect(try await served.call("DELETE", "/copy").status == 200)
        let missing = try await served.replicate(pair)
        #expect(missing.status == 500)
        #expect(missing.json["error"] == "db_not_found")
        #expect(missing.json["reason"] == "could not open copy")
        let again = try await served.replicate(["source": "main", "target": "copy", "create_target": true])
        #expect(again.json["history"]?[0]?["docs_written"] == 1)
        #expect(try await served.call("GET", "/copy/a").status == 200)
        await served.listener.stop()
    }

    @Test func `nothing to do is no change, from an empty database and with itself`() async throws {
        let served = try await serve()
        #expect(try await served.replicate(pair).json["no_changes"] == true)
        try await put(served, "/main/a", ["n": 1])
        let itself = try await served.replicate(["source": "main", "target": "main"]).json
        #expect(itself["ok"] == true)
        #expect(itself["history"]?[0]?["docs_written"] == 0)
        #expect(itself["history"]?[0]?["missing_checked"] == 1)
        await served.listener.stop()
    }

    @Test func `document IDs, selectors, sequences and winners choose what is copied`() async throws {
        let served = try await serve()
        for (id, kind) in [("a", 1), ("b c", 2), ("d", 2)] {
            let path = id.replacing(" ", with: "%20")
            try await put(served, "/main/\(path)", ["t": JSONValue(kind)])
        }
        try await put(served, "/main/a?new_edits=false", ["_revisions": ["start": 1, "ids": ["z"]], "t": 2])
        func copied(_ name: String, _ options: JSONValue) async throws -> (JSONValue, [String]) {
            var request = options
            request["source"] = "main"
            request["target"] = .string(name)
            request["create_target"] = true
            let answer = try await served.replicate(request)
            #expect(answer.status == 200, "\(answer.text)")
            let rows = try await served.call("GET", "/\(name)/_changes?style=all_docs").json["results"]
            return (
                answer.json,
                rows?.array?.map { "\($0["id"]?.string ?? "") \($0["changes"]?.array?.count ?? 0)" } ?? []
            )
        }
        let (listed, ids) = try await copied("ids", ["doc_ids": ["b%20c", "unknown"]])
        #expect(ids == ["b c 1"])
        #expect(listed["docs_written"] == 1)
        #expect(listed["start_time"] != nil)
        #expect(listed["source_last_seq"] == 4)
        #expect(try await copied("none", ["doc_ids": []]).1 == [])
        // Leaves are chosen one by one.
        #expect(try await copied("selected", ["selector": ["t": 2]]).1.sorted() == ["a 1", "b c 1", "d 1"])
        #expect(try await copied("winners", ["winning_revs_only": true]).1.count == 3)
        #expect(try await copied("winners", [:]).1.sorted() == ["a 2", "b c 1", "d 1"])
        #expect(try await copied("since", ["since_seq": 3]).1 == ["a 2"])
        #expect(try await copied("design", ["filter": "_design"]).1 == [])
        let filtered = try await served.replicate(["source": "main", "target": "copy", "filter": "a/b"])
        #expect(filtered.status == 501)
        let bad = try await served.replicate(["source": "main", "target": "copy", "selector": ["$x": 1]])
        #expect(bad.status == 400)
        #expect(bad.json["reason"]?.string?.hasPrefix("Selector error") == true)
        await served.listener.stop()
    }

    @Test func `a continuous replication follows changes until it is cancelled`() async throws {
        let served = try await serve()
        try await put(served, "/main/a", ["n": 1])
        var request = pair
        request["continuous"] = true
        let started = try await served.replicate(request)
        let id = try #require(started.json["_local_id"]?.string)
        #expect(started.status == 202)
        #expect(started.json["ok"] == true)
        #expect(id.hasSuffix("+continuous"))
        try await served.waitForDocument("a", in: "copy")
        #expect(try await served.replicate(request).json["_local_id"]?.string == id)
        try await put(served, "/main/b", ["n": 2])
        try await served.waitForDocument("b", in: "copy")
        let tasks = try await served.tasks.filter { $0["replication_id"]?.string == id }
        let task = try #require(tasks.first)
        #expect(tasks.count == 1)
        #expect(task["type"] == "replication")
        #expect(task["continuous"] == true)
        #expect(task["source"] == "main")
        #expect(task["target"] == "copy")
        #expect(task["user"] == .null)
        for name in [
            "docs_read", "docs_written", "doc_write_failures", "revisions_checked", "missing_revisions_found",
            "changes_pending", "checkpointed_source_seq", "source_seq", "through_seq", "started_on",
            "updated_on",
        ] { #expect(task[name]?.int != nil, "\(name)") }
        request["cancel"] = true
        let cancelled = try await served.replicate(request)
        #expect(cancelled.status == 200)
        #expect(cancelled.json == ["ok": true, "_local_id": .string(id)])
        #expect(try await served.tasks.allSatisfy { $0["replication_id"]?.string != id })
        let missing = try await served.replicate(request)
        #expect(missing.status == 404)
        #expect(missing.json == ["error": "not_found", "reason": "missing"])
        await served.listener.stop()
    }

    @Test func `a limited number of replications runs at once, until the listener stops`() async throws {
        let served = try await serve()
        var ids: [String] = []
        for number in 0..<16 {
            var request = pair
            request["continuous"] = true
            request["selector"] = ["t": JSONValue(number)]
            let answer = try await served.replicate(request)
            #expect(answer.status == 202)
            ids.append(answer.json["_local_id"]?.string ?? "")
        }
        #expect(Set(ids).count == 16)
        let refused = try await served.replicate(pair)
        #expect(refused.status == 503)
        #expect(refused.json["error"] == "service_unavailable")
        let cancelled = try await served.replicate(["replication_id": .string(ids[0]), "cancel": true])
        #expect(cancelled.status == 200)
        #expect(try await served.replicate(pair).status == 200)
        await served.listener.stop()
        #expect(served.database.session.replicationTasks.isEmpty)
        let main = try served.database.defaultCollection()
        try main.save(try Document(id: "late", json: Array(#"{"t":1}"#.utf8)))
        let copy = try #require(try served.database.collection(name: "copy"))
        #expect(try copy.document(id: "late") == nil)
        try await served.database.close()
    }

    @Test func `a continuous replication ends with its source`() async throws {
        let served = try await serve()
        let request: JSONValue = ["source": "copy", "target": "main", "continuous": true]
        let id = try await served.replicate(request).json["_local_id"]
        #expect(try await served.call("DELETE", "/copy").status == 200)
        while try await served.tasks.contains(where: { $0["replication_id"] == id }) { await Task.yield() }
        await served.listener.stop()
    }
}
