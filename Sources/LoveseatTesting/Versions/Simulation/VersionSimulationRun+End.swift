import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// How a history with versions ends: everybody syncs until nothing changes, and then all is compared.
extension VersionSimulationRun {
    private var hasEnded: Bool { report.problems.contains { $0.hasPrefix("ENDLESS") } }

    func quiesce() throws {
        isQuiescing = true
        mesh.gateway?.traffic.twin.setOnline(true, VersionMesh.Gateway.database)
        endAll()
        runUntilQuiet()
        var rounds = 0
        while !hasEnded {
            let (before, sent) = (try state(), open.revisionsSent)
            // Not in step: a fixed order can repeat itself for ever.
            for edge in mesh.edges.shuffled(using: &dice) {
                trace("round \(rounds)")
                sync(edge, resets: rounds == 0 && !oracle.purged.isEmpty)
                runUntilQuiet()
                if !open.links.isEmpty || !open.connections.isEmpty
                    || mesh.gateway?.traffic.links.isEmpty == false
                {
                    add("the last sync \(edge.source)>\(edge.target) does not end")
                    endAll()
                    runUntilQuiet()
                }
            }
            rounds += 1
            let isQuiet = try before == state()
            if isQuiet, open.revisionsSent == sent, rounds > 1 { break }
            if rounds > 3 * report.peers + 5 {
                add("ENDLESS: \(isQuiet ? "revisions are sent" : "no rest") after \(rounds) rounds")
            }
        }
        try compare()
    }

    private func sync(_ edge: Edge, resets: Bool) {
        switch mesh.link(edge) {
        case .lite(let own, let lite, let isLiteActive):
            var plan = LiteLink.Plan()
            plan.isLiteActive = isLiteActive
            plan.usesDeltas = true
            plan.resets = resets
            plan.link.latency = 0...1
            open(own, lite, plan)
        case .gateway(let gateway, let client):
            var plan = gateway.traffic.basis
            plan.reset = resets ? .checkpointAndMarks : .none
            plan.link.latency = 0...1
            gateway.traffic.open(client, plan)
        case .peers:
            var plan = SimulatedConnection.Plan()
            plan.reset = resets ? .checkpointAndMarks : .none
            plan.link.latency = 0...1
            (plan.activeDeltas, plan.passiveDeltas) = (true, true)
            open(edge, plan)
        }
    }

    private struct State: Equatable {
        let own: [SimulatedPeer.Holding]
        let lite: [[String: LiteRevision]]
        /// The last sequence of the gateway.
        let gateway: Int?
    }

    private func state() throws -> State {
        State(
            own: try peers.map { try $0.holding(in: 0, withLeaves: !mesh.wireEdges.isEmpty) },
            lite: lites.map { $0.database.documents().mapValues(\.current) },
            gateway: mesh.gateway?.traffic.database?.lastSequence
        )
    }

    // MARK: Comparing

    private func compare() throws {
        for peer in peers { report.problems += try peer.store.check().map { "peer \(peer.index): \($0)" } }
        if !mesh.wireEdges.isEmpty { for peer in mesh.loveseats { report.problems += try peer.unserved() } }
        for id in oracle.documents { try compare(id) }
    }

    /// The content of a document; nil if it is deleted, or not here.
    private func content(_ peer: SimulatedPeer, _ id: String) -> JSONValue? {
        guard let current = peer.tree(id, in: 0)?.current, !current.isDeleted else { return nil }
        return current.body.map { JSONElement($0).value }
    }

    private func compare(_ id: String) throws {
        // A purge takes a document from one peer, and nobody brings it back who believes that it has it.
        if oracle.purged.contains(id) { return }
        let before = report.problems.count
        let left = content(peers[0], id)
        for peer in peers.dropFirst() where content(peer, id) != left {
            add("\(id): 0 and \(peer.index) differ")
        }
        for peer in peers where peer.tree(id, in: 0)?.pending.isEmpty == false {
            add("\(id): a conflict is left at \(peer.index)")
        }
        for lite in lites { compare(lite, id, left) }
        if let gateway = mesh.gateway, gateway.content(of: id) != left { add("\(id): the gateway differs") }
        try compareBlobs(id)
        if !merges, let finding = oracle.problem(with: id, left) { blame(id, finding) }
        if simulation.isVerbose, report.problems.count > before {
            printDocuments()
            print(oracle.account(of: id))
        }
    }

    /// Checks that each peer that has a document has its blobs, whether the others have the same content or not.
    private func compareBlobs(_ id: String) throws {
        // Most histories have no blobs.
        guard let blobs else { return }
        for peer in peers {
            guard let current = peer.tree(id, in: 0)?.current, let body = current.body else { continue }
            for problem in try blobs.problems(of: body, at: peer) { add("\(id): \(peer.index) \(problem)") }
        }
        for lite in lites {
            guard let body = lite.database.documents()[id]?.current.body else { continue }
            let text = JSONText(canonical: .object(body))
            for problem in blobs.problems(of: text, at: lite) { add("\(id): \(lite.index) \(problem)") }
        }
        if let document = mesh.gateway?.document(id), let body = document.leaf?.body {
            let text = JSONText(canonical: .object(body))
            for problem in blobs.problems(of: text, at: document) { add("\(id): the gateway \(problem)") }
        }
    }

    /// A finding in a document to which Couchbase Lite did something is its own.
    private func blame(_ id: String, _ finding: String) {
        if excused[id] == nil {
            add(finding)
        } else {
            excuse(id, "after that: \(finding.prefix { $0 != " " })")
        }
    }

    private func compare(_ lite: LitePeer, _ id: String, _ left: JSONValue?) {
        let document = lite.database.documents()[id]
        let current = document.flatMap { $0.current.isDeleted ? nil : $0.current }
        let content = current.map { JSONValue.object($0.body ?? [:]) }
        let isConflicted = document?.isConflicted == true
        if content == left, !isConflicted { return }
        if let cause = lite.ownFault(id, peers[0].tree(id, in: 0)) { return excuse(id, cause) }
        let refusals = lite.refusals[id].map { " \($0.sorted())" } ?? ""
        add(
            "\(id): Couchbase Lite \(lite.index) (\(lite.database.release)) \(content == left ? "has a conflict" : "differs")\(refusals)"
        )
    }
}
