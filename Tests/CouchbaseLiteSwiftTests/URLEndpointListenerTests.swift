import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct URLEndpointListenerTests {
    private let world: World

    init() throws { world = try World() }

    private func configuration() -> URLEndpointListenerConfiguration {
        var config = URLEndpointListenerConfiguration(collections: [world.sights])
        config.networkInterface = "127.0.0.1"
        config.disableTLS = true
        return config
    }

    @Test func `the defaults are as documented`() {
        let config = URLEndpointListenerConfiguration(collections: [world.sights])
        #expect(config.port == 0)
        #expect(config.networkInterface == nil)
        #expect(!config.disableTLS)
        #expect(!config.readOnly)
        #expect(!config.enableDeltaSync)
        #expect(config.tlsIdentity == nil)
        #expect(config.authenticator == nil)
        #expect(config.collections == [world.sights])
    }

    @Test func `a listener has a port and URLs while it runs`() throws {
        let listener = URLEndpointListener(config: configuration())
        #expect(listener.port == nil)
        #expect(listener.urls == nil)
        for _ in 0..<2 {
            try listener.start()
            let port = try #require(listener.port)
            #expect(listener.urls == [try #require(URL(string: "ws://127.0.0.1:\(port)/trips"))])
            #expect(listener.tlsIdentity == nil)
            #expect(listener.status.connectionCount == 0)
            #expect(listener.status.activeConnectionCount == 0)
            listener.stop()
            #expect(listener.port == nil)
            #expect(listener.urls == nil)
        }
        listener.stop()
    }

    @Test func `a port that is in use is reported with the system's code`() throws {
        let first = URLEndpointListener(config: configuration())
        try first.start()
        defer { first.stop() }
        var config = configuration()
        config.port = first.port
        let second = URLEndpointListener(config: config)
        let error = #expect(throws: (any Error).self) { try second.start() }.map { $0 as NSError }
        #expect(error?.domain == NSPOSIXErrorDomain)
        #expect(error?.code == Int(POSIXErrorCode.EADDRINUSE.rawValue))
        #expect(second.port == nil)
    }

    @Test func `an interface that does not exist is an unknown host`() {
        var config = configuration()
        config.networkInterface = "sofa0"
        expectError(CBLError.unknownHost) { try URLEndpointListener(config: config).start() }
    }

    @Test func `closing the database stops the listener`() throws {
        let listener = URLEndpointListener(config: configuration())
        try listener.start()
        try world.database.close()
        #expect(listener.port == nil)
        expectError(CBLError.notOpen) { try listener.start() }
    }

    @Test func `a listener shows the identity that it was given`() throws {
        let label = "test-\(UUID().uuidString)"
        defer { try? TLSIdentity.deleteIdentity(withLabel: label) }
        let identity = try TLSIdentity.createIdentity(
            for: .serverAuth,
            attributes: [certAttrCommonName: "Sofa"],
            label: label
        )
        var config = configuration()
        config.disableTLS = false
        config.tlsIdentity = identity
        let listener = URLEndpointListener(config: config)
        #expect(listener.tlsIdentity == nil)
        try listener.start()
        #expect(listener.tlsIdentity === identity)
        #expect(listener.urls?.first?.scheme == "wss")
        listener.stop()
        #expect(listener.tlsIdentity == nil)
    }

    @Test func `a certificate authenticator needs TLS`() {
        var config = configuration()
        config.authenticator = ListenerCertificateAuthenticator { _ in true }
        expectError(CBLError.invalidParameter) { try URLEndpointListener(config: config).start() }
    }
}
