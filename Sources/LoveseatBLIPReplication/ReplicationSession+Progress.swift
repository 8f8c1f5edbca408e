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
        if let failure = effects.failure ?? collections.failure { fail(failure) }
        let (pulls, isContinuous) = (plan?.pulls == true, plan?.isContinuous == true)
        let mayFetch = phase == .running && pulls && plan?.isFetch == false
        let goesOn = phase == .running || phase == .stopping
        forTouched { session, index in
            if goesOn, session.collections[index].mayHaveMoreToPush,
                !session.collections[index].isBusy(pulls: pulls)
            {
                session.collections[index].mayHaveMoreToPush = false
                session.collections[index].push?.feed.hasMore = true
                session.collections[index].pumpPush(&session.effects)
            }
            if mayFetch, !session.collections[index].isPullRefused,
                !session.collections[index].isBusy(pulls: pulls)
            {
                session.fetchMissed(index)
            }
            if mayFetch, isContinuous, session.collections[index].needsRetry {
                session.collections[index].planRetry(
                    index,
                    after: session.tuning.retryDelay,
                    &session.effects
                )
            }
            session.collections.count(
                index,
                isBusy: session.collections[index].isBusy(pulls: pulls),
                pulls: pulls
            )
        }
        if !goesOn { return }
        let busy = collections.total.busy > 0
        guard let plan else { return report(isBusy: busy) }
        let refusal = phase == .stopping ? nil : collections.refusal
        let isEnding = phase == .stopping || (!busy && (!plan.isContinuous || refusal != nil))
        let isNow = !busy || isEnding
        if isNow { collections.resumeNotes() } else { collections.deferNotes() }
        forTouched { session, index in
            session.collections[index].noteProgress(
                now: isNow,
                plan,
                time: session.now,
                session.tuning,
                &session.effects
            )
            if isNow {
                session.collections.count(
                    index,
                    isUnsaved: session.collections[index].needsCheckpoint(pulls: pulls)
                )
            }
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
        if let news = lastReport.update(progress, isBusy: isBusy, tuning) { effects.append(.report(news)) }
    }
}

/// The progress of a session that was last reported to the app.
struct ProgressReport: Sendable {
    private var last: (isBusy: Bool, progress: ReplicationProgress)?

    /// Returns what to report; nil if nothing changed. While the session is busy, small steps are left out.
    mutating func update(_ progress: ReplicationProgress, isBusy: Bool, _ tuning: ReplicationTuning)
        -> ReplicationReport?
    {
        var progress = progress
        if !isBusy { progress.completed = progress.total }
        if let last, last.isBusy == isBusy {
            let before = last.progress
            let isSmall =
                progress.documents &- before.documents < tuning.reportDocuments
                && progress.completed &- before.completed < tuning.reportBytes
                && progress.compared &- before.compared < tuning.reportCompared
                && progress.isTotalKnown == before.isTotalKnown
            if progress == before || (isBusy && isSmall) { return nil }
        }
        last = (isBusy, progress)
        return .activity(isBusy: isBusy, progress)
    }
}
