import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Two sessions joined by a link of the virtual clock.
final class SimulatedConnection {
    struct Plan {
        var pushes = true
        var pulls = true
        var isContinuous = false
        var reset = ActivePlan.Reset.none
        var latency = 1...5
        /// How long a side takes before it works on a frame.
        var workDelay = 0...0
        var tuning = ReplicationTuning()
        /// The number of frames after which the link breaks; nil for never.
        var cutAfter: Int?
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
        /// The documents that this connection pulls for another one.
        var fetch: FetchNotice?
    }

    /// One side.
    final class End {
        let owner: SimulatedPeer
        let peer: ReplicationPeer
        let replica: SimulatedReplica
        var timers: [ReplicationTimer: VirtualClock.Token] = [:]
        var framesOnTheWay = 0
        var lastArrival = 0
        var progress = ReplicationProgress()
        var isBusy = true
        var failure: LoveseatError?

        init(
            owner: SimulatedPeer,
            store: any RevisionStore,
            _ session: (any RevisionStore) -> ReplicationSession
        ) {
            self.owner = owner
            replica = SimulatedReplica(store, owner: owner)
            peer = ReplicationPeer(session: session(replica))
        }
    }

    private static let framesInFlight = 8

    let plan: Plan
    let active: End
    let passive: End
    /// Under which address the active side knows the passive one.
    var remoteName: String { plan.remoteName ?? "peer-\(passive.owner.index)" }
    private(set) var isOpen = true
    /// It ended by itself, and not because the link broke or a side died.
    private(set) var endedWell = false
    /// Makes a connection that pulls documents by their IDs, and says whether it ended well.
    var onFetch: ((FetchNotice, @escaping (Bool) -> Void) -> Void)?
    private let clock: VirtualClock
    private var generator: SeededGenerator
    private var frames = 0
    private let trace: (String) -> Void
    /// Says what every database is asked and answers, for people; not a part of the trace.
    var detail: ((String) -> Void)? {
        didSet { for end in [active, passive] { end.replica.detail = detail } }
    }
    private let onEnd: (SimulatedConnection) -> Void

    init(
        from source: SimulatedPeer,
        to target: SimulatedPeer,
        plan: Plan,
        access: PeerAccess? = nil,
        clock: VirtualClock,
        seed: UInt64,
        wrap: (any RevisionStore, SimulatedPeer) -> any RevisionStore,
        trace: @escaping (String) -> Void,
        onEnd: @escaping (SimulatedConnection) -> Void
    ) throws {
        self.plan = plan
        self.clock = clock
        self.trace = trace
        self.onEnd = onEnd
        generator = SeededGenerator(seed: seed)
        let ids = source.collections.indices.map {
            source.checkpointID($0, with: target, plan) + (plan.fetch == nil ? "" : "/fetch")
        }
        let remote = try source.store.write { try $0.remoteNumber(plan.remoteName ?? "peer-\(target.index)") }
        if plan.trustsOwnCheckpoint {
            for id in ids {
                guard let own = try source.store.readRows({ try $0.localCheckpoint(id) }) else { continue }
                try target.store.write { transaction in
                    let revision = try transaction.peerCheckpoint(id)?.revision ?? 0
                    _ = try transaction.savePeerCheckpoint(id, replacing: revision, own)
                }
            }
        }
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
        activePlan.reset = plan.reset
        if let fetch = plan.fetch {
            activePlan.isFetch = true
            for index in activePlan.collections.indices {
                activePlan.collections[index].documentIDs =
                    index == fetch.collection ? fetch.documentIDs : ["nothing"]
            }
        }
        activePlan.usesDeltas = plan.activeDeltas
        let now = { Int64(1_700_000_000_000 + clock.now) }
        let activeStore = StoreReplica(
            store: source.store,
            collections: source.collections,
            checkpointIDs: ids,
            remote: remote,
            rules: source.collections.map { _ in plan.rules },
            nowMilliseconds: now
        )
        active = End(owner: source, store: wrap(activeStore, source)) {
            ReplicationSession(active: activePlan, store: $0, tuning: plan.tuning)
        }
        var passivePlan = PassivePlan(collections: target.collections.map(\.name))
        passivePlan.usesDeltas = plan.passiveDeltas
        passivePlan.isPlain = target.isHub
        passivePlan.restrictsAccess = access != nil
        let passiveStore = StoreReplica(store: target.store, access: access, nowMilliseconds: now)
        passive = End(owner: target, store: wrap(passiveStore, target)) {
            ReplicationSession(passive: passivePlan, store: $0, tuning: plan.tuning)
        }
    }

    func open() {
        for end in [active, passive] {
            end.owner.listen(end) { [unowned self, unowned end] collection in
                clock.schedule(after: 0) { [weak self, weak end] in
                    guard let self, let end, isOpen else { return }
                    self.run(end) { $0.localChange(collection) }
                }
            }
            run(end) { $0.connected(.mobile3) }
        }
    }

