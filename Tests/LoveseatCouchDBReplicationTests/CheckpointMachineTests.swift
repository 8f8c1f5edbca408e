import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// When a session's checkpoint may be saved, and where the next one goes on.
struct CheckpointMachineTests: CheckpointSupport {
    // MARK: Reading

    @Test(arguments: [
        CheckpointStart(name: "neither has one", own: nil, theirs: nil, local: 0, remote: nil),
        CheckpointStart(name: "the remote's alone", own: nil, theirs: progress(5, 9), local: 0, remote: nil),
        CheckpointStart(
            name: "the database's alone",
            own: progress(5, 9),
            theirs: nil,
            local: 0,
            remote: nil
        ),
        CheckpointStart(name: "both agree", own: progress(5, 9), theirs: progress(5, 9), local: 5, remote: 9),
        CheckpointStart(
            name: "the remote's is older",
            own: progress(5, 9),
            theirs: progress(3, 9),
            local: 3,
            remote: 9
        ),
        CheckpointStart(
            name: "the database's is older",
            own: progress(3, 9),
            theirs: progress(5, 9),
            local: 3,
            remote: 9
        ),
        CheckpointStart(
            name: "other sequences",
            own: progress(5, 9),
            theirs: progress(5, 8),
            local: 5,
            remote: nil
        ),
        CheckpointStart(
            name: "the remote keeps none",
            own: progress(5, 9, isAlone: true),
            theirs: nil,
            local: 5,
            remote: 9
        ),
        CheckpointStart(
            name: "of the same database",
            own: progress(5, 9, instance: "1"),
            theirs: progress(5, 9, instance: "1"),
            local: 5,
            remote: 9,
            instance: "1"
        ),
        CheckpointStart(
            name: "of another database",
            own: progress(5, 9, instance: "1"),
            theirs: progress(5, 9, instance: "1"),
            local: 0,
            remote: nil,
            instance: "2"
        ),
        CheckpointStart(
            name: "the remote's is of another database",
            own: progress(5, 9),
            theirs: progress(5, 9, instance: "1"),
            local: 0,
            remote: nil,
            instance: "2"
        ),
        CheckpointStart(
            name: "a server that names the time at which it was started",
            own: progress(5, 9),
            theirs: progress(5, 9),
            local: 5,
            remote: 9,
            instance: "1700000000000000"
        ),
    ])
    func `a session goes on from what both sides have`(_ row: CheckpointStart) throws {
        let checkpoints = RecordedCheckpoints(row.own?.json(time: 0))
        let (machine, step) = try Self.opened(
            checkpoints,
            .copy(row.theirs.map { Self.copy($0) }),
            instance: row.instance
        )
        #expect(step == .done)
        #expect(machine.start.checkpoint.completed.completeUpTo == row.local)
        #expect(machine.start.checkpoint.remote == row.remote.map(Answers.sequence))
        #expect(checkpoints.log == [])
    }

    @Test(arguments: [401, 403, 404, 405]) func `a peer that may not read checkpoints goes on from its own`(
        _ status: Int
    ) throws {
        let alone = RecordedCheckpoints(Self.progress(5, 9, isAlone: true).json(time: 0))
        let (machine, step) = try Self.opened(alone, .refused(Answers.failure(status)))
        #expect(step == .done)
        #expect(machine.start.checkpoint.completed.completeUpTo == 5)
        // One that was confirmed by the remote is not believed without it.
        let confirmed = RecordedCheckpoints(Self.progress(5, 9).json(time: 0))
        let (_, other) = try Self.opened(confirmed, .refused(Answers.failure(status)))
        #expect(other == .end(Answers.failure(status).failure(of: "_local")))
    }

