import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Synchronization
import Testing

/// Which documents a listener's policy shows each client of CouchDB's wire, by every way out.
struct CouchDBReadAccessTests {
    @Test func `a document that a client may not read does not exist for it`() async throws {
        let served = try await ServedDatabase.withOwners()
        let hers = try await served.revision("hers", as: "ana")
        let attachment = "/main/hers/note?rev=\(hers)"
        let put = try await served.call(
            "PUT",
            attachment,
            "text",
            [("Content-Type", "text/plain")],
            as: "ana"
        )
        #expect(put.status == 201)
        let current = try await served.revision("hers", as: "ana")
        let known = try await served.call("GET", "/main/hers/note", as: "ana")
        #expect(known.status == 200)
        for path in [
            "/main/hers", "/main/hers?rev=\(current)", "/main/hers?rev=\(hers)", "/main/hers?open_revs=all",
            "/main/hers?attachments=true", "/main/hers/note", "/main/hers/note?rev=\(current)",
        ] {
            let answer = try await served.call("GET", path, nil, [("Accept", "application/json")], as: "bob")
            #expect(answer.status == 404, "\(path): \(answer.text)")
            #expect(try await served.call("HEAD", path, as: "bob").status == 404, "\(path)")
        }
        let open = try await served.call(
            "GET",
            "/main/hers?open_revs=%5B%22\(current)%22%5D",
            nil,
            [("Accept", "application/json")],
            as: "bob"
        )
        #expect(open.json == [["missing": .string(current)]])
        await served.listener.stop()
    }

