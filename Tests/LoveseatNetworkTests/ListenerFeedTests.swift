import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// When the feeds of listeners end by themselves.
struct ListenerFeedTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    private func listener() throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.disableTLS = true
        return URLEndpointListener(configuration)
    }

    private func connect(to listener: URLEndpointListener) async throws -> Replicator {
        let url = try #require(URL(string: "ws://127.0.0.1:\(listener.port ?? 0)/far"))
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(url)
        )
        configuration.continuous = true
        let replicator = Replicator(configuration)
        let statuses = replicator.statuses
        replicator.start()
        for await status in statuses where status.activity == .idle { break }
        return replicator
    }

    @Test(.timeLimit(.minutes(1)))
    func `a listener's feed of peers ends when it stops, after the end of each peer`() async throws {
        let listener = try listener()
        // Each start has its feeds.
        for _ in 0..<3 {
            let changes = listener.peerChanges
            try await listener.start()
            let replicator = try await connect(to: listener)
            await listener.stop()
            var states: [Replicator.ActivityLevel] = []
            for await peer in changes { states.append(peer.status.activity) }
            #expect(states.first == .connecting)
            #expect(states.last == .stopped)
            await replicator.waitUntilStopped()
        }
        // Nobody was there.
        let quiet = listener.peerChanges
        try await listener.start()
        try await far.close()
        for await _ in quiet { Issue.record("nothing happened") }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a listener lists the peers that are connected, until they are gone`() async throws {
        let listener = try listener()
        #expect(listener.peers.isEmpty)
        try await listener.start()
        let replicator = try await connect(to: listener)
        let peer = try #require(listener.peers.first)
        #expect(listener.peers.count == 1)
        #expect(peer.status.activity != .stopped)
        let changes = listener.peerChanges
        replicator.stop()
        for await peer in changes where peer.status.activity == .stopped { break }
        #expect(listener.peers.isEmpty)
        await listener.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a listener reports the documents that it refuses, with the filter's error`() async throws {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.disableTLS = true
        configuration.incomingFilter = { _, document, _ in
            document.id == "bad" ? LoveseatError(.httpForbidden, "not this one") : nil
        }
        let listener = URLEndpointListener(configuration)
        let failures = listener.failures
        try await listener.start()
        try near.defaultCollection().save(Document(id: "good"))
        try near.defaultCollection().save(Document(id: "bad"))
        let replicator = try await connect(to: listener)
        var found: ListenerFailure?
        for await failure in failures {
            found = failure
            break
        }
        #expect(found?.documentID == "bad")
        #expect(found?.isPush == false)
        #expect(found?.collection == CollectionName.default)
        #expect(found?.error.message.contains("not this one") == true)
        replicator.stop()
        await replicator.waitUntilStopped()
        await listener.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a listener's feed of peers ends when nobody has the listener any more`() async throws {
        let changes = try { try listener().peerChanges }()
        for await _ in changes {}
    }

    @Test(.timeLimit(.minutes(1)))
    func `the feed of a message endpoint listener ends with its database, or with the listener`() async throws
    {
        func listener(_ database: Database) throws -> MessageEndpointListener {
            MessageEndpointListener(
                MessageEndpointListenerConfiguration(
                    collections: [try database.defaultCollection()],
                    protocolType: .messageStream
                )
            )
        }
        let changes = try { try listener(near).changes }()
        for await _ in changes {}
        let kept = try listener(far)
        let last = kept.changes
        try await far.close()
        for await _ in last {}
        for await _ in kept.changes {}
    }

    @Test(.timeLimit(.minutes(1)))
    func `the events of a pairing code end with its validity, though nobody has the authenticator any more`()
        async throws
    {
        let events = try await {
            let authenticator = ListenerPairingAuthenticator(database: far)
            var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
            configuration.networkInterface = "127.0.0.1"
            configuration.authenticator = authenticator
            configuration.tlsIdentity = try TLSIdentity.createIdentity(
                for: .serverAuth,
                attributes: [certAttrCommonName: "kiosk"],
                label: nil
            )
            let listener = URLEndpointListener(configuration)
            try await listener.start()
            let (_, events) = try authenticator.makeCode(for: listener, validFor: 0.2)
            await listener.stop()
            return events
        }()
        for await _ in events {}
    }
}
