import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The events in histories besides edits, connections and crashes.
extension SimulationRun {
    func scheduleWorlds() {
        if worlds.contains(.thousands) { scheduleThousands() }
        if worlds.contains(.addresses) { scheduleAddresses() }
        if worlds.contains(.collections) { scheduleRemakes() }
        for guest in guests { schedule(guest) }
        if worlds.contains(.network) { scheduleNetwork() }
        if worlds.contains(.bodies) { scheduleBodies() }
        if worlds.contains(.verdicts) { scheduleVerdicts() }
    }

    func at(_ times: ClosedRange<Int>, _ event: @escaping () throws -> Void) {
        clock.schedule(after: worldDice.int(times)) { [unowned self] in
            do { try event() } catch { report.problems.append("an event failed: \(error)") }
        }
    }

    // MARK: Thousands of documents

    private func scheduleThousands() {
        let count = worldDice.int(1_000...5_000)
        at(0...0) { [unowned self] in
            trace("\(count) documents")
            try saveMany(peers[0], Array(0..<count), version: 0)
        }
        let busiest = edges.filter { $0.source == 0 || $0.target == 0 }
        for edge in busiest { at(1...100) { [unowned self] in open(edge, SimulatedConnection.Plan()) } }
        let editors = Set([0] + busiest.flatMap { [$0.source, $0.target] }).sorted().prefix(3)
        for editor in editors {
            at(12_000...13_000) { [unowned self] in
                let edited = (0..<count).filter { _ in worldDice.chance(0.6) }
                trace("\(editor) edits \(edited.count) documents")
                try saveMany(peers[editor], edited, version: editor + 1)
            }
        }
        at(13_001...13_001) { [unowned self] in
            for edge in movable(busiest) { addresses[edge] = address(of: edge, "new") }
        }
        for edge in busiest { at(13_002...14_000) { [unowned self] in connect(edge) } }
    }

