import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Synchronization
import Testing

/// An app's filter decides what clients of CouchDB's wire may store, by every way in.
struct IncomingFilterTests {
    /// Takes notes, with attachments of at most 100 bytes altogether; and no other documents.
    private func serve(_ change: (inout CouchDBListenerConfiguration) -> Void = { _ in }) async throws
        -> ServedDatabase
    {
        try await ServedDatabase {
            $0.allowsDatabaseCreation = true
            $0.incomingFilter = { _, document, flags in
                guard !flags.contains(.deleted) else {
                    return document.id == "kept" ? LoveseatError(.httpForbidden, "is kept") : nil
                }
                guard document["kind"]?.string == "note" else {
                    return LoveseatError(.httpForbidden, "no note")
                }
                var sum = 0
                for (name, value) in document["_attachments"]?.object ?? [:] where value["stub"] != true {
                    guard let length = value["length"]?.int else {
                        return LoveseatError(.httpForbidden, "\(name) has no length")
                    }
                    sum += length
                }
                return sum <= 100
                    ? nil : LoveseatError(LoveseatError.Code(10_413), "too long")
            }
            change(&$0)
        }
    }

    private func stored(_ served: ServedDatabase) async throws -> [String] {
        try await served.call("GET", "/main/_all_docs").ids
    }

    @Test func `documents, deletions and copies that the filter refuses are not stored`() async throws {
        let served = try await serve()
        let refused = try await served.call("PUT", "/main/a", ["kind": "photo"])
        #expect(refused.status == 403)
        #expect(refused.json["error"] == "forbidden")
        #expect(refused.json["reason"] == "no note")
        #expect(try await served.call("POST", "/main", ["_id": "b", "kind": "photo"]).status == 403)
        let kept = try await served.call("PUT", "/main/kept", ["kind": "note"])
        #expect(kept.status == 201)
        let revision = try #require(kept.json["rev"]?.string)
        #expect(try await served.call("DELETE", "/main/kept?rev=\(revision)").status == 403)
        let rows = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["docs": [["_id": "c", "kind": "photo"], ["_id": "d", "kind": "note"]]]
        )
        #expect(rows.status == 201)
        #expect(rows.json[0]?["error"] == "forbidden")
        #expect(rows.json[1]?["ok"] == true)
        // A replicating client goes on after it.
        let pushed = try await served.call(
            "POST",
            "/main/_bulk_docs",
            [
                "new_edits": false,
                "docs": [
                    ["_id": "e", "_rev": "1-a", "kind": "photo"],
                    ["_id": "f", "_rev": "1-b", "kind": "note"],
                ],
            ]
        )
        #expect(pushed.json == [["id": "e", "error": "forbidden", "reason": "no note", "rev": "1-a"]])
        #expect(try await stored(served) == ["d", "f", "kept"])
        await served.listener.stop()
    }

    @Test func `attachments are refused by what is said of them, before they arrive`() async throws {
        let served = try await serve()
        #expect(try await served.call("PUT", "/main/a", ["kind": "note"]).status == 201)
        let revision = try #require(try await served.call("GET", "/main/a").json["_rev"]?.string)
        let table = #"{"x":{"follows":true,"length":1000000,"content_type":"text/plain"}}"#
        let document = #"{"_rev":"\#(revision)","kind":"note","_attachments":\#(table)}"#
        let parts = "--b\r\nContent-Type: application/json\r\n\r\n\(document)\r\n--b\r\n\r\nthe first bytes"
        for (path, type, body) in [
            ("/main/a", "multipart/related; boundary=b", parts),
            ("/main/a/x?rev=\(revision)", "text/plain", "the first bytes"),
        ] {
            let request = """
                PUT \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: \(type)\r\nContent-Length: 1000500\r\n\r\n\(body)
                """
            let client = served.client
            let answer = try await offPool { try client.beginning(of: request) }
            #expect(answer.hasPrefix("HTTP/1.1 413 "), "\(path): \(answer)")
        }
        // Chunks have no length.
        let chunked = """
            PUT /main/a/x?rev=\(revision) HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\
            Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n
            """
        let client = served.client
        let answer = try await offPool { try client.beginning(of: chunked) }
        #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(answer)")
        #expect(answer.contains("no length"), "\(answer)")
        let digits = String(repeating: "QUJD", count: 40)
        let inline: JSONValue = [
            "_rev": .string(revision), "kind": "note", "_attachments": ["x": ["data": .string(digits)]],
        ]
        #expect(try await served.call("PUT", "/main/a", inline).status == 413)
        let rows = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["docs": [["_id": "b", "kind": "note", "_attachments": ["x": ["data": .string(digits)]]]]]
        )
        #expect(rows.json[0]?["error"] == "document_too_large")
        // What was refused left nothing behind.
        #expect(try Self.blobs(of: served.database).isEmpty)
        let short = try await served.call(
            "PUT",
            "/main/a/x?rev=\(revision)",
            "short",
            [("Content-Type", "text/plain")]
        )
        #expect(short.status == 201)
        #expect(try await served.call("GET", "/main/a/x").text == "\"short\"")
        await served.listener.stop()
    }

    @Test func `a client that understates a length gains nothing`() async throws {
        let served = try await serve()
        let table = #"{"x":{"follows":true,"length":5,"content_type":"text/plain"}}"#
        let content = String(repeating: "y", count: 5_000)
        let parts =
            "--b\r\nContent-Type: application/json\r\n\r\n{\"kind\":\"note\",\"_attachments\":\(table)}\r\n"
            + "--b\r\n\r\n\(content)\r\n--b--"
        let answer = try await offPool { [client = served.client] in
            try client.send(
                "PUT",
                "/main/a",
                [("Content-Type", "multipart/related; boundary=b")],
                body: Array(parts.utf8)
            )
        }
        #expect((400...499).contains(answer.status), "\(answer.text)")
        #expect(try await stored(served).isEmpty)
        await served.listener.stop()
    }

    @Test func `clients cannot replicate around the filter`() async throws {
        let served = try await serve()
        #expect(try await served.call("PUT", "/other").status == 201)
        let answer = try await served.call("POST", "/_replicate", ["source": "other", "target": "main"])
        #expect(answer.status == 403, "\(answer.text)")
        await served.listener.stop()
    }

    private static func blobs(of database: Database) throws -> [String] {
        let path = try #require(database.path)
        let folder = URL(filePath: path).appending(path: "blobs")
        return (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    }
}
