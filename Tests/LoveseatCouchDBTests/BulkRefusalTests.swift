import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// A document that cannot be stored holds up no other of its batch, unless CouchDB refuses the whole batch for it (protocol/couchdb.md §4.4).
struct BulkRefusalTests {
    private static func nested(_ levels: Int) -> String {
        String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }

    /// Members that make a document one that is refused alone, with the error that a new edit gets.
    private static let alone: [(members: String, error: String)] = [
        (#""x":\#(nested(128))"#, "bad_request"), (#""x":\#(nested(135))"#, "bad_request"),
        (#""x":\#(nested(5_000))"#, "bad_request"), (#""x":1e999"#, "bad_request"),
        (#""_deleted":1"#, "doc_validation"), (#""_attachments":[]"#, "doc_validation"),
        (#""_attachments":{"_a":{"data":""}}"#, "bad_request"),
        (#""_attachments":{"a":{"data":"YQ==","length":-1}}"#, "bad_request"),
        (
            #""_attachments":{"a":{"data":"YQ==","content_type":"\#(String(repeating: "a", count: 300))"}}"#,
            "bad_request"
        ),
    ]
    /// Members for which CouchDB refuses the whole batch.
    private static let together = [
        #""_id":5"#, #""_id":"""#, #""_id":"_x""#, #""_rev":"junk""#, #""_rev":7"#, #""_foo":1"#,
        #""_revisions":{"start":"x","ids":[]}"#, #""_attachments":{"a":{"data":"%%"}}"#,
        #""_attachments":{"a":1}"#, #""_attachments":{"a":{"follows":true,"length":3}}"#,
    ]

    private func bulk(_ served: ServedDatabase, _ documents: [String], isNewEdit: Bool) async throws
        -> RawClient.Answer
    {
        let body = Array(#"{"new_edits":\#(isNewEdit),"docs":[\#(documents.joined(separator: ","))]}"#.utf8)
        let client = served.client
        return try await offPool {
            try client.send("POST", "/main/_bulk_docs", [("Content-Type", "application/json")], body: body)
        }
    }

    @Test func `a document that cannot be stored is an error in its row, and the others are stored`()
        async throws
    {
        let served = try await ServedDatabase()
        var stored = 0
        for seed in PropertySeeds.of("BULK", 40) {
            var random = SeededGenerator(seed: seed)
            let isNewEdit = random.chance(0.5)
            let revision = isNewEdit ? "" : #","_rev":"1-aa""#
            var (documents, expected): ([String], [(id: JSONValue, error: String?)]) = ([], [])
            for index in 0..<random.int(1...6) {
                let isLocal = random.chance(0.1) && isNewEdit
                let id = "\(isLocal ? "_local/" : "")\(seed)-\(index)"
                switch random.int(0...5) {
                case 0, 1:
                    let bad = random.pick(isLocal ? Array(Self.alone.prefix(4)) : Self.alone)
                    documents.append(#"{"_id":"\#(id)"\#(isLocal ? "" : revision),\#(bad.members)}"#)
                    expected.append((.string(id), isNewEdit ? bad.error : "forbidden"))
                case 2 where !isLocal:
                    documents.append(random.pick(["1", "null", "[]", Self.nested(200), #""x""#]))
                    expected.append((nil, isNewEdit ? "bad_request" : "forbidden"))
                default:
                    documents.append(#"{"_id":"\#(id)"\#(isLocal ? "" : revision),"x":\#(Self.nested(127))}"#)
                    expected.append((.string(id), nil))
                    if !isLocal { stored += 1 }
                }
            }
            let answer = try await bulk(served, documents, isNewEdit: isNewEdit)
            #expect(answer.status == 201, "seed \(seed): \(answer.text)")
            let rows = answer.json.array ?? []
            // Of replicated documents only the errors are told.
            let told = isNewEdit ? expected : expected.filter { $0.error != nil }
            #expect(rows.count == told.count, "seed \(seed): \(answer.text)")
            for (row, expected) in zip(rows, told) {
                #expect(row["id"] == expected.id, "seed \(seed): \(row)")
                #expect(row["error"]?.string == expected.error, "seed \(seed): \(row)")
                #expect(expected.error != nil || row["ok"] == true)
                if !isNewEdit, expected.id.string != nil { #expect(row["rev"] == "1-aa", "seed \(seed)") }
            }
            #expect(
                try await served.call("GET", "/main").json["doc_count"] == JSONValue(stored),
                "seed \(seed)"
            )
        }
        await served.listener.stop()
    }

    @Test(arguments: [true, false])
    func `of a batch that CouchDB refuses as a whole nothing is stored`(_ isNewEdit: Bool) async throws {
        let served = try await ServedDatabase()
        let revision = isNewEdit ? "" : #","_rev":"1-aa""#
        for members in Self.together {
            let id = members.hasPrefix(#""_id""#) ? "" : #""_id":"bad","#
            let given = members.hasPrefix(#""_rev"#) ? "" : revision
            let bad = "{\(id)\(members)\(given)}"
            for other in [
                "{\"_id\":\"good\"\(revision)}", "{\"_id\":\"deep\"\(revision),\"x\":\(Self.nested(400))}",
            ] {
                let answer = try await bulk(served, [other, bad], isNewEdit: isNewEdit)
                #expect(answer.status == 400, "\(bad): \(answer.status) \(answer.text)")
            }
        }
        #expect(try await served.call("GET", "/main").json["doc_count"] == 0)
        await served.listener.stop()
    }

    @Test func `a local document that is refused is an error in its row`() async throws {
        let served = try await ServedDatabase()
        let documents = [
            #"{"_id":"_local/deep","x":\#(Self.nested(300))}"#, #"{"_id":"_local/fine","x":1}"#,
            #"{"_id":"a","_rev":"1-aa"}"#,
        ]
        let rows = try await bulk(served, documents, isNewEdit: false).json
        #expect(rows.array?.count == 1)
        #expect(rows[0]?["id"] == "_local/deep")
        #expect(rows[0]?["error"] == "forbidden")
        #expect(try await served.call("GET", "/main/_local/fine").json["x"] == 1)
        let whole = try await bulk(
            served,
            [#"{"_id":"b"}"#, #"{"_id":"_local/x","_rev":"5-zz"}"#],
            isNewEdit: true
        )
        #expect(whole.status == 400)
        #expect(try await served.call("GET", "/main/b").status == 404)
        await served.listener.stop()
    }

    /// Puts a document's text, alone or in a message with parts.
    private func put(_ served: ServedDatabase, _ path: String, _ text: String, inParts: Bool) async throws
        -> RawClient.Answer
    {
        let (type, body) =
            inParts
            ? (
                "multipart/related; boundary=b",
                "--b\r\nContent-Type: application/json\r\n\r\n\(text)\r\n--b--"
            ) : ("application/json", text)
        let client = served.client
        return try await offPool {
            try client.send("PUT", path, [("Content-Type", type)], body: Array(body.utf8))
        }
    }

    @Test(arguments: [false, true])
    func
        `a replicated document that is refused alone is forbidden as in a batch, and an edit is a bad request`(
            _ inParts: Bool
        ) async throws
    {
        let served = try await ServedDatabase()
        for (index, bad) in Self.alone.enumerated() {
            let path = "/main/alone\(index)"
            let text = "{\"_rev\":\"1-aa\",\(bad.members)}"
            let replicated = try await put(served, "\(path)?new_edits=false", text, inParts: inParts)
            #expect(replicated.status == 403, "\(bad.members): \(replicated.text)")
            #expect(replicated.json["error"] == "forbidden", "\(bad.members)")
            let listed = "{\"_id\":\"alone\(index)\",\(text.dropFirst())"
            let row = try await bulk(served, [listed], isNewEdit: false).json[0]
            #expect(row?["error"] == "forbidden", "\(bad.members)")
            // But for the place in the text.
            let reasons = [row, replicated.json].map { $0?["reason"]?.string?.filter { !$0.isNumber } }
            #expect(reasons[0] == reasons[1], "\(bad.members)")
            let edit = try await put(served, path, "{\(bad.members)}", inParts: inParts)
            #expect(edit.status == 400, "\(bad.members): \(edit.text)")
            #expect(edit.json["error"]?.string == bad.error, "\(bad.members)")
        }
        // What refuses a whole batch is a bad request alone, too, and so is what is not JSON.
        for text in [#"{"_rev":"junk"}"#, #"{"_rev":"1-aa","_foo":1}"#, "{}", #"{"_rev":"1-aa""#] {
            let answer = try await put(served, "/main/x?new_edits=false", text, inParts: inParts)
            #expect(answer.status == 400, "\(text): \(answer.text)")
        }
        #expect(try await served.call("GET", "/main").json["doc_count"] == 0)
        await served.listener.stop()
    }

    @Test func `the row of a refused document names the revision by which its sender knows it`() async throws
    {
        let served = try await ServedDatabase()
        for (revisions, named) in [
            (#"{"start":3,"ids":["cc","bb"]}"#, "3-cc"), (#"{"start":"x","ids":[]}"#, "2-bb"),
            (#"{"start":0,"ids":[]}"#, "2-bb"), ("5", "2-bb"),
        ] {
            let document = #"{"_id":"a","_deleted":1,"_rev":"2-bb","_revisions":\#(revisions)}"#
            let answer = try await bulk(served, [document], isNewEdit: false)
            #expect(answer.json[0]?["error"] == "forbidden", "\(answer.text)")
            #expect(answer.json[0]?["rev"]?.string == named, "\(revisions)")
        }
        await served.listener.stop()
    }

    @Test func `one revision is refused with the same word in a batch and alone`() async throws {
        let served = try await ServedDatabase()
        for (id, first, second) in [
            ("content", #"{"_rev":"1-aa","n":1}"#, #"{"_rev":"1-aa","n":2}"#),
            (
                "blob", "{}",
                #"{"_rev":"1-aa","b":{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="}}"#
            ),
            (
                "history", #"{"_revisions":{"start":2,"ids":["bb","aa"]}}"#,
                #"{"_revisions":{"start":3,"ids":["cc","bb","dd"]}}"#
            ),
        ] {
            _ = try await served.call("PUT", "/main/\(id)?new_edits=false", try JSONValue(parsing: first))
            let document = try JSONValue(parsing: second)
            let alone = try await served.call("PUT", "/main/\(id)?new_edits=false", document)
            var listed = document
            listed["_id"] = .string(id)
            let batch = try await served.call(
                "POST",
                "/main/_bulk_docs",
                ["new_edits": false, "docs": [listed]]
            )
            if alone.status == 201 {
                #expect(batch.json == [], "\(id): \(batch.text)")
            } else {
                #expect(alone.status == 403, "\(id): \(alone.text)")
                #expect(alone.json["error"] == "forbidden", "\(id): \(alone.text)")
                #expect(batch.json[0]?["error"] == "forbidden")
                #expect(batch.json[0]?["reason"] == alone.json["reason"])
            }
        }
        #expect(try await served.call("GET", "/main/content").json["n"] == 1)
        await served.listener.stop()
    }

    @Test(arguments: ["{}", "1", "[[]]", #""""#])
    func `a body of very many small values is refused before it takes much memory`(_ value: String)
        async throws
    {
        let served = try await ServedDatabase()
        let count = 11 << 20
        let client = served.client
        for prefix in [#"{"docs":["#, #"{"keys":["#] {
            let body = Array(prefix.utf8) + Array(String(repeating: value + ",", count: count / 2 + 1).utf8)
            let rest =
                Array(String(repeating: value + ",", count: count / 2).utf8) + Array((value + "]}").utf8)
            let path = prefix.contains("docs") ? "_bulk_docs" : "_all_docs"
            let answer = try await offPool {
                try client.send(
                    "POST",
                    "/main/\(path)",
                    [("Content-Type", "application/json")],
                    body: body + rest
                )
            }
            #expect(answer.status == 413, "\(answer.text)")
        }
        await served.listener.stop()
    }
}
