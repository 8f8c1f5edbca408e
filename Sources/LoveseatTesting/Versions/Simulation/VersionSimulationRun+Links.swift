import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication

/// The connections of a history with versions.
extension VersionSimulationRun {
    private func randomLink() -> SimulatedLink.Plan {
        var link = SimulatedLink.Plan()
        link.latency = dice.pick([0...0, 1...5, 20...300])
        link.bytesPerMillisecond = dice.pick([5, 200, 100_000])
        link.capacity = dice.pick([10_000, 1 << 20])
        link.cutAfter = dice.chance(0.3) ? dice.int(1...dice.pick([1_000, 10_000])) : nil
        link.notice = dice.pick([0...0, 0...500])
        link.losesWhatIsUnderWay = dice.chance(0.5)
        return link
    }

    /// The draws for a connection of any kind.
    private struct Draws {
        let pushes: Bool
        let pulls: Bool
        let isContinuous: Bool
    }

    func connect(_ edge: Edge) {
        if isQuiescing { return }
        let ways = dice.int(0...5)
        let draws = Draws(pushes: ways != 0, pulls: ways != 1, isContinuous: dice.chance(0.5))
        switch mesh.link(edge) {
        case .lite(let own, let lite, let isLiteActive): connect(own, lite, isLiteActive: isLiteActive, draws)
        case .gateway(let gateway, let client): connect(client, to: gateway.traffic, draws)
        case .peers: connect(edge, draws)
        }
    }

    private func connect(_ own: SimulatedPeer, _ lite: LitePeer, isLiteActive: Bool, _ draws: Draws) {
        let isLinked = open.links.contains {
            $0.lite === lite && $0.own === own && $0.plan.isLiteActive == isLiteActive
        }
        if isLinked { return }
        var plan = LiteLink.Plan()
        (plan.isLiteActive, plan.pushes, plan.pulls) = (isLiteActive, draws.pushes, draws.pulls)
        plan.isContinuous = draws.isContinuous
        plan.usesDeltas = dice.chance(0.5)
        plan.link = randomLink()
        plan.workDelay = dice.pick([0...0, 0...5, 0...200])
        plan.tuning = .drawn(from: &dice)
        plan.resolverFailures = dice.pick([0, 0, 0.3])
        open(own, lite, plan)
    }

    private func connect(_ client: GatewayClient, to traffic: GatewayTraffic, _ draws: Draws) {
        if traffic.links.contains(where: { $0.client === client }) { return }
        var plan = traffic.basis
        (plan.pushes, plan.pulls, plan.isContinuous) = (draws.pushes, draws.pulls, draws.isContinuous)
        plan.link = randomLink()
        plan.workDelay = dice.pick([0...0, 0...5, 0...200])
        plan.tuning = .drawn(from: &dice)
        plan.resolverFailures = dice.pick([0, 0, 0.3])
        traffic.open(client, plan)
    }

    private func connect(_ edge: Edge, _ draws: Draws) {
        if open.connections.contains(where: {
            $0.source.index == edge.source && $0.target.index == edge.target
        }) {
            return
        }
        var plan = SimulatedConnection.Plan()
        (plan.pushes, plan.pulls, plan.isContinuous) = (draws.pushes, draws.pulls, draws.isContinuous)
        plan.link = randomLink()
        plan.tuning = .drawn(from: &dice)
        plan.resolverFailures = dice.pick([0, 0, 0.3])
        (plan.activeDeltas, plan.passiveDeltas) = (dice.chance(0.5), dice.chance(0.5))
        if mesh.wireEdges.contains(edge) {
            // A server at whose feed somebody waits is slow to simulate.
            plan.isContinuous = plan.isContinuous && dice.chance(0.3)
            plan.httpFaults = dice.pick([0, 0.03, 0.1, 0.3])
        }
        open(edge, plan)
    }

    // MARK: Between peers with trees

    @discardableResult
    func open(_ edge: Edge, _ plan: SimulatedConnection.Plan) -> SimulatedConnection {
        trace("connect \(edge.source)>\(edge.target)")
        var plan = plan
        plan.merges = merges
        let surroundings = SimulatedConnection.Surroundings(
            runtime: runtime,
            access: { nil },
            wrap: { replicas, _ in replicas },
            fetch: { [unowned self] in await fetch($0, edge) },
            onPush: { _ in },
            onDeletion: { _ in },
            trace: { [unowned self] in trace($0) },
            detail: detail,
            onEnd: { [unowned self] in ended($0) },
            wire: mesh.wireEdges.contains(edge) ? simulation.wire : nil
        )
        let connection = SimulatedConnection(
            from: peers[edge.source],
            to: peers[edge.target],
            plan: plan,
            seed: dice.next(),
            surroundings
        )
        report.connections += 1
        open.connections.append(connection)
        connection.open()
        return connection
    }

    private var detail: ((String) -> Void)? {
        guard simulation.isVerbose else { return nil }
        return { [clock] text in print(clock.now, text.replacing("LoveseatReplication.", with: "")) }
    }

