import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A Loveseat's driver and a session of Couchbase Lite 4, joined by a link of the virtual clock.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class LiteLink: @unchecked Sendable {
    struct Plan {
        /// Whether the peer of Couchbase Lite begins.
        var isLiteActive = false
        var pushes = true
        var pulls = true
        var isContinuous = false
        /// Whether both sides begin anew.
        var resets = false
        var usesDeltas = false
        var collections = [CollectionName.default]
        /// The address by which the peer knows the Loveseat; by default one that is made of its index.
        var address: String?
        /// The only documents to pull; nil for all.
        var documentIDs: [String]?
        /// The documents that are pushed, by their IDs.
        var pushFilter: (@Sendable (String) -> Bool)?
        var resolvers = Resolvers()
        var link = SimulatedLink.Plan()
        /// How long the peer takes before it works on what came.
        var workDelay = 0...5
        var tuning = ReplicationTuning()
        /// How often a resolver throws and leaves the conflict for the next start.
        var resolverFailures = 0.0
    }

    /// The decisions of each side's app about conflicts.
    struct Resolvers {
        var own: (ConflictCase) throws -> Resolution = DefaultConflictResolver.resolve
        var lite: (LiteConflict) -> LiteResolution = { $0.defaultResolution }
        /// Whether the own side has a resolver of the app.
        var isCustom = false

        static var merging: Resolvers {
            Resolvers(own: MergingResolver.resolve, lite: { $0.mergingResolution }, isCustom: true)
        }
    }

    /// The parts of the history that a link needs.
    struct Surroundings {
        let runtime: SimulatedRuntime
        let trace: (String) -> Void
        /// Reports messages and requests to the database, for people; not a part of the trace.
        let detail: ((String) -> Void)?
        let onEnd: (LiteLink) -> Void
        /// Puts something between the Loveseat's database and its sessions.
        var wrap: (any ReplicaSource, SimulatedPeer) -> any ReplicaSource = { replicas, _ in replicas }
        /// Called with each message that the Loveseat sends. The peer is given the result.
        var onMessage: ((BLIPConnection.Event, SimulatedPeer) -> BLIPConnection.Event)?
    }

    let own: SimulatedPeer
    let lite: LitePeer
    let plan: Plan
    let line: LiteLine
    private(set) var isOpen = true
    private(set) var failure: LoveseatError?
    private let clock: VirtualClock
    private let runtime: ReplicationRuntime
    private let surroundings: Surroundings
    private let link: SimulatedLink
    private var dice: SeededGenerator
    private var isWorkScheduled = false
    private var ending = Ending()
    private struct Ending {
        var isDriverDone = false
        var isLineDone = false
        var isLeaving = false
        /// The Loveseat's process died: it writes nothing down any more.
        var isDead = false
    }
    /// Frames that went over the link, both ways.
    var frames: Int { link.messages }

    init(_ own: SimulatedPeer, _ lite: LitePeer, plan: Plan, seed: UInt64, _ surroundings: Surroundings) {
        (self.own, self.lite, self.plan, self.surroundings) = (own, lite, plan, surroundings)
        clock = surroundings.runtime.clock
        runtime = surroundings.runtime.runtime(wall: own.wall)
        dice = SeededGenerator(seed: seed)
        link = SimulatedLink(clock, plan.link, seed: dice.next())
        line = LiteLine(Self.session(of: own, lite, plan))
        if let detail = surroundings.detail {
            line.onMessage = { detail("lite \(lite.index) (with \(own.index)) \($0)") }
        }
        if let onMessage = surroundings.onMessage { line.onArrival = { onMessage($0, own) } }
    }

    private static func session(of own: SimulatedPeer, _ lite: LitePeer, _ plan: Plan) -> LiteSession {
        if !plan.isLiteActive { return LiteSession(passive: lite.database, client: lite.nextClient()) }
        let ways = "\(plan.pushes)\(plan.pulls)"
        var litePlan = LitePlan(
            plan.collections.map { collection in
                LitePlan.Binding(
                    collection.path,
                    checkpointID: "cp-lite-\(lite.index)-\(own.index)-\(ways)-\(collection.path)",
                    documentIDs: plan.documentIDs
                )
            }
        )
        (litePlan.pushes, litePlan.pulls) = (plan.pushes, plan.pulls)
        litePlan.isContinuous = plan.isContinuous
        litePlan.resetsCheckpoint = plan.resets
        litePlan.resolver = plan.resolvers.lite
        if let filter = plan.pushFilter { litePlan.pushFilter = filter }
        return LiteSession(active: lite.database, litePlan, server: plan.address ?? "peer-\(own.index)")
    }

    func open() throws {
        link.listen(
            .far,
            { [weak self] frame in
                // Frames that were under way may arrive after the connection has ended.
                guard let self else { return }
                do { try line.receive(frame) } catch { return fail("cannot read: \(error)") }
                scheduleWork()
            },
            end: { [weak self] in self?.lineEnded() }
        )
        link.onRoom(from: .far) { [weak self] in self?.pump() }
        let driver = plan.isLiteActive ? makePassive() : try makeActive()
        runtime.task { [self] in
            let error = await driver.run()
            // Broken links are not mistakes, and a process that died has nothing to say.
            if let error, !ending.isDead, !error.isTransient, error.code != .webSocketGoingAway {
                failure = failure ?? error
            }
            surroundings.trace("\(own.index) has left \(lite.index)")
            ending.isDriverDone = true
            endIfOver()
        }
        // The other side begins.
        guard plan.isLiteActive else { return }
        line.session.start()
        scheduleWork()
    }

    /// The link breaks.
    func cut() {
        surroundings.trace("cut \(own.index)-\(lite.index)")
        link.cut()
    }

    /// The Loveseat's process dies: it notices nothing more, and nothing that it kept in memory is written down.
    func crash() {
        ending.isDead = true
        link.kill(.near)
    }

    // MARK: The Loveseat

    private func makeDriver(
        _ replicas: DatabaseReplicas,
        _ make: (any ReplicaSource) -> ReplicationSession
    ) -> ReplicationDriver {
        let layers = SimulatedReplica.layers(
            over: surroundings.wrap(replicas, own),
            owner: own,
            isDead: { [self] in ending.isDead },
            detail: surroundings.detail
        )
        // The driver and everything else run on one thread.
        nonisolated(unsafe) let session = make(layers)
        var hooks = ReplicationHooks()
        hooks.resolve = { [self] in await resolve($0) }
        hooks.report = { [self] in received($0) }
        return ReplicationDriver(
            session: session,
            store: own.store,
            observed: own.collections,
            connection: PeerConnection(channel: link.channel(.near), negotiated: .mobile4),
            runtime: runtime,
            compressionLevel: BLIPLimits().compressionLevel,
            hooks: hooks
        )
    }

    private func makePassive() -> ReplicationDriver {
        var passive = PassivePlan(collections: own.collections.map(\.name))
        passive.usesDeltas = plan.usesDeltas
        let replicas = DatabaseReplicas(
            store: own.store,
            nowMilliseconds: { [wall = own.wall] in wall.now }
        )
        let (sessionPlan, tuning) = (passive, plan.tuning)
        return makeDriver(replicas) {
            ReplicationSession(passive: sessionPlan, replicas: $0, tuning: tuning)
        }
    }

    private func makeActive() throws -> ReplicationDriver {
        let collections = plan.collections.compactMap { name in own.collections.first { $0.name == name } }
        let bindings = collections.map { collection in
            let ways = "\(plan.pushes)\(plan.pulls)"
            var binding = ActivePlan.Binding(
                name: collection.name,
                checkpointID: "cp-\(own.index)-\(lite.index)-\(ways)-\(collection.number)"
            )
            binding.isEmpty = own.store.lastSequence(collection) == 0
            if plan.pulls, binding.isEmpty { own.mayLackTombstones = true }
            binding.documentIDs = plan.documentIDs
            return binding
        }
        var active = ActivePlan(
            collections: bindings,
            pushes: plan.pushes,
            pulls: plan.pulls,
            isContinuous: plan.isContinuous
        )
        active.reset = plan.resets ? .checkpointAndMarks : .none
        active.usesDeltas = plan.usesDeltas
        var rules = CollectionRules()
        rules.asksResolver = plan.resolvers.isCustom
        if let filter = plan.pushFilter {
            rules.pushFilter = { candidate, _ in filter(candidate.documentID) }
        }
        let name = "lite-\(lite.index)"
        let replicas = DatabaseReplicas(
            store: own.store,
            collections: collections,
            checkpointIDs: bindings.map(\.checkpointID),
            remote: try own.store.write { try $0.checkpointTables.remoteNumber(name) },
            rules: collections.map { _ in rules },
            nowMilliseconds: { [wall = own.wall] in wall.now }
        )
        let (sessionPlan, tuning) = (active, plan.tuning)
        return makeDriver(replicas) {
            ReplicationSession(active: sessionPlan, replicas: $0, tuning: tuning)
        }
    }

    private func received(_ report: ReplicationReport) {
        // Progress is not a part of the history.
        guard !ending.isDead, case .document(let event) = report else { return }
        let what = event.isPush ? "push" : "pull"
        let error = event.error?.code.description ?? "ok"
        surroundings.trace("\(own.index) \(what) \(event.documentID) \(error)")
        // Most documents arrive.
        guard let error = event.error else { return }
        lite.refusals[event.documentID, default: []].insert("ours \(what) \(error.code)")
    }

    private func resolve(_ notice: ConflictNotice) async -> LoveseatError? {
        let fails = dice.chance(plan.resolverFailures)
        // The replication may end during the sleep, which the next line notices.
        try? await runtime.clock.sleep(for: .milliseconds(dice.int(0...20)))
        guard !ending.isDead, !Task.isCancelled else {
            return LoveseatError(.conflict, "the conflict waits for the next replication")
        }
        surroundings.trace("\(own.index) resolves \(notice.documentID)")
        return own.resolve(notice, fails: fails, by: plan.resolvers.own)
    }

    // MARK: The peer of Couchbase Lite

    private func pump() {
        while isOpen, link.isOpen, link.hasRoom(from: .far) {
            do {
                // The peer has said everything.
                guard let frame = try line.nextFrame() else { break }
                link.post([frame], from: .far)
            } catch { return fail("cannot send: \(error)") }
        }
        leaveIfDone()
    }

    private func fail(_ text: String) {
        failure = failure ?? LoveseatError(.remoteError, "the peer of Couchbase Lite \(text)")
        link.cut()
    }

    /// The peer works on what waits a moment later; also when its database changed.
    func scheduleWork() {
        if !link.isOpen || isWorkScheduled || ending.isLineDone { return }
        isWorkScheduled = true
        clock.schedule(after: dice.int(plan.workDelay)) { [weak self] in
            // The link may break before the peer begins.
            guard let self, link.isOpen else { return }
            isWorkScheduled = false
            do {
                try line.work(time: Int(lite.wall.now / 1_000))
            } catch { return fail("cannot answer: \(error)") }
            pump()
        }
    }

    /// A peer that is done saves its checkpoint, and leaves.
    private func leaveIfDone() {
        guard plan.isLiteActive, link.isOpen, !ending.isLeaving, line.isQuiet, line.session.isFinished else {
            return
        }
        ending.isLeaving = true
        link.close(.far, code: 1000, reason: "")
    }

    private func lineEnded() {
        if ending.isLineDone { return }
        ending.isLineDone = true
        for error in line.session.documentErrors {
            let text = "\(error.isPush ? "push" : "pull") \(error.error.domain)/\(error.error.code)"
            lite.refusals[error.id, default: []].insert(text)
        }
        endIfOver()
    }

    private func endIfOver() {
        // One side is still at work, or the end was reported.
        guard isOpen, ending.isDriverDone, ending.isLineDone else { return }
        isOpen = false
        surroundings.onEnd(self)
    }
}

extension LiteConflict {
    /// As ``MergingResolver`` decides.
    var mergingResolution: LiteResolution {
        if local.isDeleted || remote.isDeleted { return .deleted }
        let (own, other) = (local.body ?? [:], remote.body ?? [:])
        var merged = own
        for (key, value) in other {
            guard let mine = merged[key] else {
                merged[key] = value
                continue
            }
            if mine.description < value.description { merged[key] = value }
        }
        return merged == own ? .local : merged == other ? .remote : .merged(merged)
    }
}
