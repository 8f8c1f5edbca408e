import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// Sessions whose checkpoints a test answers.
protocol CheckpointSupport {}

extension CheckpointSupport {
    typealias Machine = CheckpointMachine

    static func plan(
        pushes: Bool = true,
        isContinuous: Bool = false,
        reset: ActivePlan.Reset = .none
    ) -> ActivePlan {
        var plan = ActivePlan(collections: [], pushes: pushes, pulls: true, isContinuous: isContinuous)
        plan.reset = reset
        return plan
    }

    /// A checkpoint up to a local sequence and a remote one.
    static func progress(
        _ local: UInt64,
        _ remote: Int,
        instance: String? = nil,
        isAlone: Bool = false
    )
        -> RemoteCheckpoint
    {
        var progress = RemoteCheckpoint(
            Checkpoint(completed: SequenceSet([0...local]), remote: Answers.sequence(remote))
        )
        (progress.instance, progress.isAlone) = (instance, isAlone)
        return progress
    }

    static func copy(_ progress: RemoteCheckpoint, revision: String? = nil) -> JSONElement {
        var value = JSONElement(progress.json(time: 0)).value
        if let revision { value["_rev"] = .string(revision) }
        return JSONElement(JSONText(canonical: value))
    }

    /// A session that has begun, as far as the answer lets it.
    static func opened(
        _ checkpoints: RecordedCheckpoints,
        _ answer: Machine.Answer,
        instance: String? = nil,
        _ plan: ActivePlan = plan()
    ) throws -> (machine: Machine, step: Machine.Step) {
        var machine = Machine(checkpoints, plan)
        guard case .ask(.copy) = try machine.open(instance: instance) else {
            return (machine, .done)
        }
        let step = machine.receive(answer, hasRestarted: false)
        return (machine, step)
    }

    static func save(
        _ machine: inout Machine,
        _ progress: RemoteCheckpoint,
        at now: Int = 100,
        isLast: Bool = true,
        hasRestarted: Bool = false
    ) -> Machine.Step {
        machine.save(
            progress,
            now: .seconds(now),
            time: 7,
            isLast: isLast,
            hasRestarted: hasRestarted
        )
    }

    /// The revision of the copy that a step replaces; nil if the step saves none.
    static func replaced(_ step: Machine.Step) -> String? {
        if case .ask(.save(_, let revision)) = step { revision ?? "new" } else { nil }
    }

    /// Whether the session ends, and the next one begins at once.
    static func isEnd(_ step: Machine.Step) -> Bool {
        if case .end(let error) = step { error.code == .webSocketAbnormalClose } else { false }
    }
}

extension CheckpointMachine {
    /// Takes an answer. Up to now, two local sequences and two remote ones are done.
    mutating func receive(_ answer: Answer, hasRestarted: Bool) -> Step {
        let progress = RemoteCheckpoint(
            Checkpoint(completed: SequenceSet([0...2]), remote: Answers.sequence(2))
        )
        return receive(answer, progress: progress, hasRestarted: hasRestarted)
    }
}

/// What the database has, what the remote has, and up to where the session goes on.
struct CheckpointStart: Sendable, CustomTestStringConvertible {
    let name: String
    let own: RemoteCheckpoint?
    let theirs: RemoteCheckpoint?
    let local: UInt64
    let remote: Int?
    var instance: String?
    var testDescription: String { name }
}
