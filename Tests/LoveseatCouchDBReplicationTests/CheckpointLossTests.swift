import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// What a session makes of a remote that has lost something.
struct CheckpointLossTests: CheckpointSupport {
    @Test func `a copy that the remote has lost ends a continuous session`() throws {
        for isContinuous in [true, false] {
            let stored = Self.progress(1, 1)
            let checkpoints = RecordedCheckpoints(stored.json(time: 0))
            let copy = Machine.Answer.copy(Self.copy(stored, revision: "0-1"))
            var (machine, _) = try Self.opened(checkpoints, copy, Self.plan(isContinuous: isContinuous))
            let step = Self.save(&machine, Self.progress(2, 2))
            guard isContinuous else {
                #expect(Self.replaced(step) == "0-1")
                continue
            }
            #expect(step == .ask(.copy))
            let end = machine.receive(.copy(nil), hasRestarted: false)
            #expect(Self.isEnd(end))
            #expect(Self.save(&machine, Self.progress(3, 3)) == .done)
            #expect(checkpoints.log == [])
        }
    }

    /// Marks that are made while the remote is asked for its copy are covered, so that what they stand for has to be as well.
    @Test func `a checkpoint says what is done when it is sent, and covers the marks up to then`() throws {
        let stored = Self.progress(1, 1)
        let checkpoints = RecordedCheckpoints(stored.json(time: 0))
        let copy = Machine.Answer.copy(Self.copy(stored, revision: "0-1"))
        var (machine, _) = try Self.opened(checkpoints, copy, Self.plan(isContinuous: true))
        #expect(Self.save(&machine, Self.progress(2, 2)) == .ask(.copy))
        #expect(checkpoints.log == [])
        let later = Self.progress(3, 3)
        let step = machine.receive(copy, progress: later, hasRestarted: false)
        #expect(step == .ask(.save(later.json(time: 7), replacing: "0-1")))
        #expect(checkpoints.log == ["begun"])
    }

    @Test func `an error says nothing about whether the copy is there`() throws {
        let stored = Self.progress(1, 1)
        for answer in [
            Machine.Answer.refused(Answers.failure(500)), .failed(LoveseatError(.timeout, "")),
            .copy(Self.copy(stored, revision: "0-1")),
        ] {
            var (machine, _) = try Self.opened(
                RecordedCheckpoints(stored.json(time: 0)),
                .copy(Self.copy(stored, revision: "0-1")),
                Self.plan(isContinuous: true)
            )
            #expect(Self.save(&machine, Self.progress(2, 2)) == .ask(.copy))
            #expect(Self.replaced(machine.receive(answer, hasRestarted: false)) == "0-1")
        }
    }

    /// What the remote names as its instance, twice, and whether that is another database.
    @Test(
        arguments: [
            (["1"], false), ([nil], false), (["2", "2"], true), (["2", "3"], false), (["2", nil], false),
            (["2", "1"], false),
        ] as [([String?], Bool)]
    )
    func `a database that was made anew has no checkpoint`(_ instances: [String?], _ isRecreated: Bool) throws
    {
        let checkpoints = RecordedCheckpoints()
        var (machine, _) = try Self.opened(checkpoints, .copy(nil), instance: "1")
        _ = Self.save(&machine, Self.progress(1, 1))
        var step = machine.receive(.saved(revision: "0-1"), hasRestarted: false)
        for instance in instances {
            #expect(step == .ask(.instance))
            step = machine.receive(.instance(instance), hasRestarted: false)
        }
        #expect((step == .done) == !isRecreated)
        #expect(checkpoints.log == (isRecreated ? ["begun"] : ["begun", "stored"]))
    }

    /// At which answer of a save the remote shows that it was started again.
    @Test(arguments: 0...3) func `what a remote had before it was started again is not counted`(_ moment: Int)
        throws
    {
        let stored = Self.progress(1, 1)
        let checkpoints = RecordedCheckpoints(stored.json(time: 0))
        let copy = Machine.Answer.copy(Self.copy(stored, revision: "0-1"))
        var (machine, _) = try Self.opened(checkpoints, copy, instance: "1", Self.plan(isContinuous: true))
        let answers = [copy, .saved(revision: "0-2"), .instance("1")]
        var step = Self.save(&machine, Self.progress(2, 2), hasRestarted: moment == 0)
        for (index, answer) in answers.enumerated() where index < moment {
            step = machine.receive(answer, hasRestarted: index == moment - 1)
        }
        #expect(Self.isEnd(step))
        #expect(!checkpoints.log.contains("stored"))
        #expect(Self.save(&machine, Self.progress(3, 3)) == .done)
    }

    @Test func `a newer copy does not replace one that was lost in a restart`() throws {
        let checkpoints = RecordedCheckpoints()
        var (machine, _) = try Self.opened(checkpoints, .copy(nil))
        _ = Self.save(&machine, Self.progress(1, 1))
        let step = machine.receive(.refused(Answers.failure(409)), hasRestarted: true)
        #expect(Self.isEnd(step))
        #expect(checkpoints.log == ["begun"])
    }
}