    private func saveMany(_ peer: SimulatedPeer, _ numbers: [Int], version: Int) throws {
        try peer.store.write { transaction in
            for number in numbers {
                let body: JSONValue = [
                    "n": JSONValue(number), "by": JSONValue(peer.index), "v": JSONValue(version),
                ]
                _ = try transaction.save(
                    "many\(number)",
                    in: peer.collections[0],
                    body: JSONText(canonical: body),
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
        }
    }

    // MARK: Addresses

    private func address(of edge: Edge, _ form: String) -> String { "peer-\(edge.target)/\(form)" }

    private func name(of edge: Edge) -> String { addresses[edge] ?? "peer-\(edge.target)" }

    /// A peer gets an address that another one may have, which then gets its own. Sessions under either address end before:
    /// nobody can tell two databases apart that have one address at the same time.
    private func move(_ edge: Edge, from old: String, to new: String) {
        for other in edges where other.source == edge.source && other != edge && name(of: other) == new {
            addresses[other] = old
        }
        addresses[edge] = new
        for connection in connections
        where connection.source.index == edge.source && [old, new].contains(connection.remoteName) {
            connection.cut()
        }
    }

    /// Under a new address a host cannot take back what it gave under the old one: a peer that was never known to have a
    /// document does not take it away.
    private func movable(_ edges: [Edge]) -> [Edge] {
        edges.filter { edge in !guests.contains { $0.isRestricted && $0.peer.index == edge.source } }
    }

    private func scheduleAddresses() {
        let edges = movable(edges)
        for number in 0..<worldDice.int(1...6) {
            let edge = worldDice.pick(edges)
            let others = edges.filter { $0.source == edge.source && $0 != edge }
            let other = others.isEmpty ? nil : worldDice.pick(others)
            let kind = worldDice.int(0...3)
            at(0...20_000) { [unowned self] in
                trace("address \(edge.source)>\(edge.target) \(kind)")
                switch kind {
                case 0: move(edge, from: name(of: edge), to: "peer-\(edge.target)")
                case 1: if let other { move(edge, from: name(of: edge), to: name(of: other)) }
                default: addresses[edge] = address(of: edge, "\(number)")
                }
            }
        }
    }

    // MARK: Collections made anew

    private func scheduleRemakes() {
        for _ in 0..<worldDice.int(1...3) {
            at(0...20_000) { [unowned self] in
                let peer = worldDice.pick(peers.filter { !isGuest($0) })
                try remake(peer, worldDice.int(0...peer.collections.count - 1))
            }
        }
    }

    private func remake(_ peer: SimulatedPeer, _ collection: Int) throws {
        trace("\(peer.index) makes collection \(collection) anew")
        if worldDice.chance(0.5) {
            crash(peer)
        } else {
            for connection in connections
            where connection.source === peer || connection.target === peer {
                disturbed.insert(ObjectIdentifier(connection))
            }
        }
        let prefix = "\(collection)/"
        for id in try peer.state(of: collection).keys.sorted() {
            purgedKeys.insert(prefix + id)
            oracle.purged(peer.index, prefix + id)
            soleEditors[prefix + id] = .some(nil)
        }
        hasPurged = true
        freshDocuments = freshDocuments.filter { !$0.key.hasPrefix(prefix) }
        try peer.remake(collection, restarts: simulation.fault == .restartSequences)
        for _ in 0..<worldDice.int(1...4) {
            let id = "fresh\(worldDice.int(0...1_000_000))"
            let body = JSONText(canonical: [
                "n": JSONValue(worldDice.int(0...99)), "by": JSONValue(peer.index),
            ])
            _ = try peer.store.write {
                try $0.save(
                    id,
                    in: peer.collections[collection],
                    body: body,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
            freshDocuments[prefix + id] = (peer.index, body)
            soleEditors[prefix + id] = (peer.index, body)
        }
    }

    // MARK: Guests

    func isGuest(_ peer: SimulatedPeer) -> Bool { guests.contains { $0.peer === peer } }

    /// Whether a peer gives documents away that it may have to take back, or has such documents. The records of that are forgotten with the
    /// commits that a power loss takes (docs/decisions/0006-lost-commits.md).
    func sharesGrants(_ peer: SimulatedPeer) -> Bool {
        guests.contains { $0.isRestricted && ($0.peer === peer || $0.host == peer.index) }
    }

    func makeGuests(_ names: [CollectionName]) throws {
        for world in [SimulatedWorld.filters, .access] where worlds.contains(world) {
            for _ in 0..<worldDice.int(1...2) { try makeGuest(names, isRestricted: world == .access) }
        }
    }

    private func makeGuest(_ names: [CollectionName], isRestricted: Bool) throws {
        let peer = try SimulatedPeer(
            index: peers.count,
            collections: names,
            blobFolder: "\(folder)/\(peers.count)",
            seed: worldDice.next(),
            clock: clock
        )
        let host = worldDice.int(0...report.peers - 1)
        let order = (0..<SimulatedGuest.classes).shuffled(using: &worldDice)
        let first = Set(order.prefix(worldDice.int(1...2)))
        let guest = SimulatedGuest(
            peer,
            host: host,
            isRestricted: isRestricted,
            rights: SimulatedRights(isByBody: worldDice.chance(0.5), read: first, write: first),
            lastFilter: Set(order.prefix(worldDice.int(2...4))),
            keepsVersion: simulation.fault == .forgetFilterVersion
        )
        peers.append(peer)
        guests.append(guest)
        edges.append(Edge(peer.index, host))
        // A policy judges a deletion by what was deleted.
        if isRestricted { try peers[host].store.keepDeletedBodies() }
    }

    private func schedule(_ guest: SimulatedGuest) {
        let edge = Edge(guest.peer.index, guest.host)
        for _ in 0..<worldDice.int(2...6) { at(0...20_000) { [unowned self] in connect(edge) } }
        for _ in 0..<worldDice.int(0...12) { at(0...20_000) { [unowned self] in try edit(as: guest) } }
        guard guest.isRestricted else {
            for missing in guest.lastFilter.subtracting(guest.rights.read).sorted() {
                at(1_000...20_000) { [unowned self] in loosen(guest, missing) }
            }
            return
        }
        for _ in 0..<worldDice.int(1...5) { at(1_000...20_000) { [unowned self] in changeRights(of: guest) } }
    }

    private func loosen(_ guest: SimulatedGuest, _ missing: Int) {
        trace("\(guest.peer.index) wants class \(missing)")
        let wanted = guest.rights.read.union([missing])
        guest.rights.change(read: wanted, write: wanted)
        guest.filterVersion += 1
        // An app may let its connections go on with the filter that they have.
        guard worldDice.chance(0.5) else { return }
        for connection in connections where connection.source === guest.peer { connection.cut() }
    }

    private func changeRights(of guest: SimulatedGuest) {
        let read = (0..<SimulatedGuest.classes).filter { _ in worldDice.chance(0.5) }
        let write = read.filter { _ in worldDice.chance(0.7) }
        trace("\(guest.peer.index) may read \(read) and write \(write)")
        guest.rights.change(read: Set(read), write: Set(write))
        // An app that does not say so at once is late, and nothing more.
        guard worldDice.chance(0.8) else { return }
        for connection in connections where connection.source === guest.peer {
            connection.accessChanged()
        }
    }

    /// A guest edits what it may write.
    private func edit(as guest: SimulatedGuest) throws {
        let peer = guest.peer
        let collection = worldDice.int(0...peer.collections.count - 1)
        let id = "doc\(worldDice.int(0...worldDice.pick([3, 12, 40])))"
        let number = worldDice.int(0...1_000_000)
        let isDeleted = worldDice.chance(0.15)
        let body = JSONText(canonical: ["n": JSONValue(number), "by": JSONValue(peer.index)])
        let current = peer.tree(id, in: collection)?.current
        let writable = guest.isRestricted ? guest.rights.write : guest.lastFilter
        // A filter by content would have to let through what the guest has not seen, to tell of a conflict.
        guard guest.isRestricted || !guest.rights.isByBody, guest.rights.isIn(writable, id, body),
            current?.body.map({ guest.rights.isIn(writable, id, $0) }) ?? true
        else { return }
        let key = "\(collection)/\(id)"
        trace("\(peer.index) guest edit \(key)")
        _ = try peer.store.write {
            try $0.save(
                id,
                in: peer.collections[collection],
                body: isDeleted ? .emptyObject : body,
                isDeleted: isDeleted,
                condition: .lastWriteWins
            )
        }
        if let tree = peer.tree(id, in: collection) {
            oracle.edited(peer.index, key, tree, base: current?.id)
        }
        soleEditors[key] = .some(nil)
    }

    /// Looks for what a guest must not see; nil for other peers.
    func inspector(of peer: SimulatedPeer) -> ((String, RevisionTree) -> Void)? {
        guard let guest = guests.first(where: { $0.peer === peer }) else { return nil }
        return { [unowned self] id, tree in
            // A guest that everything works for holds only what it may see.
            guard let seen = guest.forbiddenContent(id, tree) else { return }
            report.problems.append("\(id): SEEN \(seen) by guest \(peer.index), which never might")
        }
    }

    /// The access that a peer grants to another one; nil if everybody may do everything.
    func access(to target: Int, from source: Int) -> PeerAccess? {
        guard guests.contains(where: { $0.isRestricted && $0.host == target }) else { return nil }
        let rights = guests.first { $0.isRestricted && $0.peer.index == source }?.rights
        let isIgnored = simulation.fault == .ignorePolicy
        return PeerAccess(
            peer: PeerIdentity(username: "peer-\(source)"),
            policy: AccessPolicy { _, _, document in
                guard let rights, let document, !isIgnored else { return .write }
                return rights.access(document.id, document.json)
            }
        )
    }
}
