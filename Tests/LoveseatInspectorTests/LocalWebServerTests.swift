import Foundation
import LoveseatCouchDBTesting
import LoveseatWeb
import Testing

/// A server of an app's own pages.
struct LocalWebServerTests {
    private func client(_ server: LocalWebServer) async throws -> RawClient {
        let address = try await server.start(port: 0)
        return RawClient(port: UInt16(try #require(URL(string: address)?.port)))
    }

    @Test func `a server that is only for browsers accepts the cookie, and no token in a header`()
        async throws
    {
        let server = LocalWebServer(.init(program: "test", cookieName: "test")) { _ in .text(.ok, "here") }
        let client = try await client(server)
        let cookie = ("Cookie", "test-\(client.port)=\(server.token)")
        let withCookie = try await offPool { try client.send("GET", "/", [cookie]) }
        #expect(withCookie.status == 200)
        let key = ("Authorization", "Bearer \(server.token)")
        let withKey = try await offPool { try client.send("GET", "/", [key]) }
        #expect(withKey.status == 403)
        let change = try await offPool { try client.send("POST", "/", [cookie]) }
        #expect(change.status == 403)
        await server.stop()
    }

    @Test func `a body that is too large is refused with 413, and an error of the app is answered with 500`()
        async throws
    {
        var options = LocalWebServer.Options(program: "test", cookieName: "test")
        options.maximumBody = 4
        let server = LocalWebServer(options) { request in
            guard request.path.isEmpty else { throw CancellationError() }
            return .text(.ok, "\(request.body.count)")
        }
        let client = try await client(server)
        let headers = [
            ("Cookie", "test-\(client.port)=\(server.token)"), ("Origin", "http://127.0.0.1:\(client.port)"),
        ]
        let small = try await offPool { try client.send("POST", "/", headers, body: Array("1234".utf8)) }
        #expect(small.status == 200)
        let large = try await offPool { try client.send("POST", "/", headers, body: Array("12345".utf8)) }
        #expect(large.status == 413)
        let failed = try await offPool { try client.send("GET", "/fails", headers) }
        #expect(failed.status == 500)
        await server.stop()
    }

    @Test func `a client that waits is asked for its body, unless it is refused without it`() async throws {
        let server = LocalWebServer(.init(program: "test", cookieName: "test")) {
            .text(.ok, "\($0.body.count)")
        }
        let client = try await client(server)
        let origin = "http://127.0.0.1:\(client.port)"
        let cookie = "Cookie: test-\(client.port)=\(server.token)\r\n"
        for (fields, status) in [("\(cookie)Origin: \(origin)\r\n", 100), ("", 403), (cookie, 403)] {
            let request =
                "POST / HTTP/1.1\r\nHost: 127.0.0.1:\(client.port)\r\nContent-Length: 4\r\n"
                + "Expect: 100-Continue\r\n\(fields)\r\n"
            // The body is never sent.
            let answer = try await offPool { try client.beginning(of: request) }
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
        }
        await server.stop()
    }

    @Test func `two requests on one connection get two replies, and HEAD gets no body`() async throws {
        let server = LocalWebServer(.init(program: "test", cookieName: "test")) { request in
            request.path == ["stream"]
                ? WebReply(.ok, [], .stream(length: nil) { try await $0.write("parts".utf8) })
                : .text(.ok, "here")
        }
        let client = try await client(server)
        let fields =
            "Host: 127.0.0.1:\(client.port)\r\nCookie: test-\(client.port)=\(server.token)\r\n"
        func exchange(_ lines: [String]) async throws -> String {
            let text = lines.map {
                "\($0) HTTP/1.1\r\n\(fields)\($0 == lines.last ? "Connection: close\r\n" : "")\r\n"
            }
            return try await offPool {
                String(decoding: try client.exchange(Array(text.joined().utf8)), as: UTF8.self)
            }
        }
        let both = try await exchange(["GET /", "GET /stream"])
        #expect(both.components(separatedBy: "HTTP/1.1 200").count == 3)
        #expect(both.contains("here\n"))
        #expect(both.contains("parts"))
        let heads = try await exchange(["HEAD /", "HEAD /stream"])
        #expect(heads.components(separatedBy: "HTTP/1.1 200").count == 3)
        #expect(!heads.contains("here"))
        #expect(!heads.contains("parts"))
        await server.stop()
    }
}
