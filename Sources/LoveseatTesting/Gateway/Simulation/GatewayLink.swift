import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A client's session and the gateway's, joined by a link of the virtual clock.
final class GatewayLink {
    struct Plan {
        var pushes = true
        var pulls = true
        var isContinuous = false
        var reset = ActivePlan.Reset.none
        var autoPurges = true
        var latency = 1...5
        /// How many bytes go over the link in a millisecond, each way.
        var bytesPerMillisecond = 100_000
        /// How long the gateway takes before it works on what came.
        var workDelay = 0...5
        var tuning = ReplicationTuning()
        /// The number of frames after which the link breaks; nil for never.
        var cutAfter: Int?
        /// How often a resolver throws and leaves the conflict for the next start.
        var resolverFailures = 0.0
        var documentIDs: [String]?
    }

    private static let framesInFlight = 16

    let client: GatewayClient
    let plan: Plan
    let line: GatewayLine
    private(set) var isOpen = true
    private(set) var frames = 0
    private(set) var failure: LoveseatError?
    private let peer: ReplicationPeer
    private let clock: VirtualClock
    private var generator: SeededGenerator
    private var timers: [ReplicationTimer: VirtualClock.Token] = [:]
    private var isWorkScheduled = false
    /// When the link is free, and how many frames it holds: there, and back.
    private var (freeThere, freeBack) = (0, 0)
    private var (onTheWayThere, onTheWayBack) = (0, 0)
    private let trace: (String) -> Void
    private let onEnd: (GatewayLink) -> Void

    init(
        _ client: GatewayClient,
        _ accepted: GatewayTwin.Accepted,
        plan: Plan,
        clock: VirtualClock,
        seed: UInt64,
        trace: @escaping (String) -> Void,
        onEnd: @escaping (GatewayLink) -> Void
    ) throws {
        (self.client, self.plan, self.clock) = (client, plan, clock)
        (self.trace, self.onEnd) = (trace, onEnd)
        generator = SeededGenerator(seed: seed)
        line = GatewayLine(accepted.session)
        let collection = client.peer.collections[0]
        let checkpoint = "cp-\(client.peer.index)-\(plan.documentIDs?.joined(separator: ",") ?? "")"
        var binding = ActivePlan.Binding(name: collection.name, checkpointID: checkpoint)
        binding.isEmpty = client.peer.store.lastSequence(collection) == 0
        binding.documentIDs = plan.documentIDs
        var active = ActivePlan(
            collections: [binding],
            pushes: plan.pushes,
            pulls: plan.pulls,
            isContinuous: plan.isContinuous
        )
        active.reset = plan.reset
        active.autoPurges = plan.autoPurges
        var rules = CollectionRules()
        rules.documentIDs = plan.documentIDs.map { Set($0) }
        let store = StoreReplica(
            store: client.peer.store,
            collections: [collection],
            checkpointIDs: [checkpoint],
            remote: try client.peer.store.write { try $0.remoteNumber("gateway") },
            rules: [rules],
            nowMilliseconds: { Int64(1_700_000_000_000 + clock.now) }
        )
        let replica = SimulatedReplica(store, owner: client.peer)
        peer = ReplicationPeer(
            session: ReplicationSession(active: active, store: replica, tuning: plan.tuning)
        )
    }

    func open(_ negotiated: ReplicationProtocol) {
        client.peer.listen(self) { [unowned self] collection in
            clock.schedule(after: 0) { [weak self] in self?.run { $0.localChange(collection) } }
        }
        run { $0.connected(negotiated) }
    }

    /// The link breaks, or the gateway is gone: TCP ends, and no close frame comes (gateway.md 16).
    func cut() {
        guard isOpen else { return }
        isOpen = false
        trace("cut \(client.peer.index)")
        perform(peer.disconnected())
        end()
    }

    /// The client's process dies.
    func crash() {
        guard isOpen else { return }
        isOpen = false
        end()
    }

    private func end() {
        client.peer.unlisten(self)
        for timer in timers.values { clock.cancel(timer) }
        timers = [:]
        onEnd(self)
    }

    // MARK: The client

    private func run(_ event: (ReplicationPeer) -> [ReplicationPeer.Action]) {
        guard isOpen else { return }
        peer.now = Int64(1_700_000_000 + clock.now / 1_000)
        perform(event(peer))
        pumpThere()
    }