    @Test func `lists, feeds and bulk requests leave out what a client may not read`() async throws {
        let served = try await ServedDatabase.withOwners()
        let hers = try await served.revision("hers", as: "ana")
        for path in ["/main/_all_docs", "/main/_all_docs?include_docs=true"] {
            let answer = try await served.call("GET", path, as: "bob")
            #expect(answer.ids == ["all", "his"])
            #expect(answer.json["total_rows"] == 2)
        }
        #expect(try await served.call("GET", "/main/_all_docs?limit=1", as: "bob").ids == ["all"])
        #expect(try await served.call("GET", "/main/_all_docs?skip=1", as: "bob").ids == ["his"])
        #expect(
            try await served.call("GET", "/main/_all_docs?limit=1&descending=true", as: "bob").ids == ["his"]
        )
        let keys = try await served.call(
            "POST",
            "/main/_all_docs?include_docs=true",
            ["keys": ["hers", "his"]],
            as: "bob"
        )
        #expect(keys.json["rows"]?[0] == ["key": "hers", "error": "not_found"])
        #expect(keys.json["rows"]?[1]?["doc"]?["owner"] == "bob")
        for path in [
            "/main/_changes", "/main/_changes?include_docs=true&style=all_docs", "/main/_changes?limit=2",
            "/main/_changes?feed=longpoll",
        ] {
            let answer = try await served.call("GET", path, as: "bob")
            #expect(answer.ids.sorted() == ["all", "his"], "\(path): \(answer.text)")
            #expect(!answer.text.contains("hers"))
        }
        let feed = try await served.call("GET", "/main/_changes?feed=continuous&timeout=100", as: "bob")
        #expect(feed.text.contains("\"his\""))
        #expect(!feed.text.contains("hers"))
        let chosen = try await served.call(
            "POST",
            "/main/_changes?filter=_doc_ids",
            ["doc_ids": ["hers"]],
            as: "bob"
        )
        #expect(chosen.ids.isEmpty)
        let bulk = try await served.call(
            "POST",
            "/main/_bulk_get?revs=true",
            ["docs": [["id": "hers", "rev": .string(hers)], ["id": "hers"], ["id": "his"]]],
            as: "bob"
        )
        let results = bulk.json["results"]?.array ?? []
        #expect(
            results.map { $0["docs"]?[0]?["error"]?["error"]?.string } == ["not_found", "not_found", nil]
        )
        #expect(!bulk.text.contains("\"owner\":\"ana\""))
        let difference = try await served.call(
            "POST",
            "/main/_revs_diff",
            ["hers": [.string(hers), "7-x"], "nobodys": ["1-x"]],
            as: "bob"
        )
        #expect(difference.json["hers"] == ["missing": [.string(hers), "7-x"]])
        #expect(try await served.call("GET", "/main", as: "bob").json["doc_count"] == 2)
        #expect(try await served.call("GET", "/main", as: "ana").json["doc_count"] == 2)
        await served.listener.stop()
    }

    @Test func `a deletion beside the winner is told although the content that it deletes is not here`()
        async throws
    {
        let served = try await ServedDatabase.withOwners()
        let winner: JSONValue = ["_id": "two", "_rev": "1-aa", "owner": "ana", "public": true]
        let history: JSONValue = ["start": 2, "ids": ["cc", "bb"]]
        let deletion: JSONValue = ["_id": "two", "_rev": "2-cc", "_deleted": true, "_revisions": history]
        for document in [winner, deletion] {
            let body: JSONValue = ["new_edits": false, "docs": [document]]
            #expect(try await served.call("POST", "/main/_bulk_docs", body, as: "ana").json == [])
        }
        for user in ["ana", "bob"] {
            let feed = try await served.call("GET", "/main/_changes?style=all_docs", as: user)
            let row = feed.json["results"]?.array?.first { $0["id"] == "two" }
            #expect(row?["changes"] == [["rev": "1-aa"], ["rev": "2-cc"]], "\(user): \(feed.text)")
        }
        await served.listener.stop()
    }

    @Test func `a policy is asked about each revision once in a request`() async throws {
        let asked = Mutex<[String]>([])
        let served = try await ServedDatabase.withOwners {
            $0.accessPolicy = AccessPolicy { _, _, document in
                asked.withLock { $0.append(document?.id ?? "") }
                return .write
            }
        }
        /// The documents that the policy is asked about by a request; "" is the collection.
        func questions(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> [String] {
            asked.withLock { $0 = [] }
            let answer = try await served.call(method, path, body, as: "ana")
            #expect((200...299).contains(answer.status), "\(method) \(path): \(answer.text)")
            return asked.withLock { $0 }
        }
        func named(_ body: JSONValue) async throws -> JSONValue {
            var body = body
            body["_rev"] = .string(try await served.revision("x", as: "ana"))
            return body
        }
        #expect(try await questions("PUT", "/main/x", ["n": 1]) == ["", "x"])
        #expect(try await questions("GET", "/main/x") == ["", "x"])
        #expect(try await questions("PUT", "/main/x", try await named(["n": 2])) == ["", "x", "x"])
        let attachment: JSONValue = ["content_type": "text/plain", "data": "eA=="]
        let withAttachment = try await named(["n": 3, "_attachments": ["a": attachment]])
        #expect(try await questions("PUT", "/main/x", withAttachment) == ["", "x", "x"])
        let current = try await served.revision("x", as: "ana")
        #expect(try await questions("PUT", "/main/x/b?rev=\(current)", "text") == ["", "x"])
        #expect(
            try await questions("GET", "/main/_changes?include_docs=true&style=all_docs").sorted()
                == ["", "", "all", "hers", "his", "x"]
        )
        let last = try await served.revision("x", as: "ana")
        #expect(try await questions("DELETE", "/main/x?rev=\(last)") == ["", "x"])
        await served.listener.stop()
    }

    @Test func `a collection without access does not exist, and managing is refused`() async throws {
        let served = try await ServedDatabase.withOwners()
        #expect(try await served.call("GET", "/_all_dbs", as: "ana").json == ["hidden", "main"])
        #expect(try await served.call("GET", "/_all_dbs", as: "bob").json == ["main"])
        for path in ["/hidden", "/hidden/_changes", "/hidden/x", "/main._default.hidden/x"] {
            #expect(try await served.call("GET", path, as: "bob").status == 404)
            #expect(try await served.call("GET", path, as: "ana").status == (path.hasSuffix("x") ? 404 : 200))
        }
        let put = try await served.call("PUT", "/hidden/x", [:], as: "bob")
        #expect(put.status == 404)
        #expect(put.json["reason"] == "Database does not exist.")
        let requests: [(String, String, JSONValue?)] = [
            ("POST", "/main/_purge", ["hers": ["1-x"]]), ("PUT", "/main/_security", [:]),
            ("PUT", "/main/_revs_limit", 5), ("POST", "/main/_compact", [:]), ("DELETE", "/hidden", nil),
            ("PUT", "/fresh", nil),
        ]
        for (method, path, body) in requests {
            #expect(try await served.call(method, path, body, as: "ana").status == 403, "\(method) \(path)")
        }
        #expect(try await served.call("PUT", "/main", as: "bob").status == 412)
        await served.listener.stop()
    }

    @Test func `who had a document is told of its deletion, and nobody else`() async throws {
        let served = try await ServedDatabase.withOwners()
        let all = try await served.revision("all", as: "bob")
        #expect(
            try await served.call(
                "PUT",
                "/main/all",
                ["_rev": .string(all), "owner": "ana", "public": false],
                as: "ana"
            ).status == 201
        )
        #expect(try await served.call("GET", "/main/all", as: "bob").status == 404)
        let private2 = try await served.revision("all", as: "ana")
        #expect(try await served.call("DELETE", "/main/all?rev=\(private2)", as: "ana").status == 200)
        let bob = try await served.call("GET", "/main/_changes", as: "bob")
        #expect(bob.json["results"]?.array?.first { $0["id"] == "all" }?["deleted"] == true)
        #expect(try await served.call("GET", "/main/_changes", as: "eve").ids.isEmpty)
        await served.listener.stop()
    }

    @Test func `of a conflict a client sees the branches that it may read`() async throws {
        let served = try await ServedDatabase.withOwners()
        let docs: JSONValue = [
            [
                "_id": "c", "_rev": "2-f", "_revisions": ["start": 2, "ids": ["f", "a"]], "owner": "ana",
                "public": true,
            ],
            [
                "_id": "c", "_rev": "2-b", "_revisions": ["start": 2, "ids": ["b", "a"]], "owner": "ana",
                "secret": 1,
            ],
        ]
        let pushed = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["new_edits": false, "docs": docs],
            as: "ana"
        )
        #expect(pushed.json == [])
        let own = try await served.call("GET", "/main/_changes?style=all_docs", as: "ana")
        #expect(own.text.contains("2-f"))
        #expect(own.text.contains("2-b"))
        let accept = [("Accept", "application/json")]
        for path in [
            "/main/_changes?style=all_docs", "/main/c?conflicts=true", "/main/c?open_revs=all",
            "/main/_all_docs?include_docs=true&conflicts=true",
        ] {
            let answer = try await served.call("GET", path, nil, accept, as: "bob")
            #expect(answer.text.contains("2-f"), "\(path): \(answer.text)")
            #expect(!answer.text.contains("2-b"), "\(path): \(answer.text)")
        }
        #expect(try await served.call("GET", "/main/c?rev=2-b", as: "bob").status == 404)
        let difference = try await served.call("POST", "/main/_revs_diff", ["c": ["2-b", "2-f"]], as: "bob")
        #expect(difference.json["c"]?["missing"] == ["2-b"])
        await served.listener.stop()
    }
}
