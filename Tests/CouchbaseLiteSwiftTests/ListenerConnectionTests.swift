import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Synchronization
import Testing

/// Replicators that connect to a listener.
@Suite(.ownThreads) final class ListenerConnectionTests {
    private let world: World
    private let other: World
    private let labels = Mutex<[String]>([])

    init() throws { (world, other) = (try World(), try World()) }

    deinit { for label in labels.withLock({ $0 }) { try? TLSIdentity.deleteIdentity(withLabel: label) } }

    private func identity(_ usages: KeyUsages, issuer: TLSIdentity? = nil) throws -> TLSIdentity {
        let label = "test-\(UUID().uuidString)"
        labels.withLock { $0.append(label) }
        return try TLSIdentity.createIdentity(
            for: usages,
            attributes: [certAttrCommonName: "Sofa", certAttrIPAddress: "127.0.0.1"],
            issuer: issuer,
            label: label
        )
    }

    private func start(
        _ change: (inout URLEndpointListenerConfiguration) throws -> Void
    ) throws -> URLEndpointListener {
        var config = URLEndpointListenerConfiguration(collections: [other.sights])
        config.networkInterface = "127.0.0.1"
        config.disableTLS = true
        try change(&config)
        let listener = URLEndpointListener(config: config)
        try listener.start()
        return listener
    }

    /// Replicates once, and returns the code of the error; 0 for none.
    private func replicate(
        _ listener: URLEndpointListener,
        _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
    ) async throws -> Int {
        var config = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: world.sights)],
            target: URLEndpoint(url: try #require(listener.urls?.first))
        )
        config.maxAttempts = 1
        change(&config)
        let replicator = Replicator(config: config)
        let heard = Heard<Replicator.Status>()
        replicator.addChangeListener(withQueue: heard.queue) { heard.add($0.status) }
        replicator.start()
        try await eventually { heard.all.last?.activity == .stopped }
        return heard.all.last?.error.map { ($0 as NSError).code } ?? 0
    }

    @Test func `a password lets clients in`() async throws {
        try world.sights.save(document: MutableDocument(id: "tower"))
        let listener = try start {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == "ana" && $1 == "secret" }
        }
        defer { listener.stop() }
        #expect(try await replicate(listener) == CBLError.httpAuthRequired)
        #expect(
            try await replicate(listener) {
                $0.authenticator = BasicAuthenticator(username: "ana", password: "secret")
            } == 0
        )
        #expect(try other.sights.document(id: "tower") != nil)
    }

    @Test func `a listener that is read-only refuses what is pushed`() async throws {
        try world.sights.save(document: MutableDocument(id: "tower"))
        let listener = try start { $0.readOnly = true }
        defer { listener.stop() }
        #expect(try await replicate(listener) == CBLError.httpForbidden)
        #expect(try other.sights.document(id: "tower") == nil)
    }

    @Test func `a pinned certificate identifies a listener`() async throws {
        try other.sights.save(document: MutableDocument(id: "louvre"))
        let listener = try start {
            $0.disableTLS = false
            $0.tlsIdentity = try identity(.serverAuth)
        }
        defer { listener.stop() }
        #expect(try await replicate(listener) == CBLError.tlsCertUnknownRoot)
        let certificate = listener.tlsIdentity?.certs.first
        #expect(try await replicate(listener) { $0.pinnedServerCertificate = certificate } == 0)
        #expect(try world.sights.document(id: "louvre") != nil)
    }

    @Test func `a closure gets the certificates of clients`() async throws {
        let client = try identity(.clientAuth)
        let shown = Mutex<[[SecCertificate]]>([])
        let isWelcome = Mutex(false)
        let listener = try start {
            $0.disableTLS = false
            $0.tlsIdentity = try identity(.serverAuth)
            $0.authenticator = ListenerCertificateAuthenticator { chain in
                shown.withLock { $0.append(chain) }
                return isWelcome.withLock { $0 }
            }
        }
        defer { listener.stop() }
        let certificate = listener.tlsIdentity?.certs.first
        func change(_ config: inout ReplicatorConfiguration) {
            config.pinnedServerCertificate = certificate
            config.authenticator = ClientCertificateAuthenticator(identity: client)
        }
        #expect(try await replicate(listener, change) == CBLError.tlsClientCertRejected)
        isWelcome.withLock { $0 = true }
        #expect(try await replicate(listener, change) == 0)
        #expect(shown.withLock { $0 } == [client.certs, client.certs])
    }

    @Test func `a client whose certificate has another root is rejected`() async throws {
        let (client, stranger) = (try identity(.clientAuth), try identity(.clientAuth))
        let listener = try start {
            $0.disableTLS = false
            $0.tlsIdentity = try identity(.serverAuth)
            $0.authenticator = ListenerCertificateAuthenticator(rootCerts: client.certs)
        }
        defer { listener.stop() }
        let certificate = listener.tlsIdentity?.certs.first
        for (identity, code) in [(client, 0), (stranger, CBLError.tlsClientCertRejected)] {
            let found = try await replicate(listener) {
                $0.pinnedServerCertificate = certificate
                $0.authenticator = ClientCertificateAuthenticator(identity: identity)
            }
            #expect(found == code)
        }
    }
}
