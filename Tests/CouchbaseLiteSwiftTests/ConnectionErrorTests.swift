import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

/// Connections that fail, and the errors and statuses that apps see.
@Suite(.ownThreads) struct ConnectionErrorTests {
    private let pair: ReplicaPair

    init() throws { pair = try ReplicaPair() }

    private func config(_ url: String, attempts: UInt = 1) throws -> ReplicatorConfiguration {
        var config = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: pair.ours)],
            target: URLEndpoint(url: try #require(URL(string: url)))
        )
        config.maxAttempts = attempts
        config.maxAttemptWaitTime = 0.05
        return config
    }

    private func listener() throws -> URLEndpointListener {
        var config = URLEndpointListenerConfiguration(collections: [pair.theirs])
        config.networkInterface = "127.0.0.1"
        config.disableTLS = true
        let listener = URLEndpointListener(config: config)
        try listener.start()
        return listener
    }

    @Test(arguments: [1, 2])
    func `every failed attempt but the last is a status offline`(attempts: Int) async throws {
        let observed = try await pair.replicate(config("ws://127.0.0.1:1/peer", attempts: UInt(attempts)))
        #expect(observed.error?.domain == NSPOSIXErrorDomain)
        #expect(observed.error?.code == Int(ECONNREFUSED))
        #expect(observed.statuses.all.count { $0.activity == .offline } == attempts - 1)
        #expect(observed.stops == 1)
    }

    @Test func `a listener that stops ends its replicators with webSocketGoingAway`() async throws {
        let listener = try listener()
        var config = try config(try #require(listener.urls?.first).absoluteString)
        config.continuous = true
        config.maxAttempts = 1
        let observed = Observed(config)
        observed.replicator.start()
        try await eventually { observed.isAt(.idle) }
        listener.stop()
        try await eventually { observed.isAt(.stopped) }
        #expect(observed.error?.domain == CBLError.domain)
        #expect(observed.error?.code == CBLError.webSocketGoingAway)
    }

    @Test func `a database that the listener does not have is httpNotFound`() async throws {
        let listener = try listener()
        let port = try #require(listener.port)
        let observed = try await pair.replicate(config("ws://127.0.0.1:\(port)/nowhere"))
        #expect(observed.error?.code == CBLError.httpNotFound)
        listener.stop()
    }

    @Test func `a replicator connects through the proxy that is set`() async throws {
        let listener = try listener()
        var config = try config(try #require(listener.urls?.first).absoluteString)
        config.proxyURL = URL(string: "http://ada:secret@127.0.0.1:1")
        let observed = try await pair.replicate(config)
        // The peer is there, and the proxy is not.
        #expect(observed.error?.domain == NSPOSIXErrorDomain)
        #expect(observed.error?.code == Int(ECONNREFUSED))
        listener.stop()
    }
}