    /// What the passive side lets the active one have is something else now.
    func accessChanged() {
        guard isOpen else { return }
        run(passive) { $0.accessChanged() }
    }

    /// The link breaks: both sides notice, what was on the way is lost.
    func cut() {
        guard isOpen else { return }
        isOpen = false
        trace("cut \(active.owner.index)-\(passive.owner.index)")
        for end in [active, passive] {
            perform(end.peer.disconnected(), of: end)
            leave(end)
        }
        onEnd(self)
    }

    /// One side's process dies: it notices nothing more, and nothing that it kept in memory is written down.
    func crash(_ peer: SimulatedPeer) {
        guard isOpen else { return }
        isOpen = false
        for end in [active, passive] {
            if end.owner !== peer { perform(end.peer.disconnected(), of: end) }
            leave(end)
        }
        onEnd(self)
    }

    private func leave(_ end: End) {
        end.owner.unlisten(end)
        for timer in end.timers.values { clock.cancel(timer) }
        end.timers = [:]
    }

    private func run(_ end: End, _ event: (ReplicationPeer) -> [ReplicationPeer.Action]) {
        end.peer.now = Int64(1_700_000_000 + clock.now / 1_000)
        perform(event(end.peer), of: end)
        pump(end)
    }

    private func perform(_ first: [ReplicationPeer.Action], of end: End) {
        for action in first {
            switch action {
            // A peer that stands still is a finding.
            case .setTimer(.silence, _): break
            case .setTimer(let timer, let milliseconds):
                if let old = end.timers[timer] { clock.cancel(old) }
                end.timers[timer] = clock.schedule(after: milliseconds) { [weak self, weak end] in
                    guard let self, let end, isOpen else { return }
                    end.timers[timer] = nil
                    run(end) { $0.timerFired(timer) }
                }
            case .cancelTimer(let timer):
                if let old = end.timers.removeValue(forKey: timer) { clock.cancel(old) }
            case .resolve(let notice): resolve(notice, end)
            case .fetch(let notice):
                onFetch?(notice) { [weak self, weak end] isComplete in
                    guard let self, let end, isOpen else { return }
                    run(end) { $0.fetched(notice, isComplete: isComplete) }
                }
            case .report(.activity(let isBusy, let progress)):
                (end.isBusy, end.progress) = (isBusy, progress)
            case .report(.failure(let error)): end.failure = end.failure ?? error
            case .report(.checkpointNotSaved): break
            case .report(.document(let event)):
                trace(
                    "\(end.owner.index) \(event.isPush ? "push" : "pull") \(event.documentID) \(event.error?.code.description ?? "ok")"
                )
            case .close(let code, _): finish(end, code)
            }
        }
    }

    private func resolve(_ notice: ConflictNotice, _ end: End) {
        let (collection, id) = (notice.collection, notice.documentID)
        let fails = generator.chance(plan.resolverFailures)
        clock.schedule(after: generator.int(0...20)) { [weak self, weak end] in
            guard let self, let end, isOpen else { return }
            let resolver = plan.merges ? MergingResolver.resolve : DefaultConflictResolver.resolve
            let failure = end.owner.settle(notice, fails: fails, by: resolver)
            trace("\(end.owner.index) resolved \(id)")
            run(end) { $0.resolved(collection, documentID: id, failure) }
        }
    }

    /// Hands frames to the link as long as it takes them.
    private func pump(_ end: End) {
        while isOpen, end.framesOnTheWay < Self.framesInFlight {
            let (frame, actions) = end.peer.nextFrame()
            if !actions.isEmpty { perform(actions, of: end) }
            guard let frame, isOpen else { return }
            frames += 1
            if let limit = plan.cutAfter, frames > limit { return cut() }
            let other = end === active ? passive : active
            end.framesOnTheWay += 1
            end.lastArrival = max(
                end.lastArrival,
                clock.now + generator.int(plan.latency) + generator.int(plan.workDelay)
            )
            trace("\(end.owner.index)>\(other.owner.index) \(frame.count) \(frame.suffix(4))")
            clock.schedule(after: end.lastArrival - clock.now) { [weak self, weak end, weak other] in
                guard let self, let end, let other, isOpen else { return }
                end.framesOnTheWay -= 1
                run(other) { $0.receive(frame) }
                if isOpen { pump(end) }
            }
        }
    }

    /// A session said goodbye: the other side hears of it after all that was sent before.
    private func finish(_ end: End, _ code: Int) {
        trace("\(end.owner.index) closes \(code)")
        let other = end === active ? passive : active
        clock.schedule(after: max(0, end.lastArrival - clock.now) + 1) { [weak self] in
            guard let self, isOpen else { return }
            isOpen = false
            endedWell = end.failure == nil
            perform(other.peer.disconnected(), of: other)
            leave(active)
            leave(passive)
            onEnd(self)
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
