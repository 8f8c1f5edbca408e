import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Which web pages and host names a port serves.
struct RequestPolicyTests {
    private func status(
        _ policy: RequestPolicy,
        _ hosts: [String],
        _ origins: [String] = [],
        isWebSocket: Bool = false
    ) -> Int {
        do { try policy.check(hosts: hosts, origins: origins, isWebSocket: isWebSocket) } catch {
            return error.status
        }
        return 200
    }

    private let own = RequestPolicy(hosts: .ownNames(["db.example", "*.wild.example"]), isSecure: false)

    @Test(arguments: [
        "127.0.0.1", "127.0.0.1:5984", "10.0.0.7:1", "[::1]:5984", "[::1]", "[fe80::1%25eth0]:1", "localhost",
        "LOCALHOST:80", "localhost.", "db.example:8", "DB.example", "a.wild.example:1",
    ])
    func `addresses, localhost and the names of this host are served`(_ host: String) {
        #expect(status(own, [host]) == 200)
    }

    @Test func `the host's own name is served, also within the domain local`() {
        let name = ProcessInfo.processInfo.hostName
        let label = String(name.prefix { $0 != "." })
        for host in [name, "\(label):1", "\(label).local", "\(label.uppercased()).LOCAL.:5"] {
            #expect(status(own, [host]) == 200, "\(host)")
        }
    }

    @Test(arguments: [
        "page.example", "page.example:5984", "localhost.page.example", "127.0.0.1.page.example",
        "127.0.0.1:x",
        "[::1]x", "[::1", "xlocalhost", "db.example.page.example", "wild.example", "a.b.wild.example",
        "2130706433",
        "127.1", "localhost:1:2", "a@localhost", "localhost..", ":80", "127.0.0.1 ", "localhost/x",
    ])
    func `names of others are refused`(_ host: String) {
        #expect(status(own, [host]) == 421)
        #expect(status(RequestPolicy(hosts: .any, isSecure: false), [host]) == 200)
    }