    @Test(arguments: [429, 500, 503]) func `a remote that is too busy says nothing about checkpoints`(
        _ status: Int
    ) throws {
        let alone = RecordedCheckpoints(Self.progress(5, 9, isAlone: true).json(time: 0))
        let (_, step) = try Self.opened(alone, .refused(Answers.failure(status)))
        #expect(step == .end(Answers.failure(status).failure(of: "_local")))
        let (_, locked) = try Self.opened(alone, .refused(Answers.failure(403, "temporarily locked")))
        #expect(locked == .end(Answers.failure(403, "temporarily locked").failure(of: "_local")))
    }

    @Test func `after a reset nothing is read, and the remote's copy is replaced`() throws {
        let checkpoints = RecordedCheckpoints(Self.progress(5, 9).json(time: 0))
        var (machine, step) = try Self.opened(checkpoints, .copy(nil), Self.plan(reset: .checkpoint))
        #expect(step == .done)
        #expect(machine.start == RemoteCheckpoint())
        #expect(Self.replaced(Self.save(&machine, Self.progress(1, 1))) == "new")
        #expect(machine.receive(.refused(Answers.failure(409)), hasRestarted: false) == .ask(.copy))
        let copy = Self.copy(Self.progress(5, 9), revision: "0-3")
        step = machine.receive(.copy(copy), hasRestarted: false)
        #expect(Self.replaced(step) == "0-3")
        #expect(machine.receive(.saved(revision: "0-4"), hasRestarted: false) == .done)
        #expect(checkpoints.log == ["begun", "stored"])
    }

    // MARK: Saving

    @Test func `the database keeps a checkpoint once the remote has it, and not before`() throws {
        let checkpoints = RecordedCheckpoints()
        var (machine, _) = try Self.opened(checkpoints, .copy(nil), instance: "1")
        #expect(Self.replaced(Self.save(&machine, Self.progress(1, 1))) == "new")
        #expect(checkpoints.log == ["begun"])
        // Both directions save at the same time.
        #expect(Self.save(&machine, Self.progress(2, 1)) == .done)
        #expect(machine.receive(.saved(revision: "0-1"), hasRestarted: false) == .ask(.instance))
        #expect(checkpoints.log == ["begun"])
        #expect(machine.receive(.instance("1"), hasRestarted: false) == .done)
        #expect(checkpoints.log == ["begun", "stored"])
        // What came in between is saved next, over the new revision.
        #expect(Self.save(&machine, Self.progress(1, 1)) == .done)
        #expect(Self.replaced(Self.save(&machine, Self.progress(2, 1))) == "0-1")
    }

    /// A pull that begins anew, since the remote does not know its sequence any more, names no instance.
    @Test func `each saved checkpoint names the instance of its database`() throws {
        let stored = Self.progress(1, 1, instance: "1")
        let checkpoints = RecordedCheckpoints(stored.json(time: 0))
        let copy = Machine.Answer.copy(Self.copy(stored, revision: "0-1"))
        var (machine, _) = try Self.opened(checkpoints, copy, instance: "1")
        let step = Self.save(&machine, Self.progress(2, 2))
        #expect(step == .ask(.save(Self.progress(2, 2, instance: "1").json(time: 7), replacing: "0-1")))
    }

    @Test func `saves are seconds apart, but for the last one`() throws {
        var (machine, _) = try Self.opened(RecordedCheckpoints(), .copy(nil))
        #expect(Self.replaced(Self.save(&machine, Self.progress(1, 1), at: 100, isLast: false)) == "new")
        #expect(machine.receive(.saved(revision: "0-1"), hasRestarted: false) == .done)
        #expect(Self.save(&machine, Self.progress(2, 1), at: 104, isLast: false) == .done)
        #expect(Self.replaced(Self.save(&machine, Self.progress(2, 1), at: 105, isLast: false)) == "0-1")
        #expect(machine.receive(.saved(revision: "0-2"), hasRestarted: false) == .done)
        #expect(Self.replaced(Self.save(&machine, Self.progress(3, 1), at: 106)) == "0-2")
    }

