import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Connections of a history: how they are made, cut and ended.
extension SimulationRun {
    private func randomTuning() -> ReplicationTuning {
        var tuning = ReplicationTuning()
        tuning.changesPerMessage = generator.pick([10, 20, 200])
        tuning.insertBatch = generator.pick([1, 5, 100])
        tuning.revisionsTransmitting = generator.pick([1, 3, 10])
        tuning.revisionsRequested = generator.pick([5, 50, 200])
        tuning.revisionsRequestedOfLoveseat = tuning.revisionsRequested
        tuning.changesAskedOfLoveseat = tuning.changesAskedFor
        tuning.listsInFlight = generator.pick([1, 5])
        tuning.revisionsQueued = generator.pick([5, 600])
        tuning.checkpointDelay = generator.pick([50, 500, 5_000])
        tuning.blobPiece = generator.pick([1_000, 64 << 10])
        return tuning
    }

    private func randomLink() -> SimulatedLink.Plan {
        var link = SimulatedLink.Plan()
        link.latency = generator.pick([0...0, 1...5, 20...300])
        link.bytesPerMillisecond = generator.pick([50, 2_000, 1_000_000])
        link.capacity = generator.pick([1, 10_000, 1 << 20])
        link.cutAfter =
            generator.chance(0.4) ? generator.pick([1_000, 10_000, 200_000]) : nil
        link.notice = generator.pick([0...0, 0...50, 0...3_000])
        link.losesWhatIsUnderWay = generator.chance(0.5)
        return link
    }

    func connect(_ edge: Edge) {
        let isLinked = connections.contains {
            $0.source.index == edge.source && $0.target.index == edge.target
        }
        if isQuiescing || (isLinked && !mayDouble()) { return }
        var plan = SimulatedConnection.Plan()
        switch generator.int(0...5) {
        case 0: plan.pulls = false
        case 1: plan.pushes = false
        default: break
        }
        plan.isContinuous = generator.chance(0.5)
        plan.link = randomLink()
        plan.storeDelay = generator.pick([0...0, 0...0, 0...30])
        plan.tuning = randomTuning()
        plan.resolverFailures = generator.pick([0, 0, 0.3])
        plan.reset = generator.chance(0.05) ? .checkpoint : .none
        plan.activeDeltas = generator.chance(0.6)
        plan.passiveDeltas = generator.chance(0.6)
        if generator.chance(0.15) { plan.pushFilter = generator.int(0...2) }
        if generator.chance(0.15) { plan.pullFilter = generator.int(0...2) }
        if generator.chance(0.1) {
            plan.isContinuous = false
            plan.documentIDs = (0..<5).map { _ in "doc\(generator.int(0...40))" }
        }
        persist(&plan)
        if foreignEdges.contains(edge) {
            plan.isContinuous = false
            plan.httpFaults = wireDice.pick([0, 0.03, 0.1, 0.3])
        }
        open(edge, plan)
    }

    /// Pulls documents by their IDs over a connection of its own; returns whether it ended well.
    private func fetch(_ notice: FetchNotice, _ edge: Edge, _ remoteName: String?) async -> Bool {
        var plan = SimulatedConnection.Plan()
        plan.pushes = false
        plan.fetch = notice
        plan.remoteName = remoteName
        guard !Task.isCancelled, let connection = open(edge, plan) else { return false }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { fetches[ObjectIdentifier(connection)] = $0 }
        } onCancel: {
            connection.stop()
        }
    }

    @discardableResult
    func open(_ edge: Edge, _ plan: SimulatedConnection.Plan) -> SimulatedConnection? {
        trace("connect \(edge.source)>\(edge.target)")
        var plan = plan
        plan.verdict = verdicts[edge.source]
        plan.merges = merges && plan.verdict == nil
        plan.remoteName = plan.remoteName ?? addresses[edge]
        plan.omissions = simulation.fault?.driverOmissions ?? []
        plan.trustsOwnCheckpoint =
            simulation.fault == .trustOwnCheckpoint
            || (simulation.fault == .forgetRestoration && restored.contains(edge.target))
        plan.trustsPeersCheckpoint = simulation.fault == .trustPeersCheckpoint
        guests.first { $0.peer.index == edge.source }?.restrict(&plan)
        let seed = generator.next()
        let connection = SimulatedConnection(
            from: peers[edge.source],
            to: peers[edge.target],
            plan: plan,
            seed: seed,
            surroundings(edge, plan.remoteName, faultSeed: generator.next())
        )
        report.connections += 1
        connections.append(connection)
        connection.open()
        return connection
    }

    private func surroundings(_ edge: Edge, _ remoteName: String?, faultSeed: UInt64)
        -> SimulatedConnection.Surroundings
    {
        SimulatedConnection.Surroundings(
            runtime: runtime,
            access: { [unowned self] in access(to: edge.target, from: edge.source) },
            wrap: { [unowned self, isQuiescing] replicas, owner in
                let (oracle, inspect, handedOut) = (oracle, inspector(of: owner), handedOut)
                let observed = LayeredReplicas(replicas) {
                    ObservedReplica($0, $1, owner: owner, oracle: oracle, inspect: inspect)
                }
                guard let fault = simulation.fault, !isQuiescing else { return observed }
                return FaultyReplica.layers(
                    over: observed,
                    of: owner,
                    fault: fault,
                    seed: faultSeed &+ (owner.index == edge.source ? 1 : 2),
                    handedOut.session(faultSeed, edge)
                )
            },
            fetch: { [unowned self] in await fetch($0, edge, remoteName) },
            onPush: { [unowned self] in pushed(over: $0) },
            onDeletion: { [unowned self] in oracle.mayDelete($0) },
            trace: { [unowned self] in trace($0) },
            detail: simulation.isVerbose
                ? { [clock] text in print(clock.now, text.replacing("LoveseatReplication.", with: "")) }
                : nil,
            onEnd: { [unowned self] in
                handedOut.end(faultSeed)
                ended($0)
            },
            wire: foreignEdges.contains(edge)
                ? isQuiescing ? simulation.wire?.withoutMistake : simulation.wire : nil
        )
    }

    private func ended(_ connection: SimulatedConnection) {
        connections.removeAll { $0 === connection }
        fetches.removeValue(forKey: ObjectIdentifier(connection))?.resume(returning: connection.endedWell)
        report.revisionsSent += connection.revisionsSent
        let isDisturbed = disturbed.remove(ObjectIdentifier(connection)) != nil
        if connection.hasLeftTimers { report.problems.append("a driver left timers behind") }
        if let failure = connection.failure, !isDisturbed, !simulation.isPlanted,
            !isCaused(failure, connection)
        {
            report.problems.append("a session failed: \(failure)")
        }
        if worlds.contains(.verdicts) { judgeVersions() }
    }

    func crash() {
        let peer = generator.pick(peers)
        trace("crash \(peer.index)")
        crash(peer)
    }

    func crash(_ peer: SimulatedPeer) {
        for connection in connections
        where connection.source === peer || connection.target === peer {
            connection.crash(peer)
        }
        if simulation.wire == nil { return }
        do { try peer.reopen() } catch {
            report.problems.append("a database cannot be opened again: \(error)")
        }
    }

    func partition() {
        let side = Set(peers.indices.filter { _ in generator.chance(0.5) })
        trace("partition \(side.sorted())")
        for connection in connections
        where side.contains(connection.source.index) != side.contains(connection.target.index) {
            connection.cut()
        }
    }
}
