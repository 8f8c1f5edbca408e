import LoveseatModel
import LoveseatStorage

/// Compares guests with their hosts, at the end of a history.
struct GuestComparison: HistoryPart {
    unowned let run: SimulationRun

    /// Compares before anybody begins anew: documents that the checkpoints cover do not come by themselves any more.
    func compareWithoutReset() throws {
        for (key, fresh) in ledger.freshDocuments.sorted(by: { $0.key < $1.key }) {
            guard let collection = Int(key.prefix(1)) else { continue }
            for peer in peers where !mesh.isGuest(peer) {
                if peer.tree(String(key.dropFirst(2)), in: collection)?.current?.body != fresh.body {
                    journal.add(
                        "\(key): peer \(peer.index) lacks what peer \(fresh.peer) made anew"
                    )
                }
            }
        }
        for guest in mesh.guests {
            // Documents that a guest gains do not come by themselves; documents that it loses go by themselves.
            try compare(guest, onlyFor: guest.isRestricted ? "NOT REVOKED" : nil) { key in
                !ledger.purgedKeys.contains(key)
            }
        }
    }

    func compareGuests() throws {
        for guest in mesh.guests {
            // Edits of a guest that nobody took are lost with it, which is not a mistake.
            oracle.forgot(guest.peer.index, allBut: .nothing)
            try compare(guest) { _ in true }
            journal.report.problems += try guest.peer.store.check().map { "peer \(guest.peer.index): \($0)" }
        }
    }

    /// Compares what a guest holds with what its host has and the guest may see.
    ///
    /// `kind`: the only kind of problem that counts; nil for all.
    private func compare(
        _ guest: SimulatedGuest,
        onlyFor kind: String? = nil,
        where isExpected: (String) -> Bool
    ) throws {
        for collection in guest.peer.collections.indices {
            let theirs = try peers[guest.host].state(of: collection)
            let mine = try guest.peer.state(of: collection)
            for id in Set(theirs.keys).union(mine.keys).sorted() where isExpected("\(collection)/\(id)") {
                guard let problem = problem(guest, id, in: collection, mine: mine[id], theirs: theirs[id]),
                    kind == nil || problem == kind
                else { continue }
                journal.add(
                    "\(collection)/\(id): \(problem): guest \(guest.peer.index) has \(mine[id].map(\.description) ?? "nothing"), its host \(guest.host) has \(theirs[id].map(\.description) ?? "nothing")"
                )
            }
        }
    }

    private func problem(
        _ guest: SimulatedGuest,
        _ id: String,
        in collection: Int,
        mine: SimulatedPeer.DocumentState?,
        theirs: SimulatedPeer.DocumentState?
    ) -> String? {
        let rights = guest.rights
        if let tree = guest.peer.tree(id, in: collection), let seen = guest.forbiddenContent(id, tree) {
            return "SEEN \(seen)"
        }
        if guest.onlyPulls {
            // CouchDB's wire takes nothing back. If the content decides, it does so over each branch, with its ancestors.
            guard let theirs, !theirs.isDeleted, !rights.isByBody, rights.isIn(rights.read, id, theirs.body)
            else { return nil }
            return guest.peer.tree(id, in: collection)?.contains(theirs.revision) == true ? nil : "MISSING"
        }
        let isGone = theirs?.isDeleted ?? true
        if mine?.isDeleted ?? true, isGone { return nil }
        if let mine, !mine.isDeleted, let theirs, mine.body == theirs.body, !mine.hasConflict,
            mesh.hubs > 0 || mine.revision == theirs.revision, rights.isIn(rights.read, id, theirs.body)
        {
            return nil
        }
        // An edit that the host does not take stays with the guest.
        let isOwn = mine.map { JSONElement($0.body)["by"]?.int == guest.peer.index } ?? false
        // Nor can a guest pass on a resolver's revision, or its knowledge of a document that was purged. An edit that the host does not
        // take also decides over the guest's other revisions.
        let taken = Set(peers[guest.host].tree(id, in: collection).map { Array($0.nodes.keys) } ?? [])
        let untaken = guest.peer.tree(id, in: collection).map {
            $0.nodes.values.filter { !taken.contains($0.id) }
        }
        let knowsMore =
            mesh.merges || !mesh.verdicts.isEmpty || ledger.purgedKeys.contains("\(collection)/\(id)")
            || untaken?.isEmpty == false
        // The host is told of such a revision together with the current one, which then does not get there either.
        var bodies = [mine?.body, theirs?.body].compactMap { $0 } + (untaken ?? []).compactMap(\.body)
        // The guest must also be allowed to write the versions that the host keeps, beside its current one, on the line below.
        if let hosts = peers[guest.host].tree(id, in: collection),
            let mine = guest.peer.tree(id, in: collection)
        {
            let below = Set((untaken ?? []).flatMap { mine.line($0.id) })
            let open = hosts.open(among: hosts.candidates).map(\.node)
            bodies += open.filter { !$0.isDeleted && below.contains($0.id) }.compactMap(\.body)
            // And the nearest one below of which the host has the content, whether or not that is a version still.
            for node in untaken ?? [] {
                let kept = mine.line(node.id).compactMap { hosts.node($0) }
                if let body = kept.first(where: { !$0.isDeleted && $0.body != nil })?.body {
                    bodies.append(body)
                }
            }
        }
        let mayWrite = bodies.allSatisfy { rights.isIn(rights.write, id, $0) }
        // A filter leaves out the guest's own edits, too.
        if !mayWrite, isOwn || (guest.isRestricted && knowsMore) { return nil }
        if guest.isRestricted, mine?.isDeleted == true { return nil }
        guard let theirs, !theirs.isDeleted else {
            // The content of a deleted document decides whether the guest hears of its end.
            return guest.isRestricted && rights.isByBody ? nil : "KEPT"
        }
        if rights.isIn(rights.read, id, theirs.body) { return "MISSING" }
        // A filter says nothing of what came before, nor of the guest's own edits.
        return mine == nil || isOwn || (!guest.isRestricted && rights.isByBody) ? nil : "NOT REVOKED"
    }
}
