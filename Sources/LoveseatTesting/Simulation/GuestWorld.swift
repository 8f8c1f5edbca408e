import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Peers whose filters are loosened later, and peers whose host lets them have a part of its documents, which changes.
struct GuestWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() { for guest in mesh.guests { schedule(guest) } }

    private func schedule(_ guest: SimulatedGuest) {
        let edge = Edge(guest.peer.index, guest.host)
        for _ in 0..<dice.worlds.int(2...6) { at(0...20_000) { traffic.connect(edge) } }
        if !guest.onlyPulls {
            for _ in 0..<dice.worlds.int(0...12) { at(0...20_000) { try edit(as: guest) } }
        }
        guard guest.isRestricted else {
            for missing in guest.lastFilter.subtracting(guest.rights.read).sorted() {
                at(1_000...20_000) { loosen(guest, missing) }
            }
            return
        }
        for _ in 0..<dice.worlds.int(1...5) { at(1_000...20_000) { changeRights(of: guest) } }
    }

    private func loosen(_ guest: SimulatedGuest, _ missing: Int) {
        trace("\(guest.peer.index) wants class \(missing)")
        let wanted = guest.rights.read.union([missing])
        guest.rights.change(read: wanted, write: wanted)
        guest.filterVersion += 1
        // An app may let its connections go on with the filter that they have.
        guard dice.worlds.chance(0.5) else { return }
        for connection in traffic.connections where connection.source === guest.peer { connection.cut() }
    }

    private func changeRights(of guest: SimulatedGuest) {
        let read = (0..<SimulatedGuest.classes).filter { _ in dice.worlds.chance(0.5) }
        let write = read.filter { _ in dice.worlds.chance(0.7) }
        trace("\(guest.peer.index) may read \(read) and write \(write)")
        guest.rights.change(read: Set(read), write: Set(write))
        // An app that does not say so at once is late, and nothing more.
        guard dice.worlds.chance(0.8) else { return }
        for connection in traffic.connections where connection.source === guest.peer {
            connection.accessChanged()
        }
    }

    /// A guest edits what it may write.
    private func edit(as guest: SimulatedGuest) throws {
        let peer = guest.peer
        let collection = dice.worlds.int(0...peer.collections.count - 1)
        let id = "doc\(dice.worlds.int(0...dice.worlds.pick([3, 12, 40])))"
        let number = dice.worlds.int(0...1_000_000)
        let isDeleted = dice.worlds.chance(0.15)
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
        ledger.forgetEditor(of: key)
    }

    // MARK: The rights of guests

    /// Looks for what a guest must not see; nil for other peers.
    func inspector(of peer: SimulatedPeer) -> ((String, RevisionTree) -> Void)? {
        guard let guest = mesh.guests.first(where: { $0.peer === peer }) else { return nil }
        return { id, tree in
            // A guest that everything works for holds only what it may see.
            guard let seen = guest.forbiddenContent(id, tree) else { return }
            journal.add("\(id): SEEN \(seen) by guest \(peer.index), which never might")
        }
    }

    /// The access that a peer grants to another one; nil if everybody may do everything.
    func access(to target: Int, from source: Int) -> SimulatedAccess? {
        guard mesh.guests.contains(where: { $0.isRestricted && $0.host == target }) else { return nil }
        let restricted = mesh.guests.filter(\.isRestricted)
        let rights = Dictionary(uniqueKeysWithValues: restricted.map { ("peer-\($0.peer.index)", $0.rights) })
        let isIgnored = simulation.fault == .ignorePolicy
        let policy = AccessPolicy { peer, _, document in
            guard let rights = peer.username.flatMap({ rights[$0] }), let document, !isIgnored else {
                return .write
            }
            return rights.access(document.id, document.json)
        }
        return SimulatedAccess(user: "peer-\(source)", policy: policy)
    }
}