    @Test func `a copy that others replace is read again at most twice`() throws {
        let checkpoints = RecordedCheckpoints()
        var (machine, _) = try Self.opened(checkpoints, .copy(nil))
        var step = Self.save(&machine, Self.progress(1, 1))
        for number in 1...2 {
            #expect(Self.replaced(step) != nil)
            #expect(machine.receive(.refused(Answers.failure(409)), hasRestarted: false) == .ask(.copy))
            // It may also be there no more.
            let copy = number == 1 ? Self.copy(Self.progress(1, 1), revision: "0-7") : nil
            step = machine.receive(.copy(copy), hasRestarted: false)
            #expect(Self.replaced(step) == (number == 1 ? "0-7" : "new"))
        }
        guard case .notSaved(let error) = machine.receive(.refused(Answers.failure(409)), hasRestarted: false)
        else {
            Issue.record("it goes on for ever")
            return
        }
        #expect(error.code == .httpConflict)
        #expect(checkpoints.log == ["begun"])
        // The next progress is saved again.
        #expect(Self.replaced(Self.save(&machine, Self.progress(2, 1))) == "new")
    }

    @Test(arguments: [401, 403, 404, 405]) func `a peer that may only read keeps its checkpoint itself`(
        _ status: Int
    ) throws {
        let checkpoints = RecordedCheckpoints()
        var (machine, _) = try Self.opened(checkpoints, .copy(nil), Self.plan(pushes: false))
        _ = Self.save(&machine, Self.progress(0, 4))
        #expect(machine.receive(.refused(Answers.failure(status)), hasRestarted: false) == .done)
        let body = try #require(checkpoints.body)
        #expect(RemoteCheckpoint(JSONElement(body)).isAlone)
        // Nothing is new.
        #expect(Self.save(&machine, Self.progress(0, 4)) == .done)
        // A peer that pushes must not: the remote would not know what it has lost.
        var (pushing, _) = try Self.opened(RecordedCheckpoints(), .copy(nil))
        _ = Self.save(&pushing, Self.progress(1, 4))
        #expect(
            pushing.receive(.refused(Answers.failure(status)), hasRestarted: false)
                == .notSaved(Answers.failure(status).failure(of: "_local"))
        )
    }

    @Test(arguments: [400, 413, 429, 500, 503, 507]) func `a refused checkpoint is not kept here either`(
        _ status: Int
    ) throws {
        let checkpoints = RecordedCheckpoints()
        for pushes in [true, false] {
            var (machine, _) = try Self.opened(checkpoints, .copy(nil), Self.plan(pushes: pushes))
            _ = Self.save(&machine, Self.progress(1, 1))
            guard case .notSaved = machine.receive(.refused(Answers.failure(status)), hasRestarted: false)
            else {
                Issue.record("it is kept after \(status)")
                return
            }
        }
        #expect(checkpoints.body == nil)
    }

    @Test func `a checkpoint whose answer is cut, or that the disk refuses, is saved again`() throws {
        let checkpoints = RecordedCheckpoints()
        let lost = LoveseatError(.webSocketAbnormalClose, "cut")
        var (machine, _) = try Self.opened(checkpoints, .copy(nil), instance: "1")
        for answers in [[], [Machine.Answer.saved(revision: "0-1")]] {
            _ = Self.save(&machine, Self.progress(1, 1))
            for answer in answers { _ = machine.receive(answer, hasRestarted: false) }
            #expect(machine.receive(.failed(lost), hasRestarted: false) == .notSaved(lost))
        }
        checkpoints.failure = LoveseatError(.busy, "locked")
        _ = Self.save(&machine, Self.progress(1, 1))
        _ = machine.receive(.saved(revision: "0-2"), hasRestarted: false)
        #expect(
            machine.receive(.instance("1"), hasRestarted: false) == .notSaved(LoveseatError(.busy, "locked"))
        )
        checkpoints.failure = nil
        #expect(Self.replaced(Self.save(&machine, Self.progress(1, 1))) == "0-2")
    }
}
