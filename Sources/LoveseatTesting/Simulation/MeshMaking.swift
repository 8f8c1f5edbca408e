import LoveseatModel
import LoveseatStorage

/// Creates the peers of a history, and draws who connects to whom, and how.
struct MeshMaking: HistoryPart {
    unowned let run: SimulationRun

    func make() throws {
        let small = dice.history.chance(0.7)
        journal.report.peers =
            small
            ? dice.history.int(2...min(4, simulation.maximumPeers))
            : dice.history.int(2...simulation.maximumPeers)
        if simulation.wire != nil { journal.report.peers = min(journal.report.peers, 4) }
        // Twins have a peer in common.
        if worlds.contains(.twins) { journal.report.peers = max(journal.report.peers, 3) }
        if !worlds.isDisjoint(with: [.thousands, .bodies, .largeConflicts]) {
            journal.report.peers = min(journal.report.peers, 3)
        }
        mesh.merges = dice.history.chance(0.3)
        let names: [CollectionName] =
            dice.history.chance(0.4) && worlds.isDisjoint(with: [.collections, .namesakes])
            ? [.default]
            : [CollectionName(scope: "s", name: "one"), CollectionName(scope: "s", name: "two")].compactMap {
                $0
            }
        for index in 0..<journal.report.peers {
            let peer = try SimulatedPeer(
                index: index,
                collections: names,
                blobFolder: "\(run.folder.path)/\(index)",
                seed: dice.history.next(),
                clock: clock,
                revisionDepth: drawnDepth(),
                fault: simulation.fault,
                runsTasksInPlace: simulation.wire != nil
            )
            mesh.peers.append(peer)
            guard index > 0 else { continue }
            // A spanning tree keeps everybody reachable, in either direction; further edges make rings and cliques.
            let other = dice.history.int(0...index - 1)
            mesh.edges.append(dice.history.chance(0.5) ? Edge(index, other) : Edge(other, index))
        }
        try makeHubs(names)
        for _ in 0..<dice.history.int(0...journal.report.peers) {
            let (source, target) = (
                dice.history.int(0...journal.report.peers - 1), dice.history.int(0...journal.report.peers - 1)
            )
            if source != target, !mesh.edges.contains(Edge(source, target)) {
                mesh.edges.append(Edge(source, target))
            }
        }
        try makeGuests(names)
        drawWires()
        try makeCouch(names)
        try makeUsers(names)
        drawVerdicts()
    }

    /// Peers of CouchDB's wire cannot tell that a leaf was edited if the history between was cut off.
    private func drawnDepth() -> Int {
        let depth = dice.extras.pick([RevisionTree.maximumDepth, RevisionTree.maximumDepth, 4])
        return simulation.wire == nil ? depth : RevisionTree.maximumDepth
    }

    private func makeHubs(_ names: [CollectionName]) throws {
        for _ in 0..<mesh.hubs {
            let index = peers.count
            let hub = try SimulatedPeer(
                index: index,
                collections: names,
                blobFolder: "\(run.folder.path)/\(index)",
                seed: dice.extras.next(),
                clock: clock,
                isHub: true,
                runsTasksInPlace: simulation.wire != nil
            )
            for source in 0..<journal.report.peers
            where dice.extras.chance(0.6) || source == index % journal.report.peers {
                mesh.edges.append(Edge(source, index))
            }
            mesh.peers.append(hub)
            oracle.hubs.insert(index)
        }
    }

    // MARK: Special peers and links

    private func makeGuests(_ names: [CollectionName]) throws {
        for world in [SimulatedWorld.filters, .access] where worlds.contains(world) {
            for _ in 0..<dice.worlds.int(1...2) { try makeGuest(names, isRestricted: world == .access) }
        }
    }

