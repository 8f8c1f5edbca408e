import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import NIOCore
import Testing

/// What a listener tells those who may not connect.
struct AuthenticationTests {
    private let scratch: Scratch
    private let far: Database

    init() throws {
        scratch = try Scratch()
        far = try scratch.database("far")
    }

    private func serve(_ authenticator: any ListenerAuthenticator) async throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.disableTLS = true
        configuration.authenticator = authenticator
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func request(_ path: String, _ password: String?) -> String {
        let credentials = password.map { Data("ana:\($0)".utf8).base64EncodedString() }
        let authorization = credentials.map { "Authorization: Basic \($0)\r\n" } ?? ""
        return "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(authorization)\r\n"
    }

    @Test func `without a password nobody learns even which names there are`() async throws {
        let listener = try await serve(ListenerPasswordAuthenticator { $1 == "right" })
        let port = try #require(listener.port)
        var answers: Set<String> = []
        for path in ["/far/_blipsync", "/other/_blipsync", "/", "/far", "/%00"] {
            answers.insert(try await RawClient(port: port).exchange(request(path, nil)))
        }
        let answer = try #require(answers.first)
        #expect(answers.count == 1)
        #expect(answer.hasPrefix("HTTP/1.1 401 "))
        #expect(answer.contains("WWW-Authenticate: Basic"))
        #expect(!answer.contains("far"))
        let known = try await RawClient(port: port).exchange(request("/other/_blipsync", "right"))
        #expect(known.hasPrefix("HTTP/1.1 404 "))
        await listener.stop()
    }

    @Test func `guessing is slowed down, then refused, and the app is not asked meanwhile`() async throws {
        let asked = NIOLockedValueBox(0)
        let listener = try await serve(
            ListenerPasswordAuthenticator { _, _ in
                asked.withLockedValue { $0 += 1 }
                return false
            }
        )
        let port = try #require(listener.port)
        var statuses: [String] = []
        for number in 0..<12 where statuses.last != "429" {
            let answer = try await RawClient(port: port).exchange(
                request("/far/_blipsync", "guess \(number)")
            )
            statuses.append(String(answer.dropFirst(9).prefix(3)))
            if statuses.last == "429" { #expect(answer.contains("Retry-After: ")) }
        }
        #expect(statuses.last == "429")
        #expect(statuses.dropLast().allSatisfy { $0 == "401" })
        #expect(asked.withLockedValue { $0 } == statuses.count - 1)
        await listener.stop()
    }

    @Test func `addresses of one IPv6 host are slowed down together, and IPv4 keeps its own form`() throws {
        #expect(PeerAddress.network(of: "2001:db8:1:2::7") == PeerAddress.network(of: "2001:db8:1:2:ffff::1"))
        #expect(PeerAddress.network(of: "2001:db8:1:2::7") != PeerAddress.network(of: "2001:db8:1:3::7"))
        #expect(PeerAddress.network(of: "192.0.2.1") == "192.0.2.1")
        #expect(PeerAddress(try SocketAddress(ipAddress: "::ffff:192.0.2.1", port: 1)).text == "192.0.2.1")
        #expect(PeerAddress(nil).text == "")
    }
}