    private func perform(_ first: [ReplicationPeer.Action]) {
        var actions = first[...]
        while let action = actions.popFirst() {
            switch action {
            // A peer that stands still is a finding.
            case .setTimer(.silence, _): break
            case .setTimer(let timer, let milliseconds):
                if let old = timers[timer] { clock.cancel(old) }
                timers[timer] = clock.schedule(after: milliseconds) { [weak self] in
                    guard let self, isOpen else { return }
                    timers[timer] = nil
                    run { $0.timerFired(timer) }
                }
            case .cancelTimer(let timer): if let old = timers.removeValue(forKey: timer) { clock.cancel(old) }
            case .resolve(let notice): resolve(notice)
            case .fetch(let notice):
                // A client of this simulation has one connection at a time.
                actions.append(contentsOf: peer.fetched(notice, isComplete: false))
            case .report(.activity): break
            case .report(.failure(let error)): failure = failure ?? error
            case .report(.checkpointNotSaved): break
            case .report(.document(let event)):
                let what = event.isPush ? "push" : "pull"
                trace(
                    "\(client.peer.index) \(what) \(event.documentID) \(event.error?.code.description ?? "ok")"
                )
                if event.isPush, event.isDeleted, event.error == nil {
                    client.deleted.remove(event.documentID)
                }
            case .close(let code, _): close(code)
            }
        }
    }

    private func resolve(_ notice: ConflictNotice) {
        let (collection, id) = (notice.collection, notice.documentID)
        let fails = generator.chance(plan.resolverFailures)
        clock.schedule(after: generator.int(0...20)) { [weak self] in
            guard let self, isOpen else { return }
            let failure = client.peer.settle(notice, fails: fails)
            trace("\(client.peer.index) resolved \(id)")
            run { $0.resolved(collection, documentID: id, failure) }
        }
    }

    private func close(_ code: Int) {
        trace("\(client.peer.index) closes \(code)")
        clock.schedule(after: max(0, freeThere - clock.now) + 1) { [weak self] in
            guard let self, isOpen else { return }
            isOpen = false
            end()
        }
    }

    // MARK: The link

    private func pumpThere() {
        while isOpen, onTheWayThere < Self.framesInFlight {
            let (frame, actions) = peer.nextFrame()
            if !actions.isEmpty { perform(actions) }
            guard let frame, isOpen, count() else { return }
            onTheWayThere += 1
            freeThere = arrival(of: frame, after: freeThere)
            clock.schedule(after: freeThere - clock.now) { [weak self] in
                guard let self, isOpen else { return }
                onTheWayThere -= 1
                do { try line.receive(frame) } catch { return fail(error) }
                scheduleWork()
                pumpThere()
            }
        }
    }

    private func pumpBack() {
        while isOpen, onTheWayBack < Self.framesInFlight {
            let frame: [UInt8]?
            do { frame = try line.nextFrame() } catch { return fail(error) }
            guard let frame, count() else { return }
            onTheWayBack += 1
            freeBack = arrival(of: frame, after: freeBack)
            clock.schedule(after: freeBack - clock.now) { [weak self] in
                guard let self, isOpen else { return }
                onTheWayBack -= 1
                run { $0.receive(frame) }
                pumpBack()
            }
        }
    }

    private func arrival(of frame: [UInt8], after free: Int) -> Int {
        max(free, clock.now + generator.int(plan.latency)) + frame.count / plan.bytesPerMillisecond
    }

    /// Whether one more frame gets through.
    private func count() -> Bool {
        frames += 1
        guard let limit = plan.cutAfter, frames > limit else { return true }
        cut()
        return false
    }

    private func fail(_ error: any Error) {
        failure = failure ?? LoveseatError(.remoteError, "the gateway cannot read the client: \(error)")
        cut()
    }

    /// The gateway works on what waits a moment later; also when the database changed, for a continuous feed.
    func scheduleWork() {
        guard isOpen, !isWorkScheduled else { return }
        isWorkScheduled = true
        clock.schedule(after: generator.int(plan.workDelay)) { [weak self] in
            guard let self, isOpen else { return }
            isWorkScheduled = false
            do { try line.work() } catch { return fail(error) }
            onWorked(self)
            pumpBack()
        }
    }

    /// Called after the gateway worked.
    var onWorked: (GatewayLink) -> Void = { _ in }
}

/// A client of the simulation: a database, and whose it is.
final class GatewayClient {
    let peer: SimulatedPeer
    let user: String
    /// The documents that were deleted here, and whose deletion the gateway has not acknowledged.
    var deleted: Set<String> = []
    /// The tombstones that were made here.
    var tombstones: Set<RevisionID> = []
    /// What the gateway refused for good, by document: no client sends it again (replication.md §9.2).
    var refused: [String: Set<JSONText>] = [:]

    init(_ peer: SimulatedPeer, user: String) { (self.peer, self.user) = (peer, user) }
}
