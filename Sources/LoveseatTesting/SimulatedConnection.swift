import LoveseatBLIP
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A replication of two simulated peers: the supervisor, the server and the drivers that ship, over links of the virtual clock.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class SimulatedConnection: @unchecked Sendable {
    struct Plan: @unchecked Sendable {
        var pushes = true
        var pulls = true
        var isContinuous = false
        var reset = ActivePlan.Reset.none
        var link = SimulatedLink.Plan()
        /// How long a connection takes to be made, in milliseconds.
        var connectDelay = 0...0
        /// The number of attempts to connect; nil for no end.
        var attempts: UInt? = 1
        var storeDelay = 0...0
        var tuning = ReplicationTuning()
        /// How often a resolver throws and leaves the conflict for the next start.
        var resolverFailures = 0.0
        /// Conflicts are merged rather than decided.
        var merges = false
        var activeDeltas = false
        var passiveDeltas = false
        /// What is left of a document's number decides whether it is pushed or pulled; nil for all.
        var pushFilter: Int?
        var pullFilter: Int?
        var documentIDs: [String]?
        /// Decides over documents instead, both ways.
        var filter: CollectionRules.Filter?
        /// Tells one such filter from another one.
        var filterVersion: String?
        /// Under which address the other side is known; nil for the first one.
        var remoteName: String?
        /// A mistake: what the peer has as its copy of the checkpoint is not looked at.
        var trustsOwnCheckpoint = false
        /// Mistakes of the drivers.
        var omissions: ReplicationDriver.Omissions = []
        /// The documents that this connection pulls for another one.
        var fetch: FetchNotice?
    }

    /// What a connection needs of the history around it.
    struct Surroundings {
        let runtime: SimulatedRuntime
        /// What the passive side lets the active one do; nil for everything.
        let access: () -> PeerAccess?
        let wrap: (any RevisionStore, SimulatedPeer) -> any RevisionStore
        /// Pulls documents by their IDs over another connection, and says whether that ended well.
        let fetch: (FetchNotice) async -> Bool
        let trace: (String) -> Void
        /// Says what every database is asked and answers, for people; not a part of the trace.
        let detail: ((String) -> Void)?
        let onEnd: (SimulatedConnection) -> Void
    }

    /// One side of one attempt.
    final class End: @unchecked Sendable {
        let owner: SimulatedPeer
        let executor: SimulatedExecutor
        var driver: ReplicationDriver?
        /// The clock of that driver alone.
        var time: SimulatedTime?
        var progress = ReplicationProgress()
        /// Its process died: it writes nothing down any more.
        var isDead = false

        init(_ owner: SimulatedPeer, _ runtime: SimulatedRuntime) {
            self.owner = owner
            executor = SimulatedExecutor(runtime)
        }
    }

    let plan: Plan
    let source: SimulatedPeer
    let target: SimulatedPeer
    /// Under which address the active side knows the passive one.
    var remoteName: String { plan.remoteName ?? "peer-\(target.index)" }
    private(set) var isOpen = true
    /// It ended by itself, and not because the link broke or a side died.
    private(set) var endedWell = false
    private(set) var failure: LoveseatError?
    /// Whether a driver ended and left timers behind.
    private(set) var hasLeftTimers = false
    private(set) var revisionsSent = 0
    /// What the active side has done in the last attempt.
    private(set) var progress = ReplicationProgress()
    private let clock: VirtualClock
    private let surroundings: Surroundings
    private let runtime: ReplicationRuntime
    private let supervisor: ReplicationSupervisor
    private var dice: SeededGenerator
    private var wasEnded = false
    private var isRunning = true
    private var serving = 0
    private var attempts = 0
    /// The last attempt.
    private var (active, passive): (End?, End?)
    private var link: SimulatedLink?

    init(
        from source: SimulatedPeer,
        to target: SimulatedPeer,
        plan: Plan,
        seed: UInt64,
        _ surroundings: Surroundings
    ) {
        (self.source, self.target, self.plan) = (source, target, plan)
        self.surroundings = surroundings
        clock = surroundings.runtime.clock
        runtime = surroundings.runtime.runtime()
        supervisor = ReplicationSupervisor(runtime: runtime)
        dice = SeededGenerator(seed: seed)
    }

    // MARK: From outside

    func open() {
        let policy = RetryPolicy(
            isContinuous: plan.isContinuous,
            maxAttempts: plan.attempts,
            maxWait: 8,
            reconnectsAfterGoingAway: true
        )
        var steps = ReplicationSupervisor.Steps(
            connect: { [self] in try await connect() },
            makeDriver: { [self] connection, isFirst throws(LoveseatError) in
                do { return try makeActive(connection.channel, isFirst) } catch {
                    throw LoveseatError(storage: error)
                }
            }
        )
        steps.report = { [self] in surroundings.trace("\(source.index)>\(target.index) \($0.name)") }
        runtime.task { [self] in
            let error = await supervisor.run(policy, steps)
            if let error, active?.isDead != true { note(error) }
            endedWell = error == nil && !wasEnded
            isRunning = false
            await finish(active)
            endIfOver()
        }
    }

    /// What the passive side lets the active one have is something else now.
    func accessChanged() {
        guard isOpen, let driver = passive?.driver else { return }
        runtime.task { await driver.accessChanged() }
    }

    /// The link breaks: both sides notice, in their time, and what was on the way may be lost.
    func cut() { link?.cut() }

    /// The active side stops in good order, as an app stops a replicator.
    func stop() {
        wasEnded = true
        supervisor.stop()
    }

    /// The active side disconnects for so many milliseconds.
    func suspend(for milliseconds: Int) {
        guard isOpen, !wasEnded else { return }
        supervisor.suspend()
        clock.schedule(after: milliseconds) { [self] in supervisor.resume() }
    }

    /// Cuts the link for good.
    func abandon() {
        stop()
        cut()
    }

    /// One side's process dies: it notices nothing more, and nothing that it kept in memory is written down.
    func crash(_ peer: SimulatedPeer) {
        guard isOpen else { return }
        if source === peer {
            active?.isDead = true
            stop()
            link?.kill(.near)
        } else {
            passive?.isDead = true
            link?.kill(.far)
        }
    }

    // MARK: The steps

    private func connect() async throws -> PeerConnection {
        let delay = dice.int(plan.connectDelay)
        if delay > 0 { try await runtime.clock.sleep(for: .milliseconds(delay)) }
        attempts += 1
        guard let server = target.server else {
            throw LoveseatError(.init(5_017), "peer \(target.index) does not listen")
        }
        if plan.trustsOwnCheckpoint { try copyCheckpoints() }
        var linkPlan = plan.link
        linkPlan.cutAfter = plan.link.cutAfter.flatMap {
            attempts == 1 || dice.chance(0.5) ? dice.int(1...$0) : nil
        }
        let link = SimulatedLink(clock, linkPlan, seed: dice.next())
        let (source, target, trace) = (source, target, surroundings.trace)
        link.onSend = { side, frame in
            let (from, to) = side == .near ? (source.index, target.index) : (target.index, source.index)
            trace("\(from)>\(to) \(frame.count) \(frame.suffix(4))")
        }
        link.onCut = { trace("cut \(source.index)-\(target.index)") }
        self.link = link
        let end = End(target, surroundings.runtime)
        passive = end
        serving += 1
        let connection = PeerConnection(channel: link.channel(.far), negotiated: .mobile3)
        runtime.task { [self] in
            let error = await server.serve(connection) { makePassive(end, connection.channel, $0) }
            if let error, !end.isDead { note(error) }
            await finish(end)
            serving -= 1
            endIfOver()
        }
        return PeerConnection(channel: link.channel(.near), negotiated: .mobile3)
    }

    private func finish(_ end: End?) async {
        revisionsSent += await end?.driver?.revisionsSent ?? 0
        // What was cancelled wakes up in this very moment.
        try? await runtime.clock.sleep(for: .milliseconds(1))
        if let time = end?.time, time.sleeping > 0 { hasLeftTimers = true }
        end?.driver = nil
    }

    private func endIfOver() {
        guard isOpen, !isRunning, serving == 0 else { return }
        isOpen = false
        surroundings.onEnd(self)
    }

    /// Links that break and peers that leave are no mistakes.
    private func note(_ error: LoveseatError) {
        let isExpected = error.isTransient || error.code == .webSocketGoingAway
        if !isExpected, failure == nil { failure = error }
    }

    private func hooks(_ end: End) -> ReplicationDriver.Hooks {
        var hooks = ReplicationDriver.Hooks()
        hooks.resolve = { [self] in await resolve($0, end) }
        hooks.fetch = { [self] in end.isDead ? false : await surroundings.fetch($0) }
        hooks.report = { [self] in heard($0, end) }
        return hooks
    }

    private func heard(_ report: ReplicationReport, _ end: End) {
        guard !end.isDead else { return }
        switch report {
        case .activity(_, let progress):
            end.progress = progress
            if end === active { self.progress = progress }
        case .document(let event):
            surroundings.trace(
                "\(end.owner.index) \(event.isPush ? "push" : "pull") \(event.documentID) \(event.error?.code.description ?? "ok")"
            )
        case .failure, .checkpointNotSaved: break
        }
    }

    private func resolve(_ notice: ConflictNotice, _ end: End) async -> LoveseatError? {
        let fails = dice.chance(plan.resolverFailures)
        try? await runtime.clock.sleep(for: .milliseconds(dice.int(0...20)))
        guard !end.isDead, !Task.isCancelled else {
            return LoveseatError(.conflict, "the conflict waits for the next replication")
        }
        let resolver = plan.merges ? MergingResolver.resolve : DefaultConflictResolver.resolve
        surroundings.trace("\(end.owner.index) resolves \(notice.documentID)")
        return end.owner.settle(notice, fails: fails, by: resolver)
    }

    private func makeDriver(
        _ end: End,
        _ replica: any RevisionStore,
        _ channel: any MessageChannel,
        _ hooks: ReplicationDriver.Hooks,
        _ makeSession: (any RevisionStore) -> ReplicationSession
    ) -> ReplicationDriver {
        var delays = SeededGenerator(seed: dice.next())
        let (delay, detail) = (plan.storeDelay, surroundings.detail)
        let store = SimulatedReplica(
            surroundings.wrap(replica, end.owner),
            owner: end.owner,
            isDead: { end.isDead },
            onAsk: { if delay.upperBound > 0 { end.executor.block(for: delays.int(delay)) } },
            detail: detail
        )
        // The driver and everything else run on one thread.
        nonisolated(unsafe) let session = makeSession(store)
        let runtime = surroundings.runtime.runtime(driver: end.executor)
        end.time = runtime.clock as? SimulatedTime
        var hooks = hooks
        hooks.omissions = plan.omissions
        let driver = ReplicationDriver(
            session: session,
            store: end.owner.store,
            collections: end.owner.collections,
            channel: channel,
            runtime: runtime,
            compressionLevel: BLIPLimits().compressionLevel,
            hooks: hooks
        )
        end.driver = driver
        return driver
    }

    // MARK: The passive side

    private func makePassive(
        _ end: End,
        _ channel: any MessageChannel,
        _ note: @escaping @Sendable (ReplicationReport) -> Void
    ) -> ReplicationDriver {
        var passive = PassivePlan(collections: target.collections.map(\.name))
        let access = surroundings.access()
        passive.usesDeltas = plan.passiveDeltas
        passive.isPlain = target.isHub
        passive.restrictsAccess = access != nil
        var hooks = hooks(end)
        let report = hooks.report
        hooks.report = {
            report($0)
            note($0)
        }
        let replica = StoreReplica(store: target.store, access: access, nowMilliseconds: runtime.unixTime)
        return makeDriver(end, replica, channel, hooks) {
            ReplicationSession(passive: passive, store: $0, tuning: plan.tuning)
        }
    }

    // MARK: The active side

    private var checkpointIDs: [String] {
        source.collections.indices.map {
            source.checkpointID($0, with: target, plan) + (plan.fetch == nil ? "" : "/fetch")
        }
    }

    private func copyCheckpoints() throws {
        for id in checkpointIDs {
            guard let own = try source.store.readRows({ try $0.localCheckpoint(id) }) else { continue }
            try target.store.write { transaction in
                let revision = try transaction.peerCheckpoint(id)?.revision ?? 0
                _ = try transaction.savePeerCheckpoint(id, replacing: revision, own)
            }
        }
    }

    private func makeActive(_ channel: any MessageChannel, _ isFirst: Bool) throws -> ReplicationDriver {
        let ids = checkpointIDs
        let bindings = zip(source.collections, ids).map { collection, id in
            var binding = ActivePlan.Binding(name: collection.name, checkpointID: id)
            binding.isEmpty = source.store.lastSequence(collection) == 0
            if binding.isEmpty, plan.pulls { source.mayLackTombstones = true }
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
        if let fetch = plan.fetch {
            activePlan.isFetch = true
            for index in activePlan.collections.indices {
                activePlan.collections[index].documentIDs =
                    index == fetch.collection ? fetch.documentIDs : ["nothing"]
            }
        }
        activePlan.usesDeltas = plan.activeDeltas
        let replica = StoreReplica(
            store: source.store,
            collections: source.collections,
            checkpointIDs: ids,
            remote: try source.store.write { try $0.remoteNumber(remoteName) },
            rules: source.collections.map { _ in plan.rules },
            nowMilliseconds: runtime.unixTime
        )
        let end = End(source, surroundings.runtime)
        if let last = active { self.runtime.task { [self] in await finish(last) } }
        active = end
        return makeDriver(end, replica, channel, hooks(end)) {
            ReplicationSession(active: activePlan, store: $0, tuning: plan.tuning)
        }
    }
}

extension ReplicationSupervisor.Event {
    fileprivate var name: String {
        switch self {
        case .connecting: "connects"
        case .suspended: "is suspended"
        case .disconnected: "is disconnected"
        case .networkChanged: "has another network"
        case .waiting(let error, let seconds): "waits \(Int(seconds * 1_000)) after \(error.code)"
        }
    }
}

extension SimulatedConnection.Plan {
    /// The filters, as an app would write them.
    fileprivate var rules: CollectionRules {
        func filter(_ rest: Int) -> CollectionRules.Filter {
            { candidate, _ in (Int(candidate.documentID.dropFirst(3)) ?? 0) % 3 == rest }
        }
        var rules = CollectionRules()
        rules.documentIDs = documentIDs.map { Set($0) }
        rules.pushFilter = pushFilter.map(filter)
        rules.pullFilter = pullFilter.map(filter)
        if let whole = self.filter { (rules.pushFilter, rules.pullFilter) = (whole, whole) }
        rules.asksResolver = merges
        return rules
    }

    /// What tells configurations apart that must not share a checkpoint (replication.md §5.2). Filters of an app's do
    /// not; an app that changes one resets.
    var checkpointScope: String { "\(pushFilter ?? -1)/\(pullFilter ?? -1)" }
}
