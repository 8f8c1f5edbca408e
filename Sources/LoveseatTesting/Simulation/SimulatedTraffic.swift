import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication

/// The connections of a history: how they are made, cut and ended.
final class SimulatedTraffic: HistoryPart {
    unowned let run: SimulationRun
    var connections: [SimulatedConnection] = []
    /// Connections that lost a collection below them.
    var disturbed: Set<ObjectIdentifier> = []
    /// The tasks that wait for the end of connections that fetch documents.
    private var fetches: [ObjectIdentifier: CheckedContinuation<Bool, Never>] = [:]
    /// The changes that sessions have been given, for a planted mistake.
    private let handedOut = HandedOut()

    init(run: SimulationRun) { self.run = run }

    private func randomTuning() -> ReplicationTuning {
        var tuning = ReplicationTuning()
        tuning.changesPerMessage = dice.history.pick([10, 20, 200])
        tuning.insertBatch = dice.history.pick([1, 5, 100])
        tuning.revisionsTransmitting = dice.history.pick([1, 3, 10])
        tuning.revisionsRequested = dice.history.pick([5, 50, 200])
        tuning.revisionsRequestedOfLoveseat = tuning.revisionsRequested
        tuning.changesAskedOfLoveseat = tuning.changesAskedFor
        tuning.listsInFlight = dice.history.pick([1, 5])
        tuning.revisionsQueued = dice.history.pick([5, 600])
        tuning.checkpointDelay = dice.history.pick([50, 500, 5_000])
        tuning.blobPiece = dice.history.pick([1_000, 64 << 10])
        return tuning
    }

    private func randomLink() -> SimulatedLink.Plan {
        var link = SimulatedLink.Plan()
        link.latency = dice.history.pick([0...0, 1...5, 20...300])
        link.bytesPerMillisecond = dice.history.pick([50, 2_000, 1_000_000])
        link.capacity = dice.history.pick([1, 10_000, 1 << 20])
        link.cutAfter =
            dice.history.chance(0.4) ? dice.history.pick([1_000, 10_000, 200_000]) : nil
        link.notice = dice.history.pick([0...0, 0...50, 0...3_000])
        link.losesWhatIsUnderWay = dice.history.chance(0.5)
        return link
    }

    func connect(_ edge: Edge) {
        let isLinked = connections.contains {
            $0.source.index == edge.source && $0.target.index == edge.target
        }
        if run.isQuiescing || (isLinked && !DoubleWorld(run: run).mayDouble()) { return }
        var plan = SimulatedConnection.Plan()
        switch dice.history.int(0...5) {
        case 0: plan.pulls = false
        case 1: plan.pushes = false
        default: break
        }
        plan.isContinuous = dice.history.chance(0.5)
        plan.link = randomLink()
        plan.storeDelay = dice.history.pick([0...0, 0...0, 0...30])
        plan.tuning = randomTuning()
        plan.resolverFailures = dice.history.pick([0, 0, 0.3])
        plan.reset = dice.history.chance(0.05) ? .checkpoint : .none
        plan.activeDeltas = dice.history.chance(0.6)
        plan.passiveDeltas = dice.history.chance(0.6)
        if dice.history.chance(0.15) { plan.pushFilter = dice.history.int(0...2) }
        if dice.history.chance(0.15) { plan.pullFilter = dice.history.int(0...2) }
        if dice.history.chance(0.1) {
            plan.isContinuous = false
            plan.documentIDs = (0..<5).map { _ in "doc\(dice.history.int(0...40))" }
        }
        NetworkWorld(run: run).persist(&plan)
        if mesh.foreignEdges.contains(edge) {
            // The scripted CouchDB lets nobody wait.
            let goesOn = worlds.contains(.feeds) && peers[edge.target].foreign == nil
            plan.isContinuous = plan.isContinuous && goesOn
            plan.httpFaults = dice.wire.pick([0, 0.03, 0.1, 0.3])
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
        plan.verdict = mesh.verdicts[edge.source]
        plan.merges = mesh.merges && plan.verdict == nil
        plan.remoteName = plan.remoteName ?? mesh.addresses[edge]
        plan.omissions = simulation.fault?.driverOmissions ?? []
        plan.trustsOwnCheckpoint =
            simulation.fault == .trustOwnCheckpoint
            || (simulation.fault == .forgetRestoration && mesh.restored.contains(edge.target))
        plan.trustsPeersCheckpoint = simulation.fault == .trustPeersCheckpoint
        mesh.guests.first { $0.peer.index == edge.source }?.restrict(&plan)
        let seed = dice.history.next()
        let connection = SimulatedConnection(
            from: peers[edge.source],
            to: peers[edge.target],
            plan: plan,
            seed: seed,
            surroundings(edge, plan.remoteName, faultSeed: dice.history.next())
        )
        journal.report.connections += 1
        connections.append(connection)
        connection.open()
        return connection
    }

    private func surroundings(_ edge: Edge, _ remoteName: String?, faultSeed: UInt64)
        -> SimulatedConnection.Surroundings
    {
        SimulatedConnection.Surroundings(
            runtime: run.runtime,
            access: { [unowned self] in GuestWorld(run: run).access(to: edge.target, from: edge.source) },
            wrap: { [unowned self, isQuiescing = run.isQuiescing] replicas, owner in
                let (oracle, inspect) = (oracle, GuestWorld(run: run).inspector(of: owner))
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
            onPush: { [unowned self] in PowerWorld(run: run).pushed(over: $0) },
            onDeletion: { [oracle] in oracle.mayDelete($0) },
            trace: { [journal] in journal.trace($0) },
            detail: journal.isVerbose
                ? { [clock] text in print(clock.now, text.replacing("LoveseatReplication.", with: "")) }
                : nil,
            onEnd: { [unowned self] in
                handedOut.end(faultSeed)
                ended($0)
            },
            wire: mesh.foreignEdges.contains(edge)
                ? run.isQuiescing ? simulation.wire?.withoutMistake : simulation.wire : nil
        )
    }

    private func ended(_ connection: SimulatedConnection) {
        connections.removeAll { $0 === connection }
        fetches.removeValue(forKey: ObjectIdentifier(connection))?.resume(returning: connection.endedWell)
        journal.report.revisionsSent += connection.revisionsSent
        let isDisturbed = disturbed.remove(ObjectIdentifier(connection)) != nil
        if connection.hasLeftTimers { journal.add("a driver left timers behind") }
        if let failure = connection.unexplainedFailure, !isDisturbed, !simulation.isPlanted {
            journal.add("a session failed: \(failure)")
        }
        if worlds.contains(.verdicts) { VersionChecks(run: run).checkVersions() }
    }
}
