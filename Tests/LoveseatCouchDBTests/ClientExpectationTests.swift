import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// What PouchDB's own tests expect of a CouchDB, and of which no recording tells.
struct ClientExpectationTests {
    @Test(arguments: ["Connection: close\r\n", "connection: Close\r\n", "Connection: TE, close\r\n", ""])
    func `an answer says that the connection ends if the client asks for that`(_ header: String) async throws
    {
        let served = try await ServedDatabase()
        let client = served.client
        for request in ["GET /", "GET /main/_all_docs", "HEAD /main/none", "GET /main/none"] {
            let text = "\(request) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(header)\r\n"
            let answer = try await offPool { try client.beginning(of: text) }
            #expect(answer.lowercased().contains("\r\nconnection: close\r\n") == !header.isEmpty, "\(answer)")
        }
        await served.listener.stop()
    }

    @Test func `a connection may be idle without an end`() async throws {
        let served = try await ServedDatabase { $0.idleTimeout = .infinity }
        #expect(try await served.call("GET", "/").status == 200)
        await served.listener.stop()
    }

    @Test func `a client that waits is asked for its body, unless it is refused without it`() async throws {
        let served = try await ServedDatabase()
        let client = served.client
        for (target, type, status) in [
            ("/main/d", "application/json", 100), ("/main/d/file", "text/plain", 100),
            ("/main/d", "multipart/related; boundary=b", 100), ("/none/d", "application/json", 404),
        ] {
            let request = """
                PUT \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-Continue\r\nContent-Type: \(type)\r\n\
                Content-Length: 7\r\n\r\n
                """
            // The body is never sent.
            let answer = try await offPool { try client.beginning(of: request) }
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(target): \(answer)")
        }
        await served.listener.stop()
    }

    @Test func `a local document has no attachments`() async throws {
        let served = try await ServedDatabase()
        let answer = try await served.call("GET", "/main/_local/a/file")
        #expect(answer.status == 400)
        #expect(answer.json["reason"] == "_local documents do not accept attachments.")
        await served.listener.stop()
    }

    @Test func `the latest of several revisions of one line is sent once`() async throws {
        let served = try await ServedDatabase()
        let line = ["c", "b", "a"]
        for start in 1...3 {
            let ids = line.suffix(start).map { JSONValue.string($0) }
            let body: JSONValue = ["_revisions": ["start": JSONValue(start), "ids": .array(ids)]]
            _ = try await served.call("PUT", "/main/d?new_edits=false", body)
        }
        for format in ["application/json", "multipart/mixed"] {
            let target = "/main/d?latest=true&open_revs=%5B%221-a%22,%222-b%22,%229-x%22%5D"
            let answer = try await served.call("GET", target, nil, [("Accept", format)])
            #expect(answer.text.components(separatedBy: "3-c").count == 2, "\(answer.text)")
            #expect(answer.text.contains("9-x"))
        }
        await served.listener.stop()
    }

