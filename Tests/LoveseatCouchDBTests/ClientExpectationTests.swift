import Foundation
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// What PouchDB's own tests expect of a CouchDB, and of which no recording tells.
struct ClientExpectationTests {
    @Test(arguments: ["Connection: close\r\n", "connection: Close\r\n", ""])
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
