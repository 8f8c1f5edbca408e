import LoveseatModel
import LoveseatReplication

/// The end of each event: checkpoints, progress, and the end of the session.
extension ReplicationSession {
    func currentCheckpoint(_ index: Int) -> Checkpoint {
        collections[index].progress(pulls: plan?.pulls == true)
    }

    private func isBusy(_ index: Int) -> Bool {
        if !collections[index].resolving.isEmpty || !collections[index].fetching.isEmpty
            || !collections[index].pull.isQuiet || collections[index].push?.isCaughtUp == false
        {
            return true
        }
        return plan?.pulls == true && !collections[index].pull.isCaughtUp
    }

    private var collectionFailure: LoveseatError? {
        for index in collections.touched {
            if let failure = collections[index].pull.failure ?? collections[index].push?.failure {
                return failure
            }
        }
        return nil
    }

    /// Checks the collections that an event touched, and the totals: saves checkpoints, reports to the app, and ends the session if it is
    /// done.
    mutating func finishEvent() {
        if let failure = effects.failure ?? collectionFailure { fail(failure) }
        let (pulls, isContinuous) = (plan?.pulls == true, plan?.isContinuous == true)
        let mayFetch = phase == .running && pulls && plan?.isFetch == false
        let goesOn = phase == .running || phase == .stopping
        forTouched { session, index in
            if goesOn, session.collections[index].mayHaveMoreToPush, !session.isBusy(index) {
                session.collections[index].mayHaveMoreToPush = false
                session.collections[index].push?.feed.hasMore = true
                session.collections[index].pumpPush(&session.effects)
            }
            if mayFetch, !session.isBusy(index) { session.fetchMissed(index) }
            if mayFetch, isContinuous, session.collections[index].needsRetry {
                session.collections[index].planRetry(
                    index,
                    after: session.tuning.retryDelay,
                    &session.effects
                )
            }
            session.collections.count(index, isBusy: session.isBusy(index), pulls: pulls)
        }
        if !goesOn { return }
        let busy = collections.total.busy > 0
        guard let plan else { return report(isBusy: busy) }
        let refusal = phase == .stopping ? nil : collections.pushRefusal
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
            if isNow { session.collections.count(index, isUnsaved: session.needsCheckpoint(index)) }
        }
        if let failure = effects.failure { return fail(failure) }
        let isUnsaved = isNow && collections.total.unsaved > 0
        report(isBusy: busy || isUnsaved)
        if !isEnding || isUnsaved { return }
        // Everything that the peer gives is pulled by now.
        if let refusal { fail(refusal) } else { close(1000, "") }
    }

    private func needsCheckpoint(_ index: Int) -> Bool {
        guard let checkpoint = collections[index].checkpoint else { return false }
        return checkpoint.isSaving || checkpoint.needsSave(currentCheckpoint(index))
    }

    /// Reports progress to the app. While busy, small steps are left out.
    private mutating func report(isBusy: Bool) {
        var progress = collections.total.progress
        progress.isTotalKnown = phase == .running && collections.total.uncompared == 0
        if !isBusy { progress.completed = progress.total }
        if let (wasBusy, last) = lastReport, wasBusy == isBusy {
            let isSmall =
                progress.documents &- last.documents < tuning.reportDocuments
                && progress.completed &- last.completed < tuning.reportBytes
                && progress.compared &- last.compared < tuning.reportCompared
                && progress.isTotalKnown == last.isTotalKnown
            if progress == last || (isBusy && isSmall) { return }
        }
        lastReport = (isBusy, progress)
        effects.append(.report(.activity(isBusy: isBusy, progress)))
    }
}
