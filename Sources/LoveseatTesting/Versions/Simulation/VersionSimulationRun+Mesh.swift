import LoveseatModel
import LoveseatStorage

/// Creates the parties of a history with versions, and draws who connects to whom.
extension VersionSimulationRun {
    private static let parties = 3...8

    func mixes(_ ingredient: VersionSimulation.Ingredient) -> Bool {
        simulation.mixture.contains(ingredient)
    }

    /// Whether some links between Loveseats may speak CouchDB's wire.
    private var mixesWires: Bool { mixes(.couchdb) && simulation.wire != nil }

    func makeParties() throws {
        let count = dice.int(2...5)
        let plain = mixes(.plain) ? dice.int(0...2) : dice.chance(0.3) ? 1 : 0
        for index in 0..<count + plain {
            mesh.peers.append(
                try SimulatedPeer(
                    index: index,
                    collections: [.default],
                    blobFolder: "\(folder.path)/\(index)",
                    seed: dice.next(),
                    clock: clock,
                    isHub: index >= count,
                    runsTasksInPlace: mixesWires
                )
            )
        }
        let hasGateway = mixes(.gateway) && dice.chance(0.5)
        for number in 0..<dice.int(liteCounts(beside: count + plain + (hasGateway ? 1 : 0))) {
            let source = SourceID(high: dice.next() | 1, low: dice.next())
            let release = dice.chance(0.5) ? LiteRelease.release40 : .release41
            mesh.lites.append(LitePeer(index: count + plain + number, release, clock, source: source))
        }
        // Versions that are more than two minutes ahead are refused.
        if dice.chance(0.7) {
            for peer in peers { peer.setClock(Int64(dice.int(-55_000...55_000))) }
            for lite in lites { lite.wall.offset = Int64(dice.int(-55_000...55_000)) }
        }
        habits.merges = dice.chance(0.2)
        habits.purges = dice.chance(0.2)
        if hasGateway { makeGateway() }
        report.peers = mesh.count
        trace("\(count) Loveseats, \(plain) hubs, Couchbase Lite \(lites.map(\.database.release))")
        if hasGateway { trace("a gateway") }
    }

    private func liteCounts(beside others: Int) -> ClosedRange<Int> {
        if simulation.mixture.isEmpty { return 1...3 }
        let fewest = max(0, Self.parties.lowerBound - others)
        return fewest...max(fewest, min(3, Self.parties.upperBound - others))
    }

    private func makeGateway() {
        let twin = GatewayTwin(seed: dice.next())
        let database = VersionMesh.Gateway.makeDatabase(keepsOldBodies: dice.chance(0.5))
        twin.databases[VersionMesh.Gateway.database] = database
        var basis = GatewayLink.Plan()
        basis.merges = merges
        let traffic = GatewayTraffic(
            twin,
            database: VersionMesh.Gateway.database,
            basis: basis,
            gatewaySurroundings
        )
        mesh.gateway = VersionMesh.Gateway(mesh.count, traffic, loveseats: mesh.loveseats)
    }

    // MARK: Edges

    func makeEdges() {
        let loveseats = mesh.loveseats.count
        func addEitherWay(_ one: Int, _ other: Int) {
            if dice.chance(0.5) { mesh.connect(one, other) } else { mesh.connect(other, one) }
        }
        for index in 1..<loveseats { addEitherWay(index, dice.int(0...index - 1)) }
        for _ in 0..<dice.int(0...loveseats) {
            let (one, other) = (dice.int(0...loveseats - 1), dice.int(0...loveseats - 1))
            if one != other { mesh.connect(one, other) }
        }
        // No other edges are between two Loveseats.
        if mixesWires { mesh.wireEdges = drawnWireEdges() }
        for hub in peers where hub.isHub {
            for source in 0..<loveseats where source == 0 || dice.chance(0.5) {
                if mixes(.plain) {
                    addEitherWay(source, hub.index)
                    if dice.chance(0.2) { addEitherWay(source, hub.index) }
                } else {
                    mesh.connect(source, hub.index)
                }
            }
        }
        for lite in lites {
            let first = dice.int(0...loveseats - 1)
            for other in 0..<loveseats where other == first || dice.chance(0.3) {
                addEitherWay(lite.index, other)
                if dice.chance(0.2) { addEitherWay(lite.index, other) }
            }
        }
        if let gateway = mesh.gateway {
            let first = dice.int(0...loveseats - 1)
            for source in 0..<loveseats where source == first || dice.chance(0.5) {
                mesh.connect(source, gateway.index)
            }
        }
        trace("edges \(mesh.edges.map { "\($0.source)>\($0.target)" })")
        if !mesh.wireEdges.isEmpty {
            let wires = mesh.edges.filter(mesh.wireEdges.contains)
            trace("other wire: \(wires.map { "\($0.source)>\($0.target)" })")
        }
    }

    private func drawnWireEdges() -> Set<Edge> {
        if dice.chance(0.5) { return [] }
        return Set(mesh.edges.filter { _ in dice.chance(0.5) })
    }
}
