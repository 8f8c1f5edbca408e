import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A replication of two simulated peers: the supervisor, the server and the drivers that ship, over links of the virtual clock.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class SimulatedConnection: @unchecked Sendable {
    /// The parts of the history that a connection needs.
    struct Surroundings {
        let runtime: SimulatedRuntime
        /// The access that the passive side grants to the active one; nil for everything.
        let access: () -> SimulatedAccess?
        let wrap: (any ReplicaSource, SimulatedPeer) -> any ReplicaSource
        /// Pulls documents by their IDs over another connection, and says whether that ended well.
        let fetch: (FetchNotice) async -> Bool
        /// Called when the passive side has acknowledged a document.
        let onPush: (SimulatedConnection) -> Void
        /// Called before a resolver deletes a document of which nobody else may have deleted a version.
        let onDeletion: (String) -> Void
        let trace: (String) -> Void
        /// Reports the requests to all databases and their answers, for people; not a part of the trace.
        let detail: ((String) -> Void)?
        let onEnd: (SimulatedConnection) -> Void
        /// The wire that is spoken, if it is not the simulator's own.
        var wire: (any SimulatedWire)?
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
    /// The work that the active side has done in the last attempt.
    var progress = ReplicationProgress()
    private let clock: VirtualClock
    let surroundings: Surroundings
    let runtime: ReplicationRuntime
    private let supervisor: ReplicationSupervisor
    var dice: SeededGenerator
    private var wasEnded = false
    private var isRunning = true
    /// The passive sides of all attempts that still run: one may not have noticed yet that its link broke.
    private var serving: [End] = []
    private var attempts = 0
    /// The last attempt.
    var (active, passive): (End?, End?)
    private var link: SimulatedLink?
    var otherLink: (any SimulatedWireLink)?
    /// The name that the passive side has over another wire.
    var recordedName: String?

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

    /// The failure, unless the way explains it: over another wire, somebody on it may have refused a request, or have answered that the server
    /// failed. Either ends a session, since it is not for the client to try again forever.
    var unexplainedFailure: LoveseatError? {
        guard let failure, plan.httpFaults > 0 else { return failure }
        let isError = failure.code.value == 10_500 && otherLink?.errorsOnTheWay.contains(500) == true
        return isError || [10_401, 10_404].contains(failure.code.value) ? nil : failure
    }

    func open() {
        let policy = RetryPolicy(
            isContinuous: plan.isContinuous,
            maxAttempts: plan.attempts,
            maxWait: 8,
            reconnectsAfterGoingAway: true
        )
        var steps = ReplicationSupervisor.Steps(
            connect: { [self] isFirst in
                if let wire = surroundings.wire { return try await connect(over: wire, isFirst) }
                let connection = try await connect()
                do { return try makeActive(connection, isFirst) } catch {
                    await connection.channel.close(code: 1001, reason: "")
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

    /// The access that the passive side grants to the active one has changed.
    func accessChanged() {
        // The connection may be over, or between two attempts.
        guard isOpen, let driver = passive?.driver else { return }
        runtime.task { await driver.accessChanged() }
    }

    /// The link breaks: both sides notice, in their time, and what was on the way may be lost.
    func cut() {
        link?.cut()
        otherLink?.cut()
    }

    /// The active side stops in good order, as an app stops a replicator.
    func stop() {
        wasEnded = true
        supervisor.stop()
    }

    /// The active side disconnects for so many milliseconds.
    func suspend(for milliseconds: Int) {
        if !isOpen || wasEnded { return }
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
        if !isOpen { return }
        if source === peer {
            active?.isDead = true
            stop()
            link?.kill(.near)
            otherLink?.kill()
        } else {
            for end in serving { end.isDead = true }
            link?.kill(.far)
            otherLink?.cut()
        }
    }

    // MARK: The steps

    private func connect(over wire: any SimulatedWire, _ isFirst: Bool) async throws -> any Replication {
        let delay = dice.int(plan.connectDelay)
        if delay > 0 { try await runtime.clock.sleep(for: .milliseconds(delay)) }
        return try await makeActive(over: wire, isFirst)
    }

    private func connect() async throws -> PeerConnection {
        let delay = dice.int(plan.connectDelay)
        if delay > 0 { try await runtime.clock.sleep(for: .milliseconds(delay)) }
        attempts += 1
        guard let server = target.server else {
            throw LoveseatError(.init(5_017), "peer \(target.index) does not listen")
        }
        if plan.trustsOwnCheckpoint { try copyCheckpoints() }
        if plan.trustsPeersCheckpoint { try believePeersCheckpoints() }
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
        serving.append(end)
        let connection = PeerConnection(channel: link.channel(.far), negotiated: .mobile3)
        runtime.task { [self] in
            let error = await server.serve(connection) { makePassive(end, connection, $0) }
            if let error, !end.isDead { note(error) }
            await finish(end)
            serving.removeAll { $0 === end }
            endIfOver()
        }
        return PeerConnection(channel: link.channel(.near), negotiated: .mobile3)
    }

    func finish(_ end: End?) async {
        revisionsSent += await end?.driver?.revisionsSent ?? 0
        if let end, otherLink != nil { revisionsSent += Int(end.progress.documents) }
        // Cancelled timers wake up in this very moment. Nobody cancels this task, so the sleep does not fail.
        try? await runtime.clock.sleep(for: .milliseconds(1))
        if let time = end?.time, time.sleeping > 0 { hasLeftTimers = true }
        end?.driver = nil
    }

    private func endIfOver() {
        if !isOpen || isRunning || !serving.isEmpty { return }
        isOpen = false
        surroundings.onEnd(self)
    }

    /// Broken links and peers that leave are not mistakes.
    private func note(_ error: LoveseatError) {
        let isExpected = error.isTransient || error.code == .webSocketGoingAway
        if !isExpected, failure == nil { failure = error }
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
