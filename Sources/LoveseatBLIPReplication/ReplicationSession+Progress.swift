import LoveseatModel
import LoveseatReplication

/// The end of each event: checkpoints, progress, and the end of the session.
extension ReplicationSession {
    func currentCheckpoint(_ index: Int) -> Checkpoint {
        collections[index].progress(pulls: plan?.pulls == true)
    }

    /// Checks the collections that an event touched, and the totals: saves checkpoints, reports to the app, and ends the session if it is
    /// done.
    mutating func finishEvent() {
        if let failure = effects.failure ?? collections.firstFailure() { fail(failure) }
        let (active, tuning) = (plan, tuning)
        let pulls = active?.pulls == true
        let goesOn = phase == .running || phase == .stopping
        let mayFetch = phase == .running && pulls && active?.isFetch == false
        forTouched { session, index in
            session.collections.update(index, &session.effects) { collection, effects in
                collection.finishEvent(index, active, mayPush: goesOn, mayFetch: mayFetch, tuning, &effects)
            }
            session.collections.count(index, pulls: pulls)
        }
        if !goesOn { return }
        let busy = collections.total.busy > 0
        guard let plan else { return report(isBusy: busy) }
        let refusal = phase == .stopping ? nil : collections.refusal
        let isEnding = phase == .stopping || (!busy && (!plan.isContinuous || refusal != nil))
        let isNow = !busy || isEnding
        if isNow { collections.resumeNotes() } else { collections.deferNotes() }
        forTouched { session, index in
            let time = session.now
            session.collections.update(index, &session.effects) { collection, effects in
                collection.noteProgress(now: isNow, plan, time: time, tuning, &effects)
            }
            if isNow { session.collections.countUnsaved(index) }
        }
        if let failure = effects.failure { return fail(failure) }
        let isUnsaved = isNow && collections.total.unsaved > 0
        report(isBusy: busy || isUnsaved)
        if !isEnding || isUnsaved { return }
        // Everything that the peer gives is pulled by now, and everything that it takes is pushed.
        if let refusal { fail(refusal) } else { close(1000, "") }
    }

    /// Reports progress to the app, if it is news.
    private mutating func report(isBusy: Bool) {
        var progress = collections.total.progress
        progress.isTotalKnown = phase == .running && collections.total.uncompared == 0
        if let news = lastReport.update(progress, isBusy: isBusy) { effects.append(.report(news)) }
    }
}

/// The progress of a session that was last reported to the app.
struct ProgressReport: Sendable {
    private var last: (isBusy: Bool, progress: ReplicationProgress)?
    /// Fewer documents, bytes and compared changes are a small step.
    private let (documents, bytes, compared): (UInt64, UInt64, UInt64)

    init(_ tuning: ReplicationTuning) {
        (documents, bytes, compared) = (tuning.reportDocuments, tuning.reportBytes, tuning.reportCompared)
    }

    /// Returns what to report; nil if nothing changed. While the session is busy, small steps are left out.
    mutating func update(_ progress: ReplicationProgress, isBusy: Bool) -> ReplicationReport? {
        var progress = progress
        if !isBusy { progress.completed = progress.total }
        if let last, last.isBusy == isBusy {
            let before = last.progress
            let isSmall =
                progress.documents &- before.documents < documents
                && progress.completed &- before.completed < bytes
                && progress.compared &- before.compared < compared
                && progress.isTotalKnown == before.isTotalKnown
            if progress == before || (isBusy && isSmall) { return nil }
        }
        last = (isBusy, progress)
        return .activity(isBusy: isBusy, progress)
    }
}
