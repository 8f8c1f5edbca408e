import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Creates the drivers of both sides.
extension SimulatedConnection {
    func hooks(_ end: End) -> ReplicationHooks {
        var hooks = ReplicationHooks()
        hooks.resolve = { [self] in await resolve($0, end) }
        hooks.fetch = { [self] in end.isDead ? false : await surroundings.fetch($0) }
        hooks.report = { [self] in received($0, end) }
        return hooks
    }

    private func received(_ report: ReplicationReport, _ end: End) {
        if end.isDead { return }
        switch report {
        case .activity(_, let progress):
            end.progress = progress
            if end === active { self.progress = progress }
        case .document(let event):
            surroundings.trace(
                "\(end.owner.index) \(event.isPush ? "push" : "pull") \(event.documentID) \(event.error?.code.description ?? "ok")"
            )
            if event.isPush, event.error == nil, end === active { surroundings.onPush(self) }
        case .blob, .failure, .checkpointNotSaved, .propertiesLeftOut: break
        }
    }

    private func resolve(_ notice: ConflictNotice, _ end: End) async -> LoveseatError? {
        let fails = dice.chance(plan.resolverFailures)
        // The replication may end during the sleep, which the next line notices.
        try? await runtime.clock.sleep(for: .milliseconds(dice.int(0...20)))
        guard !end.isDead, !Task.isCancelled else {
            return LoveseatError(.conflict, "the conflict waits for the next replication")
        }
        surroundings.trace("\(end.owner.index) resolves \(notice.documentID)")
        guard end === active, let verdict = plan.verdict else {
            let resolver = plan.merges ? MergingResolver.resolve : DefaultConflictResolver.resolve
            return end.owner.resolve(notice, fails: fails, by: resolver)
        }
        return end.owner.resolve(notice, fails: fails) { conflict in
            guard !conflict.isGivenUp else { throw LoveseatError(.conflict, "the conflict came back") }
            if verdict == .nothing { surroundings.onDeletion("\(notice.collection)/\(notice.documentID)") }
            return verdict.resolve(conflict) { dice.chance(0.5) }
        }
    }

    private func makeDriver(
        _ end: End,
        _ replicas: any ReplicaSource,
        _ connection: PeerConnection,
        _ hooks: ReplicationHooks,
        _ makeSession: (any ReplicaSource) -> ReplicationSession
    ) -> ReplicationDriver {
        var delays = SeededGenerator(seed: dice.next())
        let (delay, detail) = (plan.storeDelay, surroundings.detail)
        let simulated = SimulatedReplica.layers(
            over: surroundings.wrap(replicas, end.owner),
            owner: end.owner,
            isDead: { end.isDead },
            onAsk: { if delay.upperBound > 0 { end.executor.block(for: delays.int(delay)) } },
            detail: detail
        )
        // The driver and everything else run on one thread.
        nonisolated(unsafe) let session = makeSession(simulated)
        let runtime = surroundings.runtime.runtime(driver: end.executor, wall: end.owner.wall)
        end.time = runtime.clock as? SimulatedTime
        let driver = ReplicationDriver(
            session: session,
            store: end.owner.store,
            observed: end.owner.collections,
            connection: connection,
            runtime: runtime,
            compressionLevel: BLIPLimits().compressionLevel,
            hooks: hooks,
            omissions: plan.omissions
        )
        end.driver = driver
        return driver
    }

    // MARK: The passive side

    func makePassive(
        _ end: End,
        _ connection: PeerConnection,
        _ note: @escaping @Sendable (ReplicationReport) -> Void
    ) -> ReplicationDriver {
        var passive = PassivePlan(collections: target.collections.map(\.name))
        let access = surroundings.access()?.peerAccess
        passive.usesDeltas = plan.passiveDeltas
        passive.isPlain = target.isHub
        passive.restrictsAccess = access != nil
        var hooks = hooks(end)
        let report = hooks.report
        hooks.report = {
            report($0)
            note($0)
        }
        let replicas = DatabaseReplicas(
            store: target.store,
            access: access,
            nowMilliseconds: { [wall = target.wall] in wall.now }
        )
        let hub = LayeredReplicas(replicas) { [target] in HubReplica($0, $1, hub: target) }
        let served = target.isHub ? hub : replicas as any ReplicaSource
        return makeDriver(end, served, connection, hooks) {
            ReplicationSession(passive: passive, replicas: $0, tuning: plan.tuning)
        }
    }

    // MARK: The active side

