import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatTesting
import Testing

/// Databases, each with a listener of CouchDB's wire, and links of either wire between them.
struct PeerMesh {
    struct Link {
        let active: Int
        let passive: Int
        let isCouch: Bool

        var description: String { "link \(active) > \(passive) \(isCouch ? "CouchDB" : "BLIP")" }
    }

    let peers: [ActiveSide]
    let listeners: [CouchDBListener]

    init(_ count: Int) async throws {
        var (peers, listeners): ([ActiveSide], [CouchDBListener]) = ([], [])
        for index in 0..<count {
            let peer = try ActiveSide("peer\(index)")
            var configuration = CouchDBListenerConfiguration(database: peer.database)
            configuration.disableTLS = true
            configuration.networkInterface = "127.0.0.1"
            let listener = CouchDBListener(configuration)
            try await listener.start()
            peers.append(peer)
            listeners.append(listener)
        }
        (self.peers, self.listeners) = (peers, listeners)
    }

    /// A link between two peers, in one of both directions.
    static func link(_ one: Int, _ other: Int, isCouch: Bool, isForward: Bool) -> Link {
        Link(active: isForward ? one : other, passive: isForward ? other : one, isCouch: isCouch)
    }

    func configuration(_ link: Link, _ type: ReplicatorType, over network: FaultyTransport? = nil) throws
        -> ReplicatorConfiguration
    {
        let active = peers[link.active]
        guard link.isCouch else {
            var configuration = ReplicatorConfiguration(
                collections: [try active.collection],
                target: DatabaseEndpoint(database: peers[link.passive].database)
            )
            configuration.replicatorType = type
            configuration.maxAttempts = 1
            return configuration
        }
        let port = try #require(listeners[link.passive].port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/peer\(link.passive)"))
        var endpoint = CouchDBEndpoint(url: url)
        endpoint.transport = network
        return try active.configuration(endpoint, type)
    }

    /// Every leaf of these documents, the winner first, by peer. `closing`: also the tombstones with which losing leaves are shown.
    func states(of documents: [String], closing: Bool = true) throws -> [[String: [String]]] {
        try peers.map { peer in
            var state: [String: [String]] = [:]
            for id in documents {
                let leaves = try peer.leaves(id, closing: closing)
                if !leaves.isEmpty { state[id] = leaves }
            }
            return state
        }
    }

    func end() async { for listener in listeners { await listener.stop() } }
}
