import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Synchronization
import Testing

/// What a listener's policy lets each client of CouchDB's wire do, by every way in and out.
struct CouchDBAccessTests {
    /// Documents have an `owner`, who may write them; everybody may read those that are `public`.
    private func serve(_ change: (inout CouchDBListenerConfiguration) -> Void = { _ in }) async throws
        -> ServedDatabase
    {
        let served = try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
            $0.allowsDatabaseCreation = true
            let database = $0.database
            $0.accessPolicy = AccessPolicy { peer, collection, document in
                // A policy may read the database.
                _ = try? database.defaultCollection().count
                if collection.name == "hidden" { return peer.username == "ana" ? .write : .none }
                guard let document else { return .write }
                if document["owner"]?.string == peer.username { return .write }
                return document["public"]?.bool == true ? .read : .none
            }
            _ = try $0.database.createCollection(name: "hidden")
            change(&$0)
        }
        for (id, user, isPublic) in [("hers", "ana", false), ("his", "bob", false), ("all", "ana", true)] {
            let body: JSONValue = ["owner": .string(user), "public": .bool(isPublic)]
            let answer = try await served.call("PUT", "/main/\(id)", body, as: user)
            #expect(answer.status == 201, "\(answer.text)")
        }
        return served
    }

    private func revision(_ served: ServedDatabase, _ id: String, as user: String) async throws -> String {
        try #require(try await served.call("GET", "/main/\(id)", as: user).json["_rev"]?.string)
    }

    @Test func `a document that a client may not read does not exist for it`() async throws {
        let served = try await serve()
        let hers = try await revision(served, "hers", as: "ana")
        let attachment = "/main/hers/note?rev=\(hers)"
        let put = try await served.call(
            "PUT",
            attachment,
            "text",
            [("Content-Type", "text/plain")],
            as: "ana"
        )
        #expect(put.status == 201)
        let current = try await revision(served, "hers", as: "ana")
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

    @Test func `attachments of a document that a client may not write are refused before they arrive`()
        async throws
    {
        let served = try await serve()
        let revision = try await revision(served, "all", as: "ana")
        let table = #"{"note":{"follows":true,"length":1000000,"content_type":"text/plain"}}"#
        let document = #"{"_rev":"\#(revision)","owner":"bob","_attachments":\#(table)}"#
        let parts =
            "--b\r\nContent-Type: application/json\r\n\r\n\(document)\r\n--b\r\n\r\nthe first bytes"
        let requests = [
            ("/main/all", "multipart/related; boundary=b", parts),
            ("/main/all/note?rev=\(revision)", "text/plain", "the first bytes"),
        ]
        for (path, type, body) in requests {
            let request = """
                PUT \(path) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic Ym9iOmJvYg==\r\n\
                Content-Type: \(type)\r\nContent-Length: 1000500\r\n\r\n\(body)
                """
            let client = served.client
            // Most of the attachment is never sent: a listener that waits for it does not answer.
            let answer = try await offPool { try client.beginning(of: request) }
            #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(path): \(answer)")
        }
        await served.listener.stop()
    }

    @Test func `lists, feeds and bulk requests leave out what a client may not read`() async throws {
        let served = try await serve()
        let hers = try await revision(served, "hers", as: "ana")
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
        let served = try await serve()
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
        let served = try await serve {
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
            body["_rev"] = .string(try await revision(served, "x", as: "ana"))
            return body
        }
        #expect(try await questions("PUT", "/main/x", ["n": 1]) == ["", "x"])
        #expect(try await questions("GET", "/main/x") == ["", "x"])
        #expect(try await questions("PUT", "/main/x", try await named(["n": 2])) == ["", "x", "x"])
        let attachment: JSONValue = ["content_type": "text/plain", "data": "eA=="]
        let withAttachment = try await named(["n": 3, "_attachments": ["a": attachment]])
        #expect(try await questions("PUT", "/main/x", withAttachment) == ["", "x", "x"])
        let current = try await revision(served, "x", as: "ana")
        #expect(try await questions("PUT", "/main/x/b?rev=\(current)", "text") == ["", "x"])
        #expect(
            try await questions("GET", "/main/_changes?include_docs=true&style=all_docs").sorted()
                == ["", "", "all", "hers", "his", "x"]
        )
        let last = try await revision(served, "x", as: "ana")
        #expect(try await questions("DELETE", "/main/x?rev=\(last)") == ["", "x"])
        await served.listener.stop()
    }

    @Test func `a collection without access does not exist, and managing is refused`() async throws {
        let served = try await serve()
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

    @Test func `a client writes only what it may, before and after`() async throws {
        let served = try await serve()
        let all = try await revision(served, "all", as: "bob")
        let his = try await revision(served, "his", as: "bob")
        let hers = try await revision(served, "hers", as: "ana")
        let forbidden: [(String, String, JSONValue?)] = [
            ("PUT", "/main/all", ["_rev": .string(all), "owner": "bob"]),
            ("DELETE", "/main/all?rev=\(all)", nil),
            ("PUT", "/main/all/x.txt?rev=\(all)", "text"),
            ("PUT", "/main/his", ["_rev": .string(his), "owner": "ana"]),
            ("PUT", "/main/fresh", ["owner": "ana"]),
            ("POST", "/main", ["owner": "ana"]),
            ("PUT", "/main/hers", ["owner": "bob"]),
            ("PUT", "/main/hers", ["_rev": .string(hers), "owner": "bob"]),
            ("PUT", "/main/hers?new_edits=false", ["_rev": "5-x", "owner": "bob"]),
            (
                "PUT", "/main/hers?new_edits=false",
                [
                    "_revisions": ["start": 2, "ids": ["f", .string(String(hers.dropFirst(2)))]],
                    "_deleted": true,
                ]
            ),
        ]
        for (method, path, body) in forbidden {
            let answer = try await served.call(method, path, body, as: "bob")
            #expect(answer.status == 403, "\(path): \(answer.text)")
            #expect(answer.json["error"] == "forbidden", "\(path): \(answer.text)")
        }
        #expect(try await served.call("DELETE", "/main/hers?rev=\(hers)", as: "bob").status == 404)
        let copy = try await served.call("COPY", "/main/hers", nil, [("Destination", "mine")], as: "bob")
        #expect(copy.status == 404)
        let taken = try await served.call("COPY", "/main/his", nil, [("Destination", "hers")], as: "bob")
        #expect(taken.status == 403)
        let rows = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["docs": [["_id": "all", "_rev": .string(all), "x": 1], ["_id": "new", "owner": "bob"]]],
            as: "bob"
        )
        #expect(rows.status == 201)
        #expect(rows.json[0]?["error"] == "forbidden")
        #expect(rows.json[1]?["ok"] == true)
        let pushed = try await served.call(
            "POST",
            "/main/_bulk_docs",
            [
                "new_edits": false,
                "docs": [
                    ["_id": "all", "_rev": "2-q", "owner": "bob"],
                    ["_id": "p", "_rev": "1-q", "owner": "bob"],
                    ["_id": "other", "_rev": "1-q", "owner": "ana"],
                ],
            ],
            as: "bob"
        )
        let refused = pushed.json.array ?? []
        #expect(refused.map { $0["id"]?.string } == ["all", "other"])
        #expect(refused.allSatisfy { $0["error"] == "forbidden" && $0["reason"]?.string != nil })
        #expect(try await served.call("GET", "/main/p", as: "bob").status == 200)
        #expect(try await revision(served, "all", as: "ana") == all)
        #expect(try await revision(served, "hers", as: "ana") == hers)
        #expect(try await served.call("DELETE", "/main/his?rev=\(his)", as: "bob").status == 200)
        #expect(try await served.call("PUT", "/main/his", ["owner": "bob"], as: "bob").status == 201)
        await served.listener.stop()
    }

    @Test func `who had a document is told of its deletion, and nobody else`() async throws {
        let served = try await serve()
        let all = try await revision(served, "all", as: "bob")
        #expect(
            try await served.call(
                "PUT",
                "/main/all",
                ["_rev": .string(all), "owner": "ana", "public": false],
                as: "ana"
            ).status == 201
        )
        #expect(try await served.call("GET", "/main/all", as: "bob").status == 404)
        let private2 = try await revision(served, "all", as: "ana")
        #expect(try await served.call("DELETE", "/main/all?rev=\(private2)", as: "ana").status == 200)
        let bob = try await served.call("GET", "/main/_changes", as: "bob")
        #expect(bob.json["results"]?.array?.first { $0["id"] == "all" }?["deleted"] == true)
        #expect(try await served.call("GET", "/main/_changes", as: "eve").ids.isEmpty)
        await served.listener.stop()
    }

    @Test func `of a conflict a client sees the branches that it may read`() async throws {
        let served = try await serve()
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

    @Test func `a client cannot take another one's content by its digest`() async throws {
        let served = try await serve()
        let text = Array("a secret text".utf8)
        let collection = try served.database.defaultCollection()
        var document = Document(id: "blob")
        document["owner"] = "ana"
        document["file"] = try served.database.saveBlob(text, contentType: "text/plain").json
        try collection.save(&document)
        let digest = try #require(
            try await served.call("GET", "/main/blob", as: "ana").json["file"]?["digest"]?.string
        )
        let reference: JSONValue = [
            "@type": "blob", "digest": .string(digest), "content_type": "text/plain",
            "length": JSONValue(text.count),
        ]
        let stolen = try await served.call(
            "PUT",
            "/main/thief",
            ["owner": "bob", "file": reference],
            as: "bob"
        )
        #expect(stolen.status == 403)
        let proven = try await served.call(
            "PUT",
            "/main/thief",
            [
                "owner": "bob", "file": reference,
                "_attachments": [
                    "blob_/file": [
                        "content_type": "text/plain", "data": .string(Data(text).base64EncodedString()),
                    ]
                ],
            ],
            as: "bob"
        )
        #expect(proven.status == 201, "\(proven.text)")
        let got = try await served.call("GET", "/main/thief/blob_/file", as: "bob")
        #expect(got.status == 200)
        #expect(got.body == text)
        await served.listener.stop()
    }

    @Test func `clients have checkpoints of their own`() async throws {
        let served = try await serve()
        #expect(try await served.call("PUT", "/main/_local/c", ["x": "bobs"], as: "bob").status == 201)
        #expect(try await served.call("GET", "/main/_local/c", as: "ana").status == 404)
        #expect(try await served.call("GET", "/main/_local/c", as: "bob").json["x"] == "bobs")
        #expect(try await served.call("GET", "/main/_local_docs", as: "bob").ids == ["_local/c"])
        #expect(try await served.call("GET", "/main/_local_docs", as: "ana").ids.isEmpty)
        await served.listener.stop()
    }

    @Test func `a read-only listener keeps checkpoints and takes nothing else`() async throws {
        let served = try await ServedDatabase { $0.readOnly = true }
        let saved = try await served.call("PUT", "/main/_local/c", ["x": 1])
        #expect(saved.status == 201)
        #expect(try await served.call("GET", "/main/_local/c").json["x"] == 1)
        let requests: [(String, String, JSONValue)] = [
            ("PUT", "/main/x", [:]), ("POST", "/main/_bulk_docs", ["docs": []]), ("POST", "/main", [:]),
            ("POST", "/main/_purge", [:]), ("PUT", "/main/_security", [:]), ("DELETE", "/main/_local/c", [:]),
        ]
        for (method, path, body) in requests {
            #expect(try await served.call(method, path, body).status == 403, "\(method) \(path)")
        }
        #expect(try await served.call("POST", "/main/_revs_diff", [:]).status == 200)
        #expect(try await served.call("POST", "/main/_ensure_full_commit", [:]).status == 201)
        await served.listener.stop()
    }

    @Test func `a write-only listener takes what a pusher sends, and shows nothing`() async throws {
        let served = try await ServedDatabase { $0.writeOnly = true }
        let push: [(String, String, JSONValue?, Int)] = [
            ("GET", "/main/", nil, 200), ("GET", "/main/_local/c", nil, 404),
            ("POST", "/main/_revs_diff", ["x": ["1-a"]], 200),
            (
                "POST", "/main/_bulk_docs",
                ["new_edits": false, "docs": [["_id": "x", "_rev": "1-a"]]], 201
            ),
            ("PUT", "/main/y?new_edits=false", ["_rev": "1-a"], 201),
            ("POST", "/main/_ensure_full_commit", [:], 201), ("PUT", "/main/_local/c", ["x": 1], 201),
            ("GET", "/main/_local/c", nil, 200),
        ]
        for (method, path, body, status) in push {
            #expect(try await served.call(method, path, body).status == status, "\(method) \(path)")
        }
        #expect(try served.database.defaultCollection().count == 2)
        let pull: [(String, String, JSONValue?)] = [
            ("GET", "/main/_changes", nil), ("GET", "/main/_all_docs", nil), ("GET", "/main/x", nil),
            ("HEAD", "/main/x", nil), ("POST", "/main/_bulk_get", ["docs": [["id": "x"]]]),
            ("POST", "/main/_changes", [:]), ("POST", "/main/_all_docs", [:]),
            ("GET", "/main/_local_docs", nil),
            ("GET", "/main/x/a", nil), ("GET", "/main/_security", nil), ("POST", "/main/_purge", [:]),
            ("COPY", "/main/x", nil), ("PUT", "/main/_security", [:]), ("DELETE", "/main", nil),
        ]
        for (method, path, body) in pull {
            #expect(try await served.call(method, path, body).status == 403, "\(method) \(path)")
        }
        await served.listener.stop()
        let error = await #expect(throws: LoveseatError.self) {
            _ = try await ServedDatabase {
                $0.readOnly = true
                $0.writeOnly = true
            }
        }
        #expect(error?.code == .invalidParameter)
    }
}
