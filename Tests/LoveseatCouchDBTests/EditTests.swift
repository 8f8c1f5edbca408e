import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import Testing

/// What a client's edit may not be.
struct EditTests {
    @Test func `a deleted document is not deleted once more`() async throws {
        let served = try await ServedDatabase()
        let made = try await served.call("PUT", "/main/d", ["n": 1]).json
        let revision = try #require(made["rev"]?.string)
        let deleted = try await served.call("DELETE", "/main/d?rev=\(revision)")
        #expect(deleted.status == 200)
        let again = try await served.call("PUT", "/main/d", ["_deleted": true])
        #expect(again.status == 409)
        let rows = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["docs": [["_id": "d", "_deleted": true], ["_id": "new", "_deleted": true]]]
        ).json.array
        #expect(rows?.first?["error"]?.string == "conflict")
        // A document that never was may begin with its deletion.
        #expect(rows?.last?["ok"]?.bool == true)
        let revived = try await served.call("PUT", "/main/d", ["n": 2])
        #expect(revived.status == 201)
        #expect(revived.json["rev"]?.string?.hasPrefix("3-") == true)
    }

    @Test func `an edit says nothing of when the document expires, and a replicator may`() async throws {
        let served = try await ServedDatabase()
        let put = try await served.call("PUT", "/main/d", ["n": 1, "_exp": 5])
        #expect(put.status == 400)
        #expect(put.json["reason"]?.string == "Bad special document member: _exp")
        let documents: [JSONValue] = [
            ["_id": "d", "_rev": "1-aa", "_exp": 5], ["_id": "e", "_rev": "1-aa"],
        ]
        let edits = documents.map { document in
            var document = document
            document["_rev"] = nil
            return document
        }
        let rows = try await served.call("POST", "/main/_bulk_docs", ["docs": .array(edits)]).json.array
        #expect(rows?.first?["error"]?.string == "doc_validation")
        #expect(rows?.last?["ok"]?.bool == true)
        let replicated = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["new_edits": false, "docs": .array(documents)]
        )
        #expect(replicated.json.array == [])
        #expect(try await served.call("GET", "/main/d").json["_exp"] == nil)
    }

    @Test(arguments: [true, false])
    func `a document whose blob is not here is refused, alone, by name`(_ isEdit: Bool) async throws {
        let served = try await ServedDatabase()
        let blob: JSONValue = ["@type": "blob", "digest": "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "length": 3]
        let documents: [JSONValue] = [
            ["_id": "a", "_rev": "1-aa"], ["_id": "b", "_rev": "1-bb", "deep": [["photo": blob]]],
            ["_id": "c", "_rev": "1-cc"],
        ]
        let rows =
            try await served.call(
                "POST",
                "/main/_bulk_docs",
                [
                    "new_edits": .bool(isEdit),
                    "docs": .array(
                        documents.map {
                            var document = $0
                            if isEdit { document["_rev"] = nil }
                            return document
                        }
                    ),
                ]
            ).json.array ?? []
        let refused = rows.filter { $0["error"] != nil }
        #expect(refused.map { $0["id"]?.string } == ["b"])
        #expect(refused.first?["error"]?.string == "forbidden")
        for (id, status) in [("a", 200), ("b", 404), ("c", 200)] {
            #expect(try await served.call("GET", "/main/\(id)?attachments=true").status == status)
        }
    }

    @Test func `a document is not copied to a local one`() async throws {
        let served = try await ServedDatabase()
        _ = try await served.call("PUT", "/main/d", ["n": 1])
        #expect(try await served.call("COPY", "/main/d", nil, [("Destination", "_local/x")]).status == 400)
    }

    @Test(arguments: [-1, 1e30, 0.5] as [JSONValue])
    func `an attachment's length that is not a number of bytes is refused`(_ length: JSONValue) async throws {
        let served = try await ServedDatabase()
        for key in ["length", "encoded_length"] {
            let answer = try await served.call(
                "PUT",
                "/main/d",
                ["_attachments": ["a": ["data": "aGVsbG8=", "content_type": "text/plain", key: length]]]
            )
            #expect(answer.status == 400)
        }
    }

    @Test(arguments: ["example.com", "https://example.com/", "https://", "https://example.com/a", "nonsense"])
    func `a text that is no web page's origin is refused`(_ origin: String) async throws {
        let error = await #expect(throws: LoveseatError.self) {
            _ = try await ServedDatabase { $0.origins = [origin] }
        }
        #expect(error?.code == .invalidParameter)
    }

    @Test(arguments: [
        "*", "https://example.com", "http://127.0.0.1:8000", "http://[::1]:81", "app://page", "null",
    ])
    func `an origin is a scheme, a host and a port`(_ origin: String) async throws {
        let served = try await ServedDatabase { $0.origins = [origin] }
        #expect(try await served.call("GET", "/").status == 200)
    }
}
