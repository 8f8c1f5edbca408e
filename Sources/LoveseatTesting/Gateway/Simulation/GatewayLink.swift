import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A client's driver and the gateway's session, joined by a link of the virtual clock.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class GatewayLink: @unchecked Sendable {
    struct Plan {
        var pushes = true
        var pulls = true
        var isContinuous = false
        var reset = ActivePlan.Reset.none
        var autoPurges = true
        var usesDeltas = false
        var link = SimulatedLink.Plan()
        /// How long the gateway takes before it works on what came.
        var workDelay = 0...5
        var tuning = ReplicationTuning()
        /// How often a resolver throws and leaves the conflict for the next start.
        var resolverFailures = 0.0
        /// Conflicts are merged rather than decided.
        var merges = false
        var documentIDs: [String]?
        /// Documents that are fetched by their IDs for another connection of the client.
        var fetch: FetchNotice?
    }

    let client: GatewayClient
    let plan: Plan
    let line: GatewayLine
    private(set) var isOpen = true
    private(set) var failure: LoveseatError?
    private let activePlan: ActivePlan
    private let clock: VirtualClock
    private let runtime: ReplicationRuntime
    private let link: SimulatedLink
    private var generator: SeededGenerator
    private var isWorkScheduled = false
    /// Whether the client's process died: it writes nothing down any more.
    private var isDead = false
    private let replicas: DatabaseReplicas
    /// Frames that went over the link, both ways.
    var frames: Int { link.messages }
    private let trace: (String) -> Void
    private let fetch: (FetchNotice) async -> Bool
    private let onEnd: (GatewayLink) -> Void

    init(
        _ client: GatewayClient,
        _ accepted: GatewayTwin.Accepted,
        plan: Plan,
        runtime: SimulatedRuntime,
        seed: UInt64,
        trace: @escaping (String) -> Void,
        fetch: @escaping (FetchNotice) async -> Bool,
        onEnd: @escaping (GatewayLink) -> Void
    ) throws {
        (self.client, self.plan, clock) = (client, plan, runtime.clock)
        self.runtime = runtime.runtime(wall: client.peer.wall)
        (self.trace, self.fetch, self.onEnd) = (trace, fetch, onEnd)
        generator = SeededGenerator(seed: seed)
        link = SimulatedLink(runtime.clock, plan.link, seed: generator.next())
        line = GatewayLine(accepted.session)
        let collection = client.peer.collections[0]
        let ids = plan.fetch?.documentIDs ?? plan.documentIDs
        let checkpoint =
            "cp-\(client.peer.index)-" + (plan.fetch == nil ? ids?.joined(separator: ",") ?? "" : "fetch")
        var binding = ActivePlan.Binding(name: collection.name, checkpointID: checkpoint)
        binding.isEmpty = client.peer.store.lastSequence(collection) == 0
        binding.documentIDs = ids
        var active = ActivePlan(
            collections: [binding],
            pushes: plan.pushes,
            pulls: plan.pulls,
            isContinuous: plan.isContinuous
        )
        active.reset = plan.reset
        active.autoPurges = plan.autoPurges
        active.usesDeltas = plan.usesDeltas
        active.isFetch = plan.fetch != nil
        activePlan = active
        var rules = CollectionRules()
        rules.documentIDs = ids.map { DocumentSet($0) }
        rules.asksResolver = plan.merges
        replicas = DatabaseReplicas(
            store: client.peer.store,
            collections: [collection],
            checkpointIDs: [checkpoint],
            remote: try client.peer.store.write { try $0.checkpointTables.remoteNumber("gateway") },
            rules: [rules],
            nowMilliseconds: self.runtime.unixTime
        )
    }

    func open(_ negotiated: ReplicationProtocol) {
        link.listen(
            .far,
            { [weak self] frame in
                // Frames that were under way may arrive after the connection has ended.
                guard let self else { return }
                do { try line.receive(frame) } catch { return fail(error) }
                scheduleWork()
            }
        )
        link.onRoom(from: .far) { [weak self] in self?.pump() }
        let simulated = SimulatedReplica.layers(
            over: replicas,
            owner: client.peer,
            isDead: { [unowned self] in isDead }
        )
        // The driver and everything else run on one thread.
        nonisolated(unsafe) let session = ReplicationSession(
            active: activePlan,
            replicas: simulated,
            tuning: plan.tuning
        )
        var hooks = ReplicationHooks()
        hooks.resolve = { [self] in await resolve($0) }
        hooks.fetch = { [self] in isDead ? false : await fetch($0) }
        hooks.report = { [self] in received($0) }
        let driver = ReplicationDriver(
            session: session,
            store: client.peer.store,
            observed: client.peer.collections,
            connection: PeerConnection(channel: link.channel(.near), negotiated: negotiated),
            runtime: runtime,
            compressionLevel: BLIPLimits().compressionLevel,
            hooks: hooks
        )
        runtime.task { [self] in
            let error = await driver.run()
            // Broken links are not mistakes, and nobody hears what a dead process could not store.
            if let error, !isDead, !error.isTransient, error.code != .webSocketGoingAway {
                failure = failure ?? error
            }
            trace("\(client.peer.index) is disconnected")
            isOpen = false
            onEnd(self)
        }
    }

    /// The link breaks, or the gateway is gone: TCP ends, and no close frame comes (gateway.md 16).
    func cut() {
        trace("cut \(client.peer.index)")
        link.cut()
    }

    /// The client's process dies.
    func crash() {
        isDead = true
        link.kill(.near)
    }

    // MARK: The client

    private func received(_ report: ReplicationReport) {
        // A dead process reports nothing, and progress is not a part of the history.
        guard !isDead, case .document(let event) = report else { return }
        let what = event.isPush ? "push" : "pull"
        trace("\(client.peer.index) \(what) \(event.documentID) \(event.error?.code.description ?? "ok")")
        if event.isPush, event.isDeleted, event.error == nil { client.deleted.remove(event.documentID) }
    }

    private func resolve(_ notice: ConflictNotice) async -> LoveseatError? {
        let fails = generator.chance(plan.resolverFailures)
        // The replication may end during the sleep, which the next line notices.
        try? await runtime.clock.sleep(for: .milliseconds(generator.int(0...20)))
        guard !isDead, !Task.isCancelled else {
            return LoveseatError(.conflict, "the conflict waits for the next replication")
        }
        trace("\(client.peer.index) resolves \(notice.documentID)")
        let resolver = plan.merges ? MergingResolver.resolve : DefaultConflictResolver.resolve
        return client.peer.resolve(notice, fails: fails, by: resolver)
    }

    // MARK: The gateway

    private func pump() {
        while isOpen, link.isOpen, link.hasRoom(from: .far) {
            do {
                // The gateway has said everything.
                guard let frame = try line.nextFrame() else { return }
                link.post([frame], from: .far)
            } catch { return fail(error) }
        }
    }

    private func fail(_ error: any Error) {
        failure = failure ?? LoveseatError(.remoteError, "the gateway cannot read the client: \(error)")
        cut()
    }

    /// The gateway works on what waits a moment later; also when the database changed, for a continuous feed.
    func scheduleWork() {
        if !link.isOpen || isWorkScheduled { return }
        isWorkScheduled = true
        clock.schedule(after: generator.int(plan.workDelay)) { [weak self] in
            // The link may break before the gateway begins.
            guard let self, link.isOpen else { return }
            isWorkScheduled = false
            do { try line.work() } catch { return fail(error) }
            onWorked(self)
            pump()
        }
    }

    /// Called after the gateway worked.
    var onWorked: (GatewayLink) -> Void = { _ in }
}

/// A client of the simulation: a database, and its user.
final class GatewayClient {
    let peer: SimulatedPeer
    let user: String
    /// The forms of the protocol that it offers.
    var offers = ReplicationProtocol.trees
    /// The documents that were deleted here, and whose deletion the gateway has not acknowledged.
    var deleted: Set<String> = []
    /// The tombstones that were made here.
    var tombstones: Set<RevisionID> = []
    /// The originals of the candidates, other than the current one, over which somebody saved a document here, by document.
    var givenUp: [String: Set<RevisionID>] = [:]
    /// The contents that the gateway refused for good, by document: no client sends them again (replication.md §9.2).
    var refused: [String: Set<JSONText>] = [:]
    /// The documents whose deletion here met one at the gateway: both are deleted, and nothing is sent again.
    var deletedAlready: Set<String> = []

    init(_ peer: SimulatedPeer, user: String) { (self.peer, self.user) = (peer, user) }
}
