import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Web pages and other strangers at a listener of CouchDB's wire.
struct StrangerTests {
    /// The status of a request byte for byte.
    private func status(
        _ client: RawClient,
        _ method: String = "GET",
        _ path: String = "/main",
        headers: [String]
    )
        async throws -> Int
    {
        let text = (["\(method) \(path) HTTP/1.1"] + headers + ["Connection: close", "", ""]).joined(
            separator: "\r\n"
        )
        let answer = try await offPool { try client.exchange(Array(text.utf8)) }
        return Int(String(decoding: answer, as: UTF8.self).dropFirst(9).prefix(3)) ?? 0
    }

    @Test(arguments: [
        (["Host: localhost"], 200), (["Host: 127.0.0.1:80"], 200), (["Host: [::1]:80"], 200),
        (["Host: db.example"], 200), (["Host: page.example"], 421), (["Host: localhost.page.example"], 421),
        ([], 400), (["Host: "], 400), (["Host: localhost", "Host: page.example"], 400),
        (["Host: page.example", "host: localhost"], 400),
        (["Host: localhost", "Origin: http://page.example"], 403),
        (["Host: localhost", "Origin: null"], 403),
        (["Host: localhost:5", "Origin: http://localhost:5"], 200),
        (["Host: localhost:5", "Origin: http://localhost:6"], 403),
        (["Host: localhost", "Origin: http://app.example"], 200),
    ])
    func `names of others and pages of others are refused`(_ headers: [String], _ expected: Int) async throws
    {
        let served = try await ServedDatabase {
            $0.hostNames = ["db.example"]
            $0.origins = ["http://app.example"]
        }
        #expect(try await status(served.client, headers: headers) == expected)
        await served.listener.stop()
    }

    @Test func `a plain body that is said to be compressed is not read`() async throws {
        let served = try await ServedDatabase()
        let chunks = "\r\n\r\n2\r\n{}\r\n0"
        for (coding, expected) in [
            ("chunked", 201), ("gzip, chunked", 501), ("gzip\r\nTransfer-Encoding: chunked", 501),
        ] {
            let status = try await status(
                served.client,
                "PUT",
                "/main/d",
                headers: [
                    "Host: localhost", "Connection: close", "Content-Type: application/json",
                    "Transfer-Encoding: \(coding)\(chunks)",
                ]
            )
            #expect(status == expected, "\(coding)")
        }
        #expect(try served.database.defaultCollection().count == 1)
        await served.listener.stop()
    }

    @Test func `a page that is not allowed changes nothing, whatever it asks for`() async throws {
        let served = try await ServedDatabase()
        let page = ["Host: localhost", "Origin: http://page.example", "Content-Length: 0"]
        for (method, path) in [
            ("POST", "/main/_compact"), ("PUT", "/main/x"), ("POST", "/main/_bulk_docs"), ("DELETE", "/main"),
            ("POST", "/_session"), ("OPTIONS", "/main"), ("GET", "/"), ("GET", "/_up"),
            ("POST", "/_replicate"),
        ] {
            #expect(try await status(served.client, method, path, headers: page) == 403, "\(method) \(path)")
        }
        #expect(try served.database.defaultCollection().count == 0)
        await served.listener.stop()
    }

    @Test func `behind an authenticator and on all interfaces any name is served`() async throws {
        let served = try await ServedDatabase {
            $0.networkInterface = nil
            $0.authenticator = ListenerPasswordAuthenticator { $0 == "a" && $1 == "a" }
        }
        let basic = "Authorization: Basic YTph"
        #expect(try await status(served.client, headers: ["Host: anything.example", basic]) == 200)
        #expect(try await status(served.client, headers: [basic]) == 400)
        await served.listener.stop()
        let open = try await ServedDatabase { $0.networkInterface = nil }
        #expect(try await status(open.client, headers: ["Host: anything.example"]) == 421)
        await open.listener.stop()
    }

    // MARK: Sessions

