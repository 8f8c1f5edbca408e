import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import NIOHTTP1
import Testing

/// An app's own types in the places where a listener or a replicator takes a protocol.
struct CustomAuthenticatorTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
        try near.defaultCollection().save(Document(id: "here"))
    }

    /// Knows bearer tokens.
    private struct Tokens: ListenerAuthenticator {
        let seen = NIOLockedValueBox<[ConnectingClient]>([])

        func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
            seen.withLockedValue { $0.append(client) }
            guard client.authorization == "Bearer abc" else { return nil }
            return PeerIdentity(address: client.address, name: "bearer")
        }
    }

    /// Wants certificates.
    private struct Devices: ListenerAuthenticator {
        var requestsClientCertificates: Bool { true }
        func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
            guard client.certificates.first?.commonName == "phone" else { return nil }
            return PeerIdentity(certificates: client.certificates, address: client.address, name: "phone")
        }
    }

    /// Knows a long random code.
    private struct Code: ListenerAuthenticator {
        var hasUnguessableSecrets: Bool { true }

        func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
            guard client.credentials?.password == "right" else { return nil }
            return PeerIdentity(username: "drop", address: client.address)
        }
    }

    private struct Strange: Authenticator {}

    private func serve(_ change: (inout URLEndpointListenerConfiguration) -> Void) async throws
        -> URLEndpointListener
    {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        change(&configuration)
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func sync(
        _ listener: URLEndpointListener,
        _ change: (inout ReplicatorConfiguration) -> Void
    ) async throws -> LoveseatError.Code? {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(listener.urls?.first))
        )
        configuration.maxAttempts = 1
        configuration.acceptOnlySelfSignedServerCertificate = true
        change(&configuration)
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error?.code
    }

    @Test func `an app's own authenticator decides, and its identity reaches the access policy`() async throws
    {
        let tokens = Tokens()
        let names = NIOLockedValueBox<Set<String>>([])
        let listener = try await serve {
            $0.disableTLS = true
            $0.authenticator = tokens
            $0.accessPolicy = AccessPolicy { peer, _, _ in
                names.withLockedValue { _ = $0.insert(peer.name ?? "") }
                return .write
            }
        }
        #expect(try await sync(listener) { _ in } == .httpAuthRequired)
        #expect(try await sync(listener) { $0.headers = ["Authorization": "Bearer x"] } == .httpAuthRequired)
        #expect(
            try await sync(listener) {
                $0.authenticator = BasicAuthenticator(username: "ana", password: "pw")
            } == .httpAuthRequired
        )
        #expect(try far.defaultCollection().count == 0)
        #expect(try await sync(listener) { $0.headers = ["Authorization": "Bearer abc"] } == nil)
        #expect(try far.defaultCollection().count == 1)
        #expect(names.withLockedValue { $0 } == ["bearer"])
        let seen = tokens.seen.withLockedValue { $0 }
        #expect(seen.map(\.credentials?.username) == [nil, nil, "ana", nil])
        #expect(seen.allSatisfy { $0.address == "127.0.0.1" })
        await listener.stop()
    }

    @Test func `an app's own authenticator gets certificates if it asks for them, and only over TLS`()
        async throws
    {
        let error = await #expect(throws: LoveseatError.self) {
            _ = try await serve {
                $0.disableTLS = true
                $0.authenticator = Devices()
            }
        }
        #expect(error?.code == .invalidParameter)
        let kiosk = try TLSIdentity.createIdentity(
            for: .serverAuth,
            attributes: [certAttrCommonName: "kiosk"],
            label: nil
        )
        let listener = try await serve {
            $0.tlsIdentity = kiosk
            $0.authenticator = Devices()
        }
        for (name, code) in [("phone", nil), ("eve", LoveseatError.Code.httpAuthRequired)] {
            let identity = try TLSIdentity.createIdentity(
                for: .clientAuth,
                attributes: [certAttrCommonName: name],
                label: nil
            )
            #expect(
                try await sync(listener) {
                    $0.authenticator = ClientCertificateAuthenticator(identity: identity)
                }
                    == code
            )
        }
        #expect(try await sync(listener) { _ in } == .httpAuthRequired)
        await listener.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `whoever has an unguessable secret is admitted, whatever others at the address try`() async {
        let door = ConnectionAuthenticator(Code(), fingerprint: nil)
        @Sendable func status(_ password: String) async -> UInt {
            let login = Data("drop:\(password)".utf8).base64EncodedString()
            let headers: HTTPHeaders = ["Authorization": "Basic \(login)"]
            do throws(HTTPRefusal) {
                _ = try await door.answer(headers, address: "192.0.2.1", shown: nil, run: nil)
                return 200
            } catch { return error.status.code }
        }
        await withTaskGroup(of: UInt.self) { group in
            for number in 0..<100 { group.addTask { await status("wrong \(number)") } }
            var isRefused = false
            for await result in group where result == 429 {
                isRefused = true
                break
            }
            #expect(isRefused)
            #expect(await status("right") == 200)
            group.cancelAll()
        }
    }

    @Test func `a replicator refuses an authenticator that it does not know, before it connects`()
        async throws
    {
        let server = try await ScriptedServer { _, _ in nil }
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(URL(string: "ws://127.0.0.1:\(server.port)/db")))
        )
        configuration.authenticator = Strange()
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error?.code == .invalidParameter)
        #expect(server.requests.withLockedValue { $0.isEmpty })
    }

    @Test func `a gateway that asks for the database first is told that it is there, if it may know`()
        async throws
    {
        let listener = try await serve {
            $0.disableTLS = true
            $0.authenticator = ListenerPasswordAuthenticator { $0 == "ana" && $1 == "pw" }
        }
        let port = try #require(listener.port)
        let login = "Authorization: Basic \(Data("ana:pw".utf8).base64EncodedString())\r\n"
        for (path, header, status) in [
            ("/far", login, "200"), ("/far/", login, "200"), ("/near", login, "404"), ("/far", "", "401"),
            ("/near", "", "401"),
        ] {
            let answer = try await RawClient(port: port)
                .exchange("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(path)")
        }
        await listener.stop()
    }
}
