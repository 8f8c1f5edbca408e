import LoveseatCore
import LoveseatCouchDBTesting
import LoveseatModel
import Testing

/// The page is for the browser that has its address, and for nothing else.
struct AccessTests {
    /// A request byte for byte, and the status of the reply.
    private func status(_ server: InspectorServer, _ head: String, body: String = "") async throws -> Int {
        let end = "Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n"
        let client = server.client
        let reply = try await offPool { try client.exchange(Array("\(head)\r\n\(end)\(body)".utf8)) }
        return Int(String(decoding: reply, as: UTF8.self).dropFirst(9).prefix(3)) ?? 0
    }

    private func host(_ server: InspectorServer) -> String { "Host: 127.0.0.1:\(server.client.port)" }

    @Test func `the token in the address becomes a cookie, which opens the page and the API`() async throws {
        let server = try await InspectorServer()
        let first = try await server.send("GET", "/?k=\(server.token)")
        #expect(first.status == 303)
        #expect(first.headers["location"] == "/")
        let cookie = try #require(first.headers["set-cookie"])
        #expect(cookie.contains("HttpOnly"))
        #expect(cookie.contains("SameSite=Strict"))
        let pair = String(cookie.prefix { $0 != ";" })
        for path in ["/", "/style.css", "/main.js", "/icon.svg", "/api/database"] {
            #expect(try await server.send("GET", path, [("Cookie", pair)]).status == 200, "\(path)")
            #expect(try await server.send("GET", path).status == 403, "\(path)")
            #expect(try await server.send("GET", path, [("Cookie", "\(pair)0")]).status == 403, "\(path)")
        }
        #expect(try await server.send("GET", "/?k=0123").status == 403)
        #expect(try await server.send("GET", "/api/database?k=\(server.token)").status == 403)
        try await server.stop()
    }

    @Test func `other names of this computer are refused`() async throws {
        let server = try await InspectorServer()
        let key = "Authorization: Bearer \(server.token)"
        let port = server.client.port
        for name in [
            "evil.example:\(port)", "127.0.0.1", "127.0.0.1:1", "[::1]:\(port)", "localhost.evil:\(port)",
        ] {
            #expect(
                try await status(server, "GET /api/database HTTP/1.1\r\nHost: \(name)\r\n\(key)") == 421,
                "\(name)"
            )
        }
        #expect(
            try await status(server, "GET /api/database HTTP/1.1\r\nHost: localhost:\(port)\r\n\(key)") == 200
        )
        try await server.stop()
    }

    @Test func `only the page itself may change something with the cookie`() async throws {
        let server = try await InspectorServer()
        let cookie = "Cookie: loveseat-inspector-\(server.client.port)=\(server.token)"
        let body = #"{"collection":"_default._default","id":"a","body":{"n":1}}"#
        func save(_ header: String) async throws -> Int {
            try await status(server, "POST /api/save HTTP/1.1\r\n\(host(server))\r\n\(header)", body: body)
        }
        #expect(try await save(cookie) == 403)
        #expect(try await save("\(cookie)\r\nOrigin: http://evil.example") == 403)
        #expect(try await save("\(cookie)\r\nOrigin: null") == 403)
        #expect(try await save("Authorization: Bearer \(server.token)\r\nOrigin: http://evil.example") == 403)
        #expect(try server.collection.count == 0)
        #expect(try await save("\(cookie)\r\nOrigin: http://127.0.0.1:\(server.client.port)") == 200)
        #expect(try server.collection.count == 1)
        #expect(try await status(server, "DELETE /api/save HTTP/1.1\r\n\(host(server))\r\n\(cookie)") == 405)
        try await server.stop()
    }

    @Test func `every reply has the security policy, and is not stored`() async throws {
        let server = try await InspectorServer()
        for path in ["/", "/main.js", "/api/database", "/nothing", "/api/nothing"] {
            let reply = try await server.get(path)
            #expect(
                reply.headers["content-security-policy"]?.contains("default-src 'self'") == true,
                "\(path)"
            )
            #expect(reply.headers["x-content-type-options"] == "nosniff")
            #expect(reply.headers["referrer-policy"] == "no-referrer")
            #expect(reply.headers["cache-control"] == "no-store")
        }
        #expect(try await server.get("/nothing").status == 404)
        try await server.stop()
    }

    @Test func `bad parameters get a reason, not a trap`() async throws {
        let server = try await InspectorServer()
        try server.collection.save(Document(id: "a", ["n": 1]))
        let bad: [(String, [String: String], Int)] = [
            ("/api/documents", ["offset": "-1"], 400), ("/api/documents", ["limit": "0"], 400),
            ("/api/documents", ["offset": "9223372036854775807"], 400),
            ("/api/documents", ["collection": "a.b.c"], 400), ("/api/documents", ["collection": "none"], 404),
            ("/api/documents", ["where": "city ="], 400), ("/api/document", [:], 400),
            ("/api/document", ["id": "missing"], 404), ("/api/revision", ["id": "a", "revision": "x"], 400),
            ("/api/revision", ["id": "a", "revision": "1-00"], 404),
            ("/api/difference", ["id": "a", "from": "1-00"], 400), ("/api/query", [:], 400),
            ("/api/query", ["sql": "DROP TABLE x"], 400), ("/api/blob", ["digest": "../../etc/passwd"], 400),
            ("/api/blob", ["digest": "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA="], 404),
            ("/api/pending", ["remote": "ws://nobody/db"], 404), ("/api/peers", ["after": "x"], 400),
        ]
        for (path, parameters, status) in bad {
            let reply = try await server.get(path, parameters)
            #expect(reply.status == status, "\(path) \(parameters) \(reply.text)")
            #expect(try JSONValue(parsing: reply.text)["error"]?.string?.isEmpty == false)
        }
        #expect(try await server.get("/api/documents", ["offset": "1000000000"]).status == 200)
        for text in ["", "[]", "{", #"{"id":"a"}"#, #"{"collection":"x","id":"a","body":[]}"#] {
            let reply = try await server.send(
                "POST",
                "/api/save",
                [("Authorization", "Bearer \(server.token)")],
                body: Array(text.utf8)
            )
            #expect(reply.status == 400, "\(text)")
        }
        try await server.stop()
    }
}