    @Test func `content that comes with an edit is new, whatever position it names`() async throws {
        let served = try await ServedDatabase()
        var revision: JSONValue = nil
        for generation in 1...3 {
            let entry: JSONValue = ["data": "aGk=", "revpos": 1, "content_type": "text/plain"]
            var body: JSONValue = ["_attachments": ["f": entry], "n": JSONValue(generation)]
            if revision != nil { body["_rev"] = revision }
            let saved = try await served.call("PUT", "/main/d", body)
            #expect(saved.status == 201)
            revision = saved.json["rev"] ?? nil
            let stored = try await served.call("GET", "/main/d").json
            #expect(stored["_attachments"]?["f"]?["revpos"] == JSONValue(generation))
        }
        await served.listener.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a compaction runs until what it removes is gone`() async throws {
        let served = try await ServedDatabase()
        for _ in 0..<20 {
            let first = try await served.call("POST", "/main", ["n": 1]).json
            let (id, old) = (first["id"]?.string ?? "", first["rev"]?.string ?? "")
            _ = try await served.call("PUT", "/main/\(id)?rev=\(old)", ["n": 2])
            #expect(try await served.call("GET", "/main/\(id)?rev=\(old)").status == 200)
            _ = try await served.call("POST", "/main/_compact", [:])
            while try await served.call("GET", "/main").json["compact_running"] == true {}
            #expect(try await served.call("GET", "/main/\(id)?rev=\(old)").status == 404)
        }
        await served.listener.stop()
    }
}

/// What a document says of its blobs, and nobody checked.
struct UncheckedBlobTests {
    private static let body = Array("the content of a blob".utf8)

    private func reference(_ digest: String, _ length: JSONValue?) -> JSONValue {
        var blob: JSONValue = ["@type": "blob", "digest": .string(digest)]
        if let length { blob["length"] = length }
        return blob
    }

    @Test(arguments: [nil, 0, 3, 999, -1, "x"] as [JSONValue?])
    func `a blob comes with the length of its content, whatever the document says`(_ length: JSONValue?)
        async throws
    {
        let served = try await ServedDatabase()
        let blob = try served.database.saveBlob(Self.body)
        let saved = try await served.call("PUT", "/main/d", ["b": reference(blob.digest.text, length)])
        #expect(saved.status == 201, "\(saved.text)")
        for target in ["/main/d?attachments=true", "/main/d?open_revs=all&revs=true"] {
            let answer = try await served.call("GET", target, nil, [("Accept", "multipart/*")])
            #expect(answer.status == 200, "\(answer.text)")
            #expect(answer.text.contains("the content of a blob"), "\(answer.text)")
        }
        let active = try ActiveSide()
        let port = try #require(served.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/main"))
        let pass = try await active.replicate(url, .pull)
        #expect(pass.status.error == nil, "\(pass.failed)")
        #expect(pass.failed.isEmpty, "\(pass.failed)")
        await served.listener.stop()
    }

    @Test func `a deletion whose blob is not here is served without it`() async throws {
        let served = try await ServedDatabase()
        let digest = "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
        let body: JSONValue = ["_rev": "1-x", "_deleted": true, "b": reference(digest, 3)]
        #expect(try await served.call("PUT", "/main/d?new_edits=false", body).status == 200)
        for format in ["application/json", "multipart/mixed"] {
            let answer = try await served.call(
                "GET",
                "/main/d?open_revs=all&attachments=true",
                nil,
                [("Accept", format)]
            )
            #expect(answer.status == 200)
            #expect(answer.text.contains("1-x"))
            #expect(!answer.text.contains("_attachments"))
        }
        let active = try ActiveSide()
        try active.save("d", [:])
        let port = try #require(served.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/main"))
        let pass = try await active.replicate(url, .pull)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty)
        #expect(try served.database.store.check() == [])
        await served.listener.stop()
    }

    @Test func `a compressed attachment that is shorter than its compressed form goes over both wires`()
        async throws
    {
        let served = try await ServedDatabase()
        let content = GzipMembersTests.gzip(Array("tiny".utf8)[...])
        let client = served.client
        let put = try await offPool {
            try client.send(
                "PUT",
                "/main/d/note",
                [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")],
                body: content
            )
        }
        #expect(put.status == 201, "\(put.text)")
        let (pulled, pushed) = (try ActiveSide(), try ActiveSide("pushed"))
        for (side, type) in [(pulled, ReplicatorType.pull), (pushed, .push)] {
            let source = type == .pull ? side : pulled
            let target = type == .pull ? served.database : pushed.database
            var configuration = ReplicatorConfiguration(
                collections: [try source.collection],
                target: DatabaseEndpoint(database: target)
            )
            configuration.replicatorType = type
            let pass = try await source.replicate(configuration)
            #expect(pass.status.error == nil, "\(pass.failed)")
            #expect(pass.failed.isEmpty, "\(pass.failed)")
            #expect(try side.collection.document(id: "d") != nil)
        }
        await served.listener.stop()
    }

    @Test func `a refused revision of a batch leaves no content behind`() async throws {
        let served = try await ServedDatabase()
        func revision(_ value: String, _ start: Int, _ ids: [String]) -> JSONValue {
            [
                "_id": "b", "v": .string(value),
                "_revisions": ["start": JSONValue(start), "ids": .array(ids.map { .string($0) })],
            ]
        }
        let answer = try await served.call(
            "POST",
            "/main/_bulk_docs",
            [
                "new_edits": false,
                "docs": [
                    revision("m1", 1, ["m1"]), revision("s5", 5, ["s5", "p4", "s3", "p2", "p1"]),
                    revision("other", 4, ["p4", "p3", "r2", "r1"]),
                ],
            ]
        )
        #expect(answer.json.array?.first?["error"] == "forbidden", "\(answer.text)")
        #expect(try await served.call("GET", "/main/b?rev=4-p4").status == 404)
        let honest = revision("p4", 4, ["p4", "s3", "p2", "p1"])
        #expect(try await served.call("PUT", "/main/b?new_edits=false", honest).status == 201)
        await served.listener.stop()
    }

    @Test func `rows of a batch come in its order, those of local documents, too`() async throws {
        let served = try await ServedDatabase()
        let ids = ["_local/x", "a", "_local/y", "b", "c"]
        let docs = ids.map { ["_id": .string($0)] as JSONValue }
        let answer = try await served.call("POST", "/main/_bulk_docs", ["docs": .array(docs)])
        #expect(answer.json.array?.compactMap { $0["id"]?.string } == ids)
        await served.listener.stop()
    }
}
