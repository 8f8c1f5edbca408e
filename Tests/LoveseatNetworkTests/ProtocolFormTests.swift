import Foundation
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// The form of the protocol on which both sides of a connection agree. Numbers are those of version-vectors.md §18 (Tests/VERSIONS.md).
struct ProtocolFormTests {
    /// A URL whose client offers only some forms, and the forms that were agreed on.
    private struct PlainEndpoint: BLIPEndpoint {
        let endpoint: URLEndpoint
        let offers: [ReplicationProtocol]
        let agreed = NIOLockedValueBox<[ReplicationProtocol?]>([])

        var remoteName: String { endpoint.remoteName }

        func validate() throws(LoveseatError) { try endpoint.validate() }

        func networkChanges() -> AsyncStream<Void>? { nil }

        func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
            var options = options
            options.offers = offers
            let connection = try await endpoint.connect(options)
            agreed.withLockedValue { $0.append(connection.negotiated) }
            return connection
        }
    }

    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func replicator(_ database: Database, _ target: PlainEndpoint) throws -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [try database.defaultCollection()],
            target: target
        )
        configuration.continuous = true
        return Replicator(configuration)
    }

    @Test
    func `29: a client offers versions between the two forms with trees, and prefers trees with a Loveseat`()
        async throws
    {
        let server = try await ScriptedServer { _, _ in nil }
        let database = try scratch.database("near")
        let url = try #require(URL(string: "ws://127.0.0.1:\(server.port)/db"))
        var configuration = ReplicatorConfiguration(
            collections: [try database.defaultCollection()],
            target: URLEndpoint(url)
        )
        configuration.maxAttempts = 1
        let replicator = Replicator(configuration)
        replicator.start()
        _ = await replicator.waitUntilStopped()
        let lines = server.requests.withLockedValue { $0 }.first?.split(separator: "\r\n") ?? []
        let offers = "BLIP_3+CBMobile_3,BLIP_3+CBMobile_4,BLIP_3+CBMobile_2"
        #expect(lines.contains("Sec-WebSocket-Protocol: \(offers)"))
        #expect(lines.contains("Loveseat: trees"))
    }

    @Test func `32: a listener serves clients with trees and with versions at once`() async throws {
        let far = try scratch.database("far")
        let there = try far.defaultCollection()
        try there.save(Document(id: "before", ["n": 0]))
        var configuration = URLEndpointListenerConfiguration(collections: [there])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        // A machine that is busy with other tests must not look like a silent client.
        configuration.handshakeSeconds = 600
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        let url = try #require(listener.urls?.first)
        let forms: [ReplicationProtocol] = [.mobile3, .mobile4]
        let databases = try forms.map { try scratch.database("near-\($0)") }
        let endpoints = forms.map { PlainEndpoint(endpoint: URLEndpoint(url), offers: [$0]) }
        let replicators = try zip(databases, endpoints).map { try replicator($0, $1) }
        for replicator in replicators { replicator.start() }
        for (database, form) in zip(databases, forms) {
            try database.defaultCollection().save(Document(id: "\(form)", ["n": 1]))
        }
        // Both connections stay open, and each carries what came over the other one.
        for database in databases {
            let here = try database.defaultCollection()
            try await eventually("the documents of all") { here.count == 3 }
        }
        var document = try #require(try there.document(id: "before"))
        document["n"] = 2
        try there.save(document)
        for database in databases {
            let here = try database.defaultCollection()
            try await eventually("the edit") { try here.document(id: "before")?["n"]?.int == 2 }
        }
        #expect(endpoints.map { $0.agreed.withLockedValue { $0 } } == [[.mobile3], [.mobile4]])
        for replicator in replicators {
            replicator.stop()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
        await listener.stop()
    }
}