    private func servedWithLogin() async throws -> ServedDatabase {
        try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == "ana" && $1 == "ana" }
        }
    }

    @Test func `a login leads to paths of this server only`() async throws {
        let served = try await servedWithLogin()
        let client = served.client
        var generator = SeededGenerator(seed: 4)
        let pieces = [
            "/", "\\", "%5C", "%2F", "%09", "%0A", "%0D", "a", "page.example", "%00", "%20", ":", "http:",
            "?", "%23", "%C3%A9", "@", "..",
        ]
        for _ in 0..<300 {
            let next =
                (generator.chance(0.8) ? "/" : "")
                + (0..<generator.int(0...4)).map { _ in generator.pick(pieces) }.joined()
            let path = "/_session?next=" + next.replacing("?", with: "%3F")
            let answer = try await offPool {
                try client.send(
                    "POST",
                    path,
                    [("Content-Type", "application/x-www-form-urlencoded")],
                    body: Array("name=ana&password=ana".utf8)
                )
            }
            guard let location = answer.headers["location"] else {
                #expect(answer.status == 400, "\(next)")
                continue
            }
            #expect(answer.status == 302)
            // As browsers read it.
            let read = location.replacing("\\", with: "/").filter { !["\t", "\n", "\r"].contains($0) }
            #expect(read.hasPrefix("/"), "\(next)")
            #expect(!read.hasPrefix("//"), "\(next)")
        }
        await served.listener.stop()
    }

    @Test func `cookies are of this site, and those of other servers do not matter`() async throws {
        let served = try await servedWithLogin()
        let client = served.client
        let form = [("Content-Type", "application/x-www-form-urlencoded")]
        let foreign = Data(Array("ana:65A0B1C2:".utf8) + Array(0..<20)).base64EncodedString()
        let others = [
            "AuthSession=junk", "AuthSession=", "AuthSession=\(foreign)",
            "AuthSession=\(foreign.replacing("=", with: "")); b=c", "AuthSession=YQ==",
        ]
        for other in others {
            let login = try await offPool {
                try client.send(
                    "POST",
                    "/_session",
                    form + [("Cookie", other)],
                    body: Array("name=ana&password=ana".utf8)
                )
            }
            #expect(login.status == 200, "\(other)")
            let cookie = try #require(login.headers["set-cookie"])
            #expect(cookie.contains("SameSite=Lax"))
            #expect(cookie.contains("HttpOnly"))
            let own = String(cookie.prefix { $0 != ";" })
            func get(_ headers: [(String, String)]) async throws -> Int {
                try await offPool { try client.send("GET", "/main", headers).status }
            }
            #expect(try await get([("Cookie", "\(other); \(own)")]) == 200, "\(other)")
            #expect(try await get([("Cookie", "\(own); \(other)")]) == 200, "\(other)")
            #expect(
                try await get([("Cookie", other), ("Authorization", "Basic YW5hOmFuYQ==")]) == 200,
                "\(other)"
            )
            #expect(try await get([("Cookie", other)]) == 401, "\(other)")
            #expect(
                try await get([("Cookie", other), ("Authorization", "Basic YW5hOng=")]) == 401,
                "\(other)"
            )
        }
        let end = try await offPool {
            try client.send("DELETE", "/_session", [("Authorization", "Basic YW5hOmFuYQ==")])
        }
        #expect(end.headers["set-cookie"]?.contains("SameSite=Lax") == true)
        await served.listener.stop()
    }

    // MARK: Attachments

    @Test func `a content type that clients could not read is refused wherever it comes`() async throws {
        let served = try await ServedDatabase()
        let client = served.client
        for (length, expected) in [(256, true), (257, false), (100_000, false)] {
            let type = "text/" + String(repeating: "x", count: length - 5)
            let entry: JSONValue = ["content_type": .string(type), "data": "aGVsbG8="]
            let body: JSONValue = ["_attachments": ["note": entry]]
            let id = "d\(length)"
            #expect((try await served.call("PUT", "/main/\(id)", body).status == 201) == expected)
            let many = try await served.call(
                "POST",
                "/main/_bulk_docs",
                ["docs": [["_id": .string("b\(length)"), "_attachments": ["note": entry]]]]
            )
            #expect(many.status == 201)
            #expect((many.json.array?.first?["ok"] == true) == expected, "\(many.text)")
            if length < 10_000 {
                let put = try await offPool {
                    try client.send("PUT", "/main/a\(length)/note", [("Content-Type", type)], body: [1])
                }
                #expect(put.status == (expected ? 201 : 400))
            }
            let table: JSONValue = [
                "_attachments": ["note": ["content_type": .string(type), "follows": true, "length": 5]]
            ]
            let parts =
                "--b\r\nContent-Type: application/json\r\n\r\n\(JSONText(canonical: table))\r\n--b\r\n\r\nhello\r\n--b--"
            let multipart = try await offPool {
                try client.send(
                    "PUT",
                    "/main/m\(length)",
                    [("Content-Type", "multipart/related; boundary=b")],
                    body: Array(parts.utf8)
                )
            }
            #expect(multipart.status == (expected ? 201 : 400))
            for id in [id, "b\(length)", "m\(length)"] {
                let read = try await served.call("GET", "/main/\(id)/note")
                #expect(read.status == (expected ? 200 : 404), "\(id)")
                if expected { #expect(read.headers["content-type"] == type) }
            }
        }
        await served.listener.stop()
    }
}
