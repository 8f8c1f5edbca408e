import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Which documents and contents a listener takes from each client of CouchDB's wire, by every way in.
struct CouchDBWriteAccessTests {
    @Test func `attachments of a document that a client may not write are refused before they arrive`()
        async throws
    {
        let served = try await ServedDatabase.withOwners()
        let revision = try await served.revision("all", as: "ana")
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

    @Test func `a client writes only what it may, before and after`() async throws {
        let served = try await ServedDatabase.withOwners()
        let all = try await served.revision("all", as: "bob")
        let his = try await served.revision("his", as: "bob")
        let hers = try await served.revision("hers", as: "ana")
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
        #expect(try await served.revision("all", as: "ana") == all)
        #expect(try await served.revision("hers", as: "ana") == hers)
        #expect(try await served.call("DELETE", "/main/his?rev=\(his)", as: "bob").status == 200)
        #expect(try await served.call("PUT", "/main/his", ["owner": "bob"], as: "bob").status == 201)
        await served.listener.stop()
    }

    @Test func `a client cannot take another one's content by its digest`() async throws {
        let served = try await ServedDatabase.withOwners()
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
        let served = try await ServedDatabase.withOwners()
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