    @Test func `no random name is taken for one of this host`() {
        var generator = SeededGenerator(seed: 3)
        let parts = [
            "localhost", "127.0.0.1", "db.example", ".", ":", "[", "]", "::1", "%", "a", "-", "@", "80", "é",
            ".local",
        ]
        let label = String(ProcessInfo.processInfo.hostName.prefix { $0 != "." })
        for _ in 0..<5_000 {
            let host = (0..<generator.int(1...5)).map { _ in generator.pick(parts) }.joined()
            guard status(own, [host]) == 200 else { continue }
            // What is served is an address, or one of the names, with nothing before or behind it but a port.
            let name = host.replacing(/:[0-9]*$/, with: "").lowercased()
            let isAddress = name.allSatisfy {
                $0.isHexDigit || ".:[]%".contains($0) || $0.isLetter && name.contains("%")
            }
            let bare = name.hasSuffix(".") ? String(name.dropLast()) : name
            #expect(
                isAddress || ["localhost", "db.example", label, "\(label).local"].contains(bare),
                "\(host)"
            )
        }
    }

    @Test func `a request has one host`() {
        for policy in [own, RequestPolicy(hosts: .any, isSecure: true)] {
            #expect(status(policy, []) == 400)
            #expect(status(policy, [""]) == 400)
            #expect(status(policy, ["localhost", "localhost"]) == 400)
            #expect(status(policy, [], isWebSocket: true) == 400)
        }
    }

    @Test func `pages need to be allowed, or to come from the port itself`() {
        var policy = RequestPolicy(hosts: .any, origins: ["https://app.example"], isSecure: false)
        for origin in [
            "http://localhost:5", "null", "", "https://app.example.evil", "https://app.example:443",
            "HTTPS://APP.EXAMPLE",
        ] {
            #expect(status(policy, ["localhost:5"], [origin]) == 403, "\(origin)")
        }
        #expect(status(policy, ["localhost:5"], ["https://app.example"]) == 200)
        #expect(status(policy, ["localhost:5"], ["https://app.example", "https://app.example"]) == 400)
        policy.allowsOwnPages = true
        #expect(status(policy, ["localhost:5"], ["http://localhost:5"]) == 200)
        // A proxy in front may add TLS.
        #expect(status(policy, ["db.example"], ["https://db.example"]) == 200)
        #expect(status(policy, ["localhost:5"], ["http://localhost:6"]) == 403)
        #expect(status(policy, ["localhost:5"], ["http://127.0.0.1:5"]) == 403)
        policy.isSecure = true
        #expect(status(policy, ["localhost:5"], ["http://localhost:5"]) == 403)
        policy.origins = ["*"]
        #expect(status(policy, ["localhost:5"], ["http://page.example"]) == 200)
    }

    private func status(target: String, _ encodings: [String] = []) -> Int {
        do {
            try own.check(target: target, hosts: ["localhost"], origins: [], transferEncodings: encodings)
        } catch { return error.status }
        return 200
    }

    @Test(arguments: [
        ("/db", 200), ("//page.example/db", 200), ("*", 200), ("/db?a=http://page.example", 200),
        ("http://localhost/db", 200), ("HTTP://127.0.0.1:80", 200), ("https://db.example?a", 200),
        ("http://page.example/db", 421), ("HTTPS://page.example:80", 421),
        ("http://localhost@page.example/", 421),
        ("http://page.example?localhost", 421), ("http://a:b@localhost/", 421), ("http:///db", 400),
        ("ftp://localhost/db", 400), ("localhost/db", 400), ("localhost:80", 400), ("", 400),
        ("http:/db", 400),
    ])
    func `the host in a request's target is one of this host, too`(_ target: String, _ expected: Int) {
        #expect(status(target: target) == expected)
    }

    @Test(arguments: [
        ([], 200), (["chunked"], 200), ([" Chunked "], 200), (["gzip, chunked"], 501), (["gzip"], 501),
        (["gzip", "chunked"], 501), (["chunked", "chunked"], 501), (["chunked, gzip"], 501), ([""], 501),
        (["identity"], 501), (["chunked,"], 501),
    ])
    func `a body in an encoding that nobody takes off is refused`(_ encodings: [String], _ expected: Int) {
        #expect(status(target: "/", encodings) == expected)
    }

    @Test func `a WebSocket of a program may use any name, and one of a page may not`() {
        #expect(status(own, ["page.example"], isWebSocket: true) == 200)
        #expect(status(own, ["page.example"], ["http://page.example"], isWebSocket: true) == 421)
        #expect(status(own, ["localhost"], ["http://page.example"], isWebSocket: true) == 403)
        #expect(status(own, ["localhost"], ["http://localhost"], isWebSocket: true) == 403)
    }

    @Test(arguments: [
        (["Host: localhost"], "101"), (["Host: localhost", "Origin: http://page.example"], "403"),
        (["Host: localhost", "Origin: null"], "403"),
        (["Host: localhost", "Origin: http://localhost"], "403"),
        (["Host: localhost", "Origin: https://app.example"], "101"), ([], "400"),
        (["Host: page.example", "Origin: https://app.example"], "421"), (["Host: page.example"], "101"),
        (["Host: localhost", "Host: localhost"], "400"),
        (["Host: localhost", "origin: http://page.example"], "403"),
    ])
    func `a listener answers pages as its configuration says`(_ headers: [String], _ expected: String)
        async throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("far")
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.disableTLS = true
        configuration.origins = ["https://app.example"]
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        let lines =
            ["GET /far/_blipsync HTTP/1.1"] + headers + [
                "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: BLIP_3+CBMobile_3",
                "", "",
            ]
        let answer = try await RawClient(port: try #require(listener.port))
            .exchange(lines.joined(separator: "\r\n"), until: { $0.contains("\r\n\r\n") })
        #expect(answer.hasPrefix("HTTP/1.1 \(expected) "), "\(answer)")
        await listener.stop()
    }

    @Test(arguments: [
        "nonsense", "https://", "https://a/b", "http://a:65536", "http://a:99999999999999999999",
        "https://a/", "HTTPS://a", "https://A.example", "https://a:443", "http://a:80", "https://*.example",
    ])
    func `a listener does not start with what is no origin`(_ origin: String) async throws {
        let scratch = try Scratch()
        let database = try scratch.database("far")
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.origins = [origin]
        let listener = URLEndpointListener(configuration)
        let error = await #expect(throws: LoveseatError.self) { try await listener.start() }
        #expect(error?.code == .invalidParameter)
    }

    @Test(arguments: [
        "", "http://db.example.com", "db.example.com:80", "a b", "münchen.example", "*", ".example", "*.",
    ])
    func `a listener does not start with a text that is not the name of a host`(_ name: String) async throws {
        let scratch = try Scratch()
        let database = try scratch.database("far")
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.hostNames = [name]
        let listener = URLEndpointListener(configuration)
        let error = await #expect(throws: LoveseatError.self) { try await listener.start() }
        #expect(error?.code == .invalidParameter)
    }
}