    private func fetch(_ notice: FetchNotice, _ edge: Edge) async -> Bool {
        if Task.isCancelled { return false }
        var plan = SimulatedConnection.Plan()
        plan.pushes = false
        plan.fetch = notice
        let connection = open(edge, plan)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { open.fetches[ObjectIdentifier(connection)] = $0 }
        } onCancel: {
            connection.stop()
        }
    }

    private func ended(_ connection: SimulatedConnection) {
        open.connections.removeAll { $0 === connection }
        open.fetches.removeValue(forKey: ObjectIdentifier(connection))?.resume(
            returning: connection.endedWell
        )
        open.revisionsSent += connection.revisionsSent
        // A mistake may end sessions. It has to show in what the databases hold.
        if simulation.fault != nil { return }
        if let failure = connection.unexplainedFailure { add("a session of Loveseats failed: \(failure)") }
    }

    // MARK: With a gateway

    var gatewaySurroundings: GatewayTraffic.Surroundings {
        GatewayTraffic.Surroundings(
            runtime: runtime,
            seed: { [unowned self] in dice.next() },
            trace: { [unowned self] in trace("gateway: \($0)") },
            detail: detail,
            onTaken: { [unowned self] pushed, client in
                trace("gateway takes \(pushed.id) \(pushed.revision) of \(client.peer.index)")
                open.revisionsSent += 1
            },
            onRefused: { [unowned self] refused, error, client in
                trace("gateway refuses \(refused.id) \(refused.revision) of \(client.peer.index): \(error)")
            },
            onChange: {},
            onEnd: { [unowned self] in ended($0) },
            onProblem: { [unowned self] in add($0) }
        )
    }

    private func ended(_ link: GatewayLink) {
        report.longestConnection = max(report.longestConnection, link.frames)
        // As between Loveseats.
        if simulation.fault != nil { return }
        if let failure = link.failure {
            add("a session of \(link.client.peer.index) with the gateway failed: \(failure)")
        }
    }

    // MARK: With Couchbase Lite

    func open(_ own: SimulatedPeer, _ lite: LitePeer, _ plan: LiteLink.Plan) {
        let name = plan.isLiteActive ? "\(lite.index)>\(own.index)" : "\(own.index)>\(lite.index)"
        trace("connect \(name) \(plan.pushes) \(plan.pulls) \(plan.isContinuous)")
        var plan = plan
        if merges { plan.resolvers = .merging }
        var surroundings = LiteLink.Surroundings(
            runtime: runtime,
            trace: { [unowned self] in trace($0) },
            detail: detail,
            onEnd: { [unowned self] in ended($0) }
        )
        surroundings.onMessage = { [unowned self] in passOn($0, from: $1) }
        if let mistakes { surroundings.wrap = { mistakes.layers(over: $0, of: $1) } }
        let link = LiteLink(own, lite, plan: plan, seed: dice.next(), surroundings)
        report.connections += 1
        open.links.append(link)
        do { try link.open() } catch { add("a connection could not be made: \(error)") }
    }

    /// Looks at a message of a Loveseat. Returns it as the planted mistake has it.
    private func passOn(_ event: BLIPConnection.Event, from own: SimulatedPeer) -> BLIPConnection.Event {
        let event = mistakes?.changed(event, issued) ?? event
        for problem in VersionGrammar.problems(in: event) { add("\(problem), says \(own.index)") }
        return event
    }

    private func ended(_ link: LiteLink) {
        open.links.removeAll { $0 === link }
        open.revisionsSent += link.line.revisions
        report.revisions += link.line.revisions
        report.longestConnection = max(report.longestConnection, link.frames)
        let name = "\(link.own.index)\(link.plan.isLiteActive ? "<" : ">")\(link.lite.index)"
        if simulation.isVerbose { printDocuments() }
        // As between Loveseats.
        if simulation.fault != nil { return }
        if let failure = link.failure { add("a session \(name) failed: \(failure)") }
        if let failure = link.line.session.failure {
            add("a session of Couchbase Lite \(name) failed: \(failure)")
        }
    }

    /// Prints what everybody has.
    func printDocuments() {
        for id in oracle.documents {
            if let document = mesh.gateway?.document(id) {
                print("  ", "gateway", id, document.current, document.isDeleted ? "deleted" : "")
            }
            for peer in peers {
                guard let tree = peer.tree(id, in: 0), !tree.isLine || !tree.vectors.isEmpty else { continue }
                for line in tree.description.split(separator: "\n") { print("  ", peer.index, id, line) }
            }
            for lite in lites {
                guard let document = lite.database.documents()[id] else { continue }
                let current = document.current
                print(
                    "  ",
                    lite.index,
                    id,
                    current.wholeText,
                    current.isDeleted ? "deleted" : "",
                    document.lastLegacy?.text ?? "",
                    document.remotes.filter(\.value.isConflict).map { $0.value.revision.wholeText }
                )
            }
        }
    }
}
