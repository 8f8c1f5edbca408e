import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// TLS between replicators and listeners: what each mistake looks like to the user (replication.md §18.1, §21).
struct TLSTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database
    private let store: FileIdentityStore

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
        store = FileIdentityStore(folder: URL(filePath: scratch.path).appending(path: "identities"))
        try far.defaultCollection().save(Document(id: "there"))
        try near.defaultCollection().save(Document(id: "here"))
    }

    private func identity(
        _ name: String = "127.0.0.1",
        _ usages: KeyUsages = .serverAuth,
        address: String? = "127.0.0.1",
        issuer: TLSIdentity? = nil
    ) throws -> TLSIdentity {
        var attributes = [certAttrCommonName: name]
        attributes[certAttrIPAddress] = address
        return try TLSIdentity.createIdentity(
            for: usages,
            attributes: attributes,
            issuer: issuer,
            label: nil,
            in: store
        )
    }

    private func serve(
        _ change: (inout URLEndpointListenerConfiguration) -> Void = { _ in }
    ) async throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.identityStore = store
        change(&configuration)
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func sync(
        _ url: URL?,
        _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
    ) async throws -> (error: LoveseatError?, server: TLSCertificate?) {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(url))
        )
        configuration.maxAttempts = 1
        change(&configuration)
        let replicator = Replicator(configuration)
        replicator.start()
        return (await replicator.waitUntilStopped().error, replicator.serverCertificate)
    }

    @Test func `a listener speaks TLS by default, with an identity that it keeps`() async throws {
        let listener = try await serve()
        let url = try #require(listener.urls?.first)
        #expect(url.scheme == "wss")
        let shown = try #require(listener.tlsIdentity)
        let result = try await sync(url) { $0.acceptOnlySelfSignedServerCertificate = true }
        #expect(result.error == nil)
        #expect(result.server == shown.certs.first)
        #expect(try near.defaultCollection().document(id: "there") != nil)
        #expect(try far.defaultCollection().document(id: "here") != nil)
        await listener.stop()
        #expect(listener.tlsIdentity == nil)
        let second = try await serve()
        #expect(second.tlsIdentity?.certs == shown.certs)
        await second.stop()
    }

    @Test func `a pin decides alone, and may be any certificate of the chain`() async throws {
        let authority = try identity("CA", .certificateAuthority, address: nil)
        let issued = try identity("elsewhere", address: nil, issuer: authority)
        let listener = try await serve { $0.tlsIdentity = issued }
        for pin in issued.certs {
            #expect(try await sync(listener.urls?.first) { $0.pinnedServerCertificate = pin }.error == nil)
        }
        let other = try identity()
        let wrong = try await sync(listener.urls?.first) {
            $0.pinnedServerCertificate = other.certs[0]
            $0.rootCertificates = authority.certs
        }
        #expect(wrong.error?.code == .tlsCertUnknownRoot)
        #expect(wrong.server == issued.certs[0])
        await listener.stop()
    }

    @Test func `an expired certificate is refused, unless it is pinned`() async throws {
        let short = try TLSIdentity.createIdentity(
            for: .serverAuth,
            attributes: [certAttrCommonName: "short"],
            expiration: Date().addingTimeInterval(2),
            label: nil,
            in: store
        )
        let listener = try await serve { $0.tlsIdentity = short }
        // Certificates count in whole seconds.
        while Date() < short.expiration.addingTimeInterval(1) { try await Task.sleep(for: .milliseconds(50)) }
        let url = listener.urls?.first
        #expect(
            try await sync(url) { $0.acceptOnlySelfSignedServerCertificate = true }.error?.code
                == .tlsCertExpired
        )
        #expect(try await sync(url).error?.code == .tlsCertExpired)
        #expect(try await sync(url) { $0.pinnedServerCertificate = short.certs[0] }.error == nil)
        await listener.stop()
    }

    @Test func `an own authority is trusted for the hosts that its certificates name`() async throws {
        let authority = try identity("CA", .certificateAuthority, address: nil)
        let right = try identity(issuer: authority)
        let listener = try await serve { $0.tlsIdentity = right }
        let url = listener.urls?.first
        #expect(try await sync(url) { $0.rootCertificates = authority.certs }.error == nil)
        // The system does not know our authority; another authority does not know this one.
        #expect(try await sync(url).error?.code == .tlsCertUnknownRoot)
        let stranger = try identity("CA", .certificateAuthority, address: nil)
        #expect(
            try await sync(url) { $0.rootCertificates = stranger.certs }.error?.code == .tlsCertUnknownRoot
        )
        #expect(
            try await sync(url) { $0.acceptOnlySelfSignedServerCertificate = true }.error?.code
                == .tlsCertUntrusted
        )
        await listener.stop()

        let elsewhere = try identity("elsewhere", address: "192.0.2.1", issuer: authority)
        let other = try await serve { $0.tlsIdentity = elsewhere }
        let wrongHost = try await sync(other.urls?.first) { $0.rootCertificates = authority.certs }
        #expect(wrongHost.error?.code == .tlsCertUntrusted)
        #expect(wrongHost.error?.message.contains("127.0.0.1") == true)
        await other.stop()
    }

    @Test func `a self-signed certificate may be a root of its own, for the hosts that it names`()
        async throws
    {
        for (address, code) in [("127.0.0.1", nil), ("192.0.2.1", LoveseatError.Code.tlsCertUntrusted)] {
            let own = try identity("own", address: address)
            let listener = try await serve { $0.tlsIdentity = own }
            let result = try await sync(listener.urls?.first) { $0.rootCertificates = own.certs }
            #expect(result.error?.code == code)
            await listener.stop()
        }
    }

    @Test func `a self-signed certificate needs to be expected`() async throws {
        let listener = try await serve()
        let error = try await sync(listener.urls?.first).error
        #expect(error?.code == .tlsCertUnknownRoot)
        #expect(error?.message.contains("self-signed") == true)
        await listener.stop()
    }

    @Test func `the wrong scheme is said to be wrong, on both sides`() async throws {
        let secure = try await serve()
        let clear = try await serve { $0.disableTLS = true }
        let toSecure = try await sync(URL(string: "ws://127.0.0.1:\(secure.port ?? 0)/far"))
        #expect(toSecure.error?.code.value == 10_400)
        #expect(toSecure.error?.message.contains("wss://") == true)
        let toClear = try await sync(URL(string: "wss://127.0.0.1:\(clear.port ?? 0)/far"))
        #expect(toClear.error?.code == .tlsHandshakeFailed)
        #expect(toClear.error?.message.contains("ws://") == true)
        #expect(toClear.server == nil)
        await secure.stop()
        await clear.stop()
    }

    @Test func `an answer that is TLS's is recognised over a clear connection`() async throws {
        let alert = String(decoding: [0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28] as [UInt8], as: UTF8.self)
        let server = try await ScriptedServer { _, _ in alert }
        let plain = try await sync(URL(string: "ws://127.0.0.1:\(server.port)/db"))
        #expect(plain.error?.code == .webSocketProtocolError)
        #expect(plain.error?.message.contains("wss://") == true)
    }

    // MARK: Client certificates

    @Test func `clients are admitted by their certificate's authority`() async throws {
        let authority = try identity("CA", .certificateAuthority, address: nil)
        let member = try identity("ana", .clientAuth, address: nil, issuer: authority)
        let stranger = try identity("eve", .clientAuth, address: nil)
        let listener = try await serve {
            $0.authenticator = ListenerCertificateAuthenticator(rootCertificates: authority.certs)
        }
        func attempt(_ authenticator: (any Authenticator)?) async throws -> LoveseatError? {
            try await sync(listener.urls?.first) {
                $0.acceptOnlySelfSignedServerCertificate = true
                $0.authenticator = authenticator
            }.error
        }
        #expect(try await attempt(ClientCertificateAuthenticator(identity: member)) == nil)
        #expect(
            try await attempt(ClientCertificateAuthenticator(identity: stranger))?.code
                == .tlsClientCertRejected
        )
        #expect(try await attempt(nil)?.code == .tlsClientCertRequired)
        #expect(
            try await attempt(BasicAuthenticator(username: "a", password: "b"))?.code
                == .tlsClientCertRequired
        )
        await listener.stop()
    }

    @Test func `clients are admitted by a closure over their chain, their own certificate first`()
        async throws
    {
        let authority = try identity("CA", .certificateAuthority, address: nil)
        let seen = NIOLockedValueBox<[[TLSCertificate]]>([])
        let listener = try await serve {
            $0.authenticator = ListenerCertificateAuthenticator { chain in
                seen.withLockedValue { $0.append(chain) }
                return chain.first?.commonName == "ana"
            }
        }
        for (name, expected) in [("ana", nil), ("eve", LoveseatError.Code.tlsClientCertRejected)] {
            let client = try identity(name, .clientAuth, address: nil, issuer: authority)
            let result = try await sync(listener.urls?.first) {
                $0.acceptOnlySelfSignedServerCertificate = true
                $0.authenticator = ClientCertificateAuthenticator(identity: client)
            }
            #expect(result.error?.code == expected)
            #expect(seen.withLockedValue { $0.last } == client.certs)
        }
        await listener.stop()
    }

    @Test func `certificates need TLS, and a password listener asks for a password`() async throws {
        let clear = try await #require(throws: LoveseatError.self) {
            _ = try await serve {
                $0.disableTLS = true
                $0.authenticator = ListenerCertificateAuthenticator { _ in true }
            }
        }
        #expect(clear.code == .invalidParameter)
        let client = try identity("ana", .clientAuth, address: nil)
        let passwords = ListenerPasswordAuthenticator { user, password in
            await Task.yield()
            return user == "ana" && ListenerPasswordAuthenticator.isEqual(password, "s3cret")
        }
        for disablesTLS in [false, true] {
            let listener = try await serve {
                $0.authenticator = passwords
                $0.disableTLS = disablesTLS
            }
            func attempt(_ authenticator: (any Authenticator)?) async throws -> LoveseatError.Code? {
                try await sync(listener.urls?.first) {
                    $0.acceptOnlySelfSignedServerCertificate = true
                    $0.authenticator = authenticator
                }.error?.code
            }
            #expect(try await attempt(ClientCertificateAuthenticator(identity: client)) == .httpAuthRequired)
            #expect(try await attempt(nil) == .httpAuthRequired)
            #expect(
                try await attempt(BasicAuthenticator(username: "ana", password: "wrong")) == .httpAuthRequired
            )
            #expect(try await attempt(BasicAuthenticator(username: "ana", password: "s3cret")) == nil)
            await listener.stop()
        }
    }

    @Test func `a large blob crosses TLS both ways`() async throws {
        let content = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for database in [near, far] {
            let blob = try database.saveBlob(content + Array(database.name.utf8), contentType: "image/jpeg")
            try database.defaultCollection().save(Document(id: "blob-\(database.name)", ["blob": blob.json]))
        }
        let listener = try await serve()
        let result = try await sync(listener.urls?.first) { $0.acceptOnlySelfSignedServerCertificate = true }
        #expect(result.error == nil)
        #expect(try near.defaultCollection().contents() == far.defaultCollection().contents())
        await listener.stop()
    }
}
