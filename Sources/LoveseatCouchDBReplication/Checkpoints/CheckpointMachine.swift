import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication

/// Decides where the session of one collection goes on, and when its checkpoint is saved (protocol/couchdb.md §3.3, §3.4).
///
/// Saving goes to the remote first, then to the database: if the connection breaks in between, some work is repeated, and none is lost.
///
/// ```
/// new ──▶ reading ──▶ idle ──▶ verifying ──▶ sent ──▶ comparing ──▶ confirming ──▶ idle
///                                             │ ▲ 409
///                                             ▼ │
///                                          refetching
/// ```
package struct CheckpointMachine {
    package enum Request: Hashable, Sendable {
        /// The remote's copy.
        case copy
        case save(JSONText, replacing: String?)
        /// The remote database's `instance_start_time`.
        case instance
    }

    package enum Answer: Sendable {
        /// Nil if the remote has none.
        case copy(JSONElement?)
        case saved(revision: String?)
        case instance(String?)
        case refused(RemoteFailure)
        /// There was no answer.
        case failed(LoveseatError)
    }

    package enum Step: Hashable, Sendable {
        case ask(Request)
        case done
        case notSaved(LoveseatError)
        /// The session cannot go on, and no checkpoint is saved any more.
        case end(LoveseatError)
    }

    private enum Stage: Hashable {
        case new
        /// The remote is asked for its copy. `own`: the database's.
        case reading(own: RemoteCheckpoint?)
        case idle
        /// The remote is asked whether it still has the copy that this session read or saved. `time`: as in `Save`.
        case verifying(time: Int64)
        /// The copy was sent. `repairs`: how often it may still be sent again, over another revision of the remote's copy.
        case sent(Save, repairs: Int)
        case refetching(Save, repairs: Int)
        /// The remote is asked for its instance. `first`: the one with which the session began.
        case comparing(Save, first: String)
        /// The remote is asked again, since it named this instance instead of that with which the session began.
        case confirming(Save, other: String)
        case over
    }

    private struct Save: Hashable {
        var checkpoint: RemoteCheckpoint
        /// Unix time in seconds.
        let time: Int64

        var body: JSONText { checkpoint.json(time: time) }
    }

    private static let interval = Duration.seconds(5)
    private static let repairs = 2
    /// How a remote answers a peer that may not write checkpoints.
    private static let readOnly = [401, 403, 404, 405]

    private let replica: any ReplicaCheckpoints
    /// The instance of the remote's database when the session began; nil if it names none.
    private var instance: String?
    private let isContinuous: Bool
    private let pushes: Bool
    private let reset: ActivePlan.Reset
    private var stage = Stage.new
    /// Where the session goes on.
    package private(set) var start = RemoteCheckpoint()
    private var saved: RemoteCheckpoint?
    private var lastSave: Duration?
    /// The revision of the remote's copy.
    private var revision: String?
    /// Whether the remote keeps no copy, since this peer may not write there.
    private var isAlone = false

    package init(_ replica: any ReplicaCheckpoints, _ plan: ActivePlan) {
        self.replica = replica
        (isContinuous, pushes, reset) = (plan.isContinuous, plan.pushes, plan.reset)
    }

    // MARK: Reading

    /// Begins the session. After a reset nothing is read. `instance`: the remote database's `instance_start_time`.
    package mutating func open(instance: String?) throws(LoveseatError) -> Step {
        invariant(stage == .new, "a session is opened twice: \(stage)")
        self.instance = instance
        guard reset == .none else {
            stage = .idle
            return .done
        }
        let own = try replica.checkpoint().body.map { RemoteCheckpoint(JSONElement($0)) }
        stage = .reading(own: own)
        return .ask(.copy)
    }

    private mutating func read(_ own: RemoteCheckpoint?, _ answer: Answer) -> Step {
        switch answer {
        case .copy(let found):
            revision = found?["_rev"]?.string
            // No session with this remote has saved a checkpoint here: the remote's copy alone proves nothing.
            if let own { begin(at: own, found.map { RemoteCheckpoint($0) }) }
        case .refused(let failure):
            guard let own, own.isAlone, (400..<500).contains(failure.status), !failure.isLockedOut,
                failure.status != 429
            else { return end(failure.failure(of: "_local")) }
            begin(at: own, nil)
        case .failed(let error): return end(error)
        case .saved, .instance: impossible("the answer to a read is \(answer)")
        }
        // The first save tells the remote of the instance that it was made for.
        (stage, saved, isAlone) = (.idle, start, start.isAlone)
        return .done
    }

    private mutating func begin(at own: RemoteCheckpoint, _ theirs: RemoteCheckpoint?) {
        let isRecreated = [own, theirs].contains { $0?.isAboutAnother(than: lasting) ?? false }
        if !isRecreated { start = own.joined(with: theirs) }
    }

    private var lasting: String? { RemoteCheckpoint.lasting(instance) }

    // MARK: Saving

    /// Saves progress: at most every few seconds, or now if it is the last of what is known. Nothing is done while another save is under
    /// way.
    ///
    /// `now`: see `ReplicationRuntime.uptime`; `time`: Unix time in seconds; `hasRestarted`: see ``receive(_:progress:hasRestarted:)``.
    package mutating func save(
        _ progress: RemoteCheckpoint,
        now: Duration,
        time: Int64,
        isLast: Bool,
        hasRestarted: Bool
    ) -> Step {
        guard stage == .idle else { return .done }
        if !isLast, let lastSave, now - lastSave < Self.interval { return .done }
        let checkpoint = stamped(progress)
        if checkpoint == saved { return .done }
        if hasRestarted { return endAfterRestart() }
        lastSave = now
        // A server does not say that it has lost the copy when another one is saved.
        guard isContinuous, revision != nil else { return send(checkpoint, time: time) }
        stage = .verifying(time: time)
        return .ask(.copy)
    }

    private func stamped(_ progress: RemoteCheckpoint) -> RemoteCheckpoint {
        var checkpoint = progress
        (checkpoint.instance, checkpoint.isAlone) = (lasting, isAlone)
        return checkpoint
    }

    /// Whether everything that counted as done when the last checkpoint was saved still does.
    private func contains(_ checkpoint: RemoteCheckpoint) -> Bool {
        guard let earlier = saved?.checkpoint.completed else { return true }
        return checkpoint.checkpoint.completed.intersection(earlier) == earlier
    }

    /// Sends the checkpoint. It covers the marks that were made up to now, and none that are made from now on.
    private mutating func send(_ checkpoint: RemoteCheckpoint, time: Int64) -> Step {
        invariant(contains(checkpoint), "sequences that counted as done do not any more: \(checkpoint)")
        do { try replica.beginCheckpoint() } catch { return fail(error) }
        return send(Save(checkpoint: checkpoint, time: time), repairs: Self.repairs)
    }

    private mutating func send(_ save: Save, repairs: Int) -> Step {
        stage = .sent(save, repairs: repairs)
        return .ask(.save(save.body, replacing: revision))
    }

    /// Takes the answer to the last request.
    ///
    /// `progress`: how far both directions are now. `hasRestarted`: whether an answer said that the remote was started again since the session
    /// began: it may have lost what it acknowledged, and the next session goes on from what both sides still have.
    package mutating func receive(_ answer: Answer, progress: RemoteCheckpoint, hasRestarted: Bool) -> Step {
        invariant(stage != .idle && stage != .new, "nothing was asked for, and the answer is \(answer)")
        if case .reading(let own) = stage { return read(own, answer) }
        if case .verifying = stage, case .copy(nil) = answer { return beginAnew() }
        if case .confirming(_, let other) = stage, case .instance(let now) = answer, now.isExactly(other) {
            return beginAnew()
        }
        if hasRestarted { return endAfterRestart() }
        switch (stage, answer) {
        // An error says nothing about the copy, and saving fails as well then.
        case (.verifying(let time), _): return send(stamped(progress), time: time)
        case (_, .failed(let error)): return fail(error)
        case (.sent(let save, let repairs), _): return sent(save, answer, repairs: repairs)
        case (.refetching(let save, let repairs), .copy(let found)):
            revision = found?["_rev"]?.string
            return send(save, repairs: repairs - 1)
        case (.comparing(let save, let first), .instance(let now)):
            // Documents that were sent to the former database are not in the new one.
            guard let now, !now.isExactly(first) else { return store(save) }
            stage = .confirming(save, other: now)
            return .ask(.instance)
        // A server that returns another time with each answer says nothing by that.
        case (.confirming(let save, _), .instance): return store(save)
        case (.refetching, .refused(let failure)): return fail(failure.failure(of: "_local"))
        case (_, .refused(let failure)): return fail(failure.failure(of: "the database"))
        default:
            impossible("the answer \(answer) came in the stage \(stage)")
            return fail(LoveseatError(.unexpectedError, "the checkpoint is saved again later"))
        }
    }

    private mutating func sent(_ save: Save, _ answer: Answer, repairs: Int) -> Step {
        var save = save
        save.checkpoint.isAlone = false
        switch answer {
        case .saved(let revision): self.revision = revision
        case .refused(let failure) where failure.status == 409:
            guard repairs > 0 else {
                return fail(LoveseatError(.httpConflict, "another replicator writes the same checkpoint"))
            }
            stage = .refetching(save, repairs: repairs)
            return .ask(.copy)
        // A peer that may only read keeps its checkpoint itself.
        case .refused(let failure)
        where !pushes && Self.readOnly.contains(failure.status) && !failure.isLockedOut:
            save.checkpoint.isAlone = true
        case .refused(let failure): return fail(failure.failure(of: "_local"))
        case .copy, .instance, .failed: impossible("the answer to a save is \(answer)")
        }
        // A server without instances cannot be asked.
        guard let instance else { return store(save) }
        stage = .comparing(save, first: instance)
        return .ask(.instance)
    }

    private mutating func store(_ save: Save) -> Step {
        stage = .idle
        do throws(LoveseatError) { try replica.saveCheckpoint(save.body, coversMarks: true) } catch {
            return fail(error)
        }
        (saved, isAlone) = (save.checkpoint, save.checkpoint.isAlone)
        return .done
    }

    private mutating func fail(_ error: LoveseatError) -> Step {
        stage = .idle
        return .notSaved(error)
    }

    private mutating func beginAnew() -> Step {
        end("the peer's database was made anew, or lost its checkpoint: all is compared again")
    }

    private mutating func endAfterRestart() -> Step {
        end("the peer was started again: what it may have lost is compared again")
    }

    private mutating func end(_ reason: String) -> Step {
        end(LoveseatError(.webSocketAbnormalClose, reason))
    }

    private mutating func end(_ error: LoveseatError) -> Step {
        stage = .over
        return .end(error)
    }
}
