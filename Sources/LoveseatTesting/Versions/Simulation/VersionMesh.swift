import LoveseatModel

/// The parties of a history with versions, and who connects to whom.
///
/// Parties have numbers: Loveseats first, then plain peers, then peers of Couchbase Lite 4, and last the gateway.
struct VersionMesh {
    /// The two ends of an edge.
    enum Link {
        case lite(SimulatedPeer, LitePeer, isLiteActive: Bool)
        case gateway(Gateway, GatewayClient)
        /// Two Loveseats, or a Loveseat and a plain peer.
        case peers
    }

    /// A Sync Gateway, and its clients by the numbers of their Loveseats.
    struct Gateway {
        /// The name of its database.
        static let database = "db"
        private static let user = "ana"
        /// All documents are in it.
        private static let channel = "all"

        let index: Int
        let traffic: GatewayTraffic
        let clients: [GatewayClient]

        /// Creates a database of which the only user sees everything.
        static func makeDatabase(keepsOldBodies: Bool) -> GatewayDatabase {
            var options = GatewayDatabase.Options()
            options.keepsOldBodies = keepsOldBodies
            var database = GatewayDatabase(sync: { $0.channel(.string(channel)) }, options: options)
            let settings = GatewayDatabase.PrincipalSettings(
                channels: ["_default": [channel]],
                password: GatewayTraffic.password
            )
            database.putUser(user, settings)
            return database
        }

        init(_ index: Int, _ traffic: GatewayTraffic, loveseats: [SimulatedPeer]) {
            (self.index, self.traffic) = (index, traffic)
            clients = loveseats.map { GatewayClient($0, user: Self.user) }
        }

        func document(_ id: String) -> GatewayDocument? {
            traffic.database?.keyspaces[GatewayDatabase.defaultKeyspace]?.documents[id]
        }

        /// The content of a document; nil if it is deleted, or not there.
        func content(of id: String) -> JSONValue? {
            traffic.database?.content(of: id, for: Self.user).map { .object($0.body) }
        }
    }

    /// Loveseats, and plain peers behind them, which use the protocol without our extensions.
    var peers: [SimulatedPeer] = []
    var lites: [LitePeer] = []
    var gateway: Gateway?
    var edges: [Edge] = []
    /// The edges between Loveseats that speak CouchDB's wire.
    var wireEdges: Set<Edge> = []

    var loveseats: [SimulatedPeer] { peers.filter { !$0.isHub } }
    var count: Int { peers.count + lites.count + (gateway == nil ? 0 : 1) }

    func lite(_ index: Int) -> LitePeer? {
        let number = index - peers.count
        return lites.indices.contains(number) ? lites[number] : nil
    }

    /// The two ends of an edge, of which one at least is a Loveseat.
    func link(_ edge: Edge) -> Link {
        if let gateway, edge.target == gateway.index {
            return .gateway(gateway, gateway.clients[edge.source])
        }
        if let lite = lite(edge.source) { return .lite(peers[edge.target], lite, isLiteActive: true) }
        if let lite = lite(edge.target) { return .lite(peers[edge.source], lite, isLiteActive: false) }
        return .peers
    }

    /// The numbers of the accidents that may happen here: of peers of Couchbase Lite 4, of links, and of the gateway.
    var disturbances: ClosedRange<Int> { (lites.isEmpty ? 1 : 0)...(gateway == nil ? 1 : 2) }

    /// Adds a connection, once.
    mutating func connect(_ source: Int, _ target: Int) {
        let edge = Edge(source, target)
        if !edges.contains(edge) { edges.append(edge) }
    }
}