    private var checkpointIDs: [String] {
        var plan = plan
        plan.remoteName = recordedName ?? plan.remoteName
        return source.collections.indices.map {
            source.checkpointID($0, with: target, plan) + (plan.fetch == nil ? "" : "/fetch")
        }
    }

    /// A mistake: the peer's copies of the checkpoints count, whatever is here.
    func believePeersCheckpoints() throws {
        for id in checkpointIDs {
            guard let theirs = try target.store.readRows({ try $0.peerCheckpoint(id) }) else { continue }
            try source.store.write { try $0.checkpointTables.saveLocalCheckpoint(id, theirs.body) }
        }
    }

    func copyCheckpoints() throws {
        for id in checkpointIDs {
            guard let own = try source.store.readRows({ try $0.localCheckpoint(id) }) else { continue }
            try target.store.write { transaction in
                let revision = try transaction.peerCheckpoint(id)?.revision ?? 0
                _ = try transaction.checkpointTables.savePeerCheckpoint(id, replacing: revision, own)
            }
        }
    }

    private func activePlan(_ isFirst: Bool) -> ActivePlan {
        let bindings = zip(source.collections, checkpointIDs).map { collection, id in
            var binding = ActivePlan.Binding(name: collection.name, checkpointID: id)
            binding.isEmpty = source.store.lastSequence(collection) == 0
            binding.documentIDs = plan.documentIDs
            binding.filtersPull = plan.pullFilter != nil || plan.filter != nil
            return binding
        }
        var activePlan = ActivePlan(
            collections: bindings,
            pushes: plan.pushes,
            pulls: plan.pulls,
            isContinuous: plan.isContinuous
        )
        activePlan.reset = isFirst ? plan.reset : .none
        return activePlan
    }

    private func activeReplicas() throws -> DatabaseReplicas {
        DatabaseReplicas(
            store: source.store,
            collections: source.collections,
            checkpointIDs: checkpointIDs,
            remote: try source.store.write {
                try $0.checkpointTables.remoteNumber(recordedName ?? remoteName)
            },
            rules: source.collections.map { _ in plan.rules },
            nowMilliseconds: { [wall = source.wall] in wall.now }
        )
    }

    private func beginActive() -> End {
        let end = End(source, surroundings.runtime)
        if let last = active { self.runtime.task { [self] in await finish(last) } }
        active = end
        return end
    }

    func makeActive(_ connection: PeerConnection, _ isFirst: Bool) throws -> ReplicationDriver {
        var activePlan = activePlan(isFirst)
        if plan.pulls, activePlan.collections.contains(where: \.isEmpty) { source.mayLackTombstones = true }
        if let fetch = plan.fetch {
            activePlan.isFetch = true
            for index in activePlan.collections.indices {
                activePlan.collections[index].documentIDs =
                    index == fetch.collection ? fetch.documentIDs : ["nothing"]
            }
        }
        activePlan.usesDeltas = plan.activeDeltas
        activePlan.isPlain = source.isHub
        let (sessionPlan, replicas, end) = (activePlan, try activeReplicas(), beginActive())
        return makeDriver(end, replicas, connection, hooks(end)) {
            ReplicationSession(active: sessionPlan, replicas: $0, tuning: plan.tuning)
        }
    }

    /// A replication over another wire, whose sessions use the database itself.
    func makeActive(over wire: any SimulatedWire, _ isFirst: Bool) async throws -> any Replication {
        let end = beginActive()
        let runtime = surroundings.runtime.runtime(driver: end.executor, wall: end.owner.wall)
        end.time = runtime.clock as? SimulatedTime
        let access = surroundings.access()
        let link = wire.link(
            to: target,
            surroundings.runtime,
            plan.httpFaults,
            under: access?.policy,
            seed: dice.next()
        ) { [surroundings, source, target] in
            surroundings.trace("\(source.index)>\(target.index) \($0)")
        }
        otherLink = link
        var options = ConnectionOptions()
        if let access {
            options.authenticator = BasicAuthenticator(username: access.user, password: "secret")
        }
        let request = ReplicationRequest(
            options: options,
            runtime: runtime,
            recordName: { [self] in recordedName = $0 },
            begin: { [self] in
                // The process may have died, and started again, while this one asked for the name.
                if end.isDead { throw LoveseatError(.notOpen, "the process has died") }
                return ReplicationRequest.Work(
                    plan: activePlan(isFirst),
                    store: source.store,
                    replicas: try activeReplicas(),
                    observed: source.collections,
                    hooks: hooks(end)
                )
            }
        )
        return try await link.replicate(with: request)
    }
}