    private func makeGuest(_ names: [CollectionName], isRestricted: Bool) throws {
        let peer = try SimulatedPeer(
            index: peers.count,
            collections: names,
            blobFolder: "\(run.folder.path)/\(peers.count)",
            seed: dice.worlds.next(),
            clock: clock
        )
        let host = dice.worlds.int(0...journal.report.peers - 1)
        let order = (0..<SimulatedGuest.classes).shuffled(using: &dice.worlds)
        let first = Set(order.prefix(dice.worlds.int(1...2)))
        let guest = SimulatedGuest(
            peer,
            host: host,
            isRestricted: isRestricted,
            rights: SimulatedRights(isByBody: dice.worlds.chance(0.5), read: first, write: first),
            lastFilter: Set(order.prefix(dice.worlds.int(2...4))),
            keepsVersion: simulation.fault == .forgetFilterVersion
        )
        mesh.peers.append(peer)
        mesh.guests.append(guest)
        mesh.edges.append(Edge(peer.index, host))
        // A policy checks a deletion by what was deleted.
        if isRestricted { try peers[host].store.keepDeletedBodies() }
    }

    private func drawWires() {
        if simulation.wire == nil { return }
        // A hub speaks Couchbase's protocol only: over another wire, it would be one more Loveseat.
        mesh.foreignEdges = Set(mesh.edges.filter { dice.wire.chance(0.7) && !peers[$0.target].isHub })
        trace(
            "other wire: \(mesh.edges.filter { mesh.foreignEdges.contains($0) }.map { "\($0.source)>\($0.target)" })"
        )
    }

    private func makeCouch(_ names: [CollectionName]) throws {
        // Histories of Couchbase's protocol alone have none.
        guard worlds.contains(.couch), let wire = simulation.wire else { return }
        let index = peers.count
        let couch = try SimulatedPeer(
            index: index,
            collections: names,
            blobFolder: "\(run.folder.path)/\(index)",
            seed: dice.untidy.next(),
            clock: clock,
            // Nobody edits, crashes or restores it as if it were a Loveseat.
            isHub: true,
            runsTasksInPlace: true
        )
        couch.foreign = wire.makeForeignDatabases(of: index)
        for source in 0..<journal.report.peers where dice.untidy.chance(0.7) || source == 0 {
            mesh.edges.append(Edge(source, index))
            mesh.foreignEdges.insert(Edge(source, index))
        }
        mesh.peers.append(couch)
    }

    /// Guests of another wire, which only pull.
    private func makeUsers(_ names: [CollectionName]) throws {
        if !worlds.contains(.rights) || simulation.wire == nil { return }
        let host = dice.wire.int(0...journal.report.peers - 1)
        for _ in 0..<dice.wire.int(1...2) {
            let peer = try SimulatedPeer(
                index: peers.count,
                collections: names,
                blobFolder: "\(run.folder.path)/\(peers.count)",
                seed: dice.wire.next(),
                clock: clock,
                runsTasksInPlace: true
            )
            let classes = Set((0..<SimulatedGuest.classes).shuffled(using: &dice.wire).prefix(2))
            let user = SimulatedGuest(
                peer,
                host: host,
                isRestricted: true,
                rights: SimulatedRights(isByBody: dice.wire.chance(0.5), read: classes, write: []),
                lastFilter: classes,
                keepsVersion: false,
                onlyPulls: true
            )
            mesh.peers.append(peer)
            mesh.guests.append(user)
            mesh.edges.append(Edge(peer.index, host))
            mesh.foreignEdges.insert(Edge(peer.index, host))
        }
        // A policy decides about a deletion by what was deleted.
        try peers[host].store.keepDeletedBodies()
    }

    private func drawVerdicts() {
        if !worlds.contains(.verdicts) { return }
        let shared = dice.worlds.chance(0.2) ? dice.worlds.pick(SimulatedVerdict.allCases) : nil
        for peer in peers where !peer.isHub && !mesh.isGuest(peer) {
            let verdict = dice.worlds.pick(SimulatedVerdict.allCases)
            mesh.verdicts[peer.index] = shared ?? verdict
        }
        trace("verdicts \(mesh.verdicts.sorted { $0.key < $1.key }.map(\.value))")
    }
}
