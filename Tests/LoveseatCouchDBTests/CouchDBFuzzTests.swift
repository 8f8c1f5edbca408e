import Foundation
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: alone
/// The fuzzers' targets of CouchDB's wire with seeded input, as a check that they run, and with all inputs that once failed.
struct CouchDBFuzzTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Fuzzing/FailCases").standardized

    /// Runs a target with text that is likely to mean something.
    private func run(_ target: String, _ seed: UInt64, _ count: Int, first: Bool = false, _ words: [String])
        async throws
    {
        let target = try #require(CouchDBFuzzTargets.named[target])
        try await offPool {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<count {
                var bytes = first ? [UInt8(generator.int(0...127))] : []
                for _ in 0..<generator.int(1...12) {
                    bytes +=
                        generator.chance(0.9)
                        ? Array(generator.pick(words).utf8) : generator.bytes(generator.int(0...8))
                }
                target(bytes)
            }
        }
    }

    @Test func `inputs that once failed do no harm`() async throws {
        for (name, target) in CouchDBFuzzTargets.named {
            let folder = Self.folder.appending(path: name)
            for file in (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [] {
                let bytes = Array(try Data(contentsOf: folder.appending(path: file)))
                try await offPool { target(bytes) }
            }
        }
    }

    @Test func `any request is answered`() async throws {
        try await run(
            "couchdb-http",
            21,
            300,
            [
                "GET /db/_changes HTTP/1.1\r\n", "POST /db/_bulk_docs HTTP/1.1\r\n", "Host: localhost\r\n",
                "\r\n",
                "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n", "0\r\n\r\n",
                "Authorization: Basic YTph\r\n", "Expect: 100-continue\r\n", "Content-Length: -1\r\n",
                "GET http://x/db HTTP/1.0\r\n", "{}", "\u{0}", "X-HTTP-Method-Override: PURGE\r\n",
            ]
        )
    }

    @Test func `any body is answered`() async throws {
        try await run(
            "couchdb-body",
            22,
            1_500,
            first: true,
            [
                "{", "}", "[", "]", ":", ",", "\"docs\":", "\"_id\":\"a\"", "\"_rev\":\"1-a\"",
                "\"new_edits\":false", "\"_revisions\":{\"start\":2,\"ids\":[\"b\",\"a\"]}",
                "\"_deleted\":true",
                "\"_attachments\":{\"x\":{\"data\":\"aGk=\"}}",
                "\"_attachments\":{\"x\":{\"follows\":true,\"length\":2}}",
                "\"keys\":[\"a\"]", "\"selector\":{\"a\":{\"$gt\":1}}", "\"$regex\":\"a*\"",
                "\"doc_ids\":[\"a\"]",
                "{\"docs\":[{\"_id\":\"a\"}]}",
                "{\"docs\":[{\"id\":\"a\",\"rev\":\"1-a\",\"atts_since\":[\"1-a\"]}]}",
                "{\"a\":[\"1-a\",\"2147483647-b\"]}", "--b\r\nContent-Type: application/json\r\n\r\n",
                "\r\n--b--",
                "\r\n--b\r\n\r\n", "name=a&password=a", "null", "1e999", "-1", "\"\\ud800\"",
            ]
        )
    }

    @Test func `any parameters of a feed are answered`() async throws {
        try await run(
            "couchdb-changes",
            23,
            1_000,
            [
                "since=", "0", "now", "18446744073709551615", "99999999999999999999", "&", "feed=",
                "longpoll",
                "continuous", "eventsource", "limit=", "-1", "style=all_docs", "descending=true",
                "include_docs=true", "filter=", "_doc_ids", "_design", "_selector", "_view", "a/b",
                "doc_ids=",
                "%5B%22a%22%5D", "%", "%ff", "heartbeat=", "9223372036854775807", "attachments=true", "=",
            ]
        )
    }

    @Test func `any number in any parameter, header or body is answered`() async throws {
        try await run(
            "couchdb-numbers",
            26,
            2_000,
            ["\u{0}", "\u{1}", "\u{2}", "\u{7}", " ", "+", "0", "5", "@", "K", "a", "k", "z", "~"]
        )
    }

    @Test func `any cookie and any Digest header are answered`() async throws {
        try await run("couchdb-cookie", 24, 500, ["YTph", "=", "-", "_", ";", "AuthSession=", "\"", "a"])
        try await run(
            "couchdb-digest",
            25,
            200,
            [
                "username=\"a\", ", "username*=UTF-8''%61, ", "realm=\"Loveseat\", ", "nonce=\"AAAA\", ",
                "uri=\"/db\", ", "qop=auth, ", "nc=00000001, ", "nc=ffffffff, ", "cnonce=\"c\", ",
                "response=\"00\", ", "algorithm=MD5, ", "algorithm=SHA-256, ", "\"", "\\", ",", "=",
            ]
        )
    }
}
