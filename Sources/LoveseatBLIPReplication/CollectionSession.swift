import LoveseatModel
import LoveseatReplication

/// The parts of a session that belong to one collection.
struct CollectionSession {
    let name: CollectionName
    let replica: any Replica
    var checkpoint: CheckpointSession?
    var push: PushSession?
    var pull: PullSession
    /// Whether the peer refuses to give anything of this collection.
    private(set) var isPullRefused = false
    var resolving: DocumentSet = []
    /// After which sequence there are conflicts that are not being resolved yet; nil if there are none.
    var unlistedConflicts: UInt64?
    /// Whether the pull may have changed something that a push of one pass has already passed.
    var mayHaveMoreToPush = false
    /// Documents that could not be stored when they were pulled before.
    var failedBefore: [String] = []
    /// Documents that are being fetched by their IDs, and those that were.
    var fetching: DocumentSet = []
    var fetched: DocumentSet = []
    /// The delay before documents that the peer could not send are requested again, in milliseconds; nil if there are none.
    private(set) var retryDelay: Int?

    /// Does everything that is possible without the peer.
    mutating func goOn(isActive: Bool, _ effects: inout SessionEffects) {
        // A revision that was announced before a push may arrive after it.
        if pull.mayStoreOutdated { push?.flushMarks(&effects) }
        pull.goOn(&effects)
        while let list = pull.dequeueList() {
            // Whether the peer may take a document away depends on the revisions that it is marked as having.
            push?.flushMarks(&effects)
            pull.evaluateList(list, &effects)
            if isActive { mayHaveMoreToPush = true }
        }
        pumpPush(&effects)
    }

    mutating func pumpPush(_ effects: inout SessionEffects) {
        if push == nil { return }
        let echoes = pull.forPush.echoes
        push?.pump(isEcho: echoes.contains, &effects)
    }

    // Methods that run after every event are mutating: for others the compiler copies all of a collection.

    /// Returns why it cannot go on.
    mutating func failure() -> LoveseatError? { pull.failure ?? push?.failure }

    /// Ends the pull, because the peer refused it. The push goes on.
    mutating func refusePull() {
        isPullRefused = true
        pull.isCaughtUp = true
    }

    /// Saves the checkpoint later, or now.
    mutating func noteProgress(
        now: Bool,
        _ plan: ActivePlan,
        time: Int64,
        _ tuning: ReplicationTuning,
        _ effects: inout SessionEffects
    ) {
        if now { push?.flushMarks(&effects) }
        let progress = progress(pulls: plan.pulls)
        checkpoint?.progressed(to: progress, now: now, time: time, tuning: tuning, &effects)
    }

    /// Does what an event left to do: pushes what the pull changed, fetches what the feed has passed, and plans to ask again for what the
    /// peer could not send. `mayPush`, `mayFetch`: whether the session still begins such work.
    mutating func finishEvent(
        _ index: Int,
        _ plan: ActivePlan?,
        mayPush: Bool,
        mayFetch: Bool,
        _ tuning: ReplicationTuning,
        _ effects: inout SessionEffects
    ) {
        let pulls = plan?.pulls == true
        if mayPush, mayHaveMoreToPush, !isBusy(pulls: pulls) {
            mayHaveMoreToPush = false
            push?.feed.hasMore = true
            pumpPush(&effects)
        }
        if !mayFetch { return }
        if !isPullRefused, !isBusy(pulls: pulls) {
            let missed = drainMissed(atMost: tuning.documentsFetched)
            if !missed.isEmpty {
                effects.append(.fetch(FetchNotice(collection: index, documentIDs: missed)))
            }
        }
        if plan?.isContinuous == true, needsRetry() { planRetry(index, after: tuning.retryDelay, &effects) }
    }

    /// How far both directions are.
    func progress(pulls: Bool) -> Checkpoint {
        let start = checkpoint?.start ?? Checkpoint()
        return Checkpoint(
            completed: push?.completed ?? start.completed,
            remote: pulls ? pull.remoteSequence : start.remote
        )
    }

    /// Whether anything is on its way, or waits for the app. `pulls`: whether the session pulls from its peer.
    mutating func isBusy(pulls: Bool) -> Bool {
        if !resolving.isEmpty || !fetching.isEmpty || !pull.isQuiet || push?.isCaughtUp == false {
            return true
        }
        return pulls && !pull.isCaughtUp
    }

    /// Whether the checkpoint is being saved. ``noteProgress(now:_:time:_:_:)`` begins to save one that says less than it could.
    mutating func isSavingCheckpoint() -> Bool { checkpoint?.isSaving == true }

    /// Whether the changes of both sides were compared.
    mutating func isCompared(pulls: Bool) -> Bool {
        (!pulls || pull.isCaughtUp) && push?.feed.hasMore != true
    }

    mutating func add(to progress: inout ReplicationProgress) {
        progress.add(pull.progress)
        // A peer may not have subscribed, and an active side may only pull.
        guard let pushed = push?.progress else { return }
        progress.documentsPushed += pushed.documents
        progress.add(pushed)
    }

    /// Notes that the peer took a revision, and so will announce it.
    mutating func pushed(_ message: Int) {
        if let id = push?.sent.inFlight[message]?.id { pull.pushed(id) }
    }

    /// Plans to request again, after a delay, the documents that the peer could not send. Only continuous replications do so.
    mutating func planRetry(_ index: Int, after delay: Int, _ effects: inout SessionEffects) {
        retryDelay = delay
        effects.append(.setTimer(.retry(collection: index), milliseconds: delay))
    }

    mutating func needsRetry() -> Bool { retryDelay == nil && !pull.unsent.isEmpty }

    /// Counts the documents that the peer could not send as never fetched.
    mutating func retry() {
        failedBefore = pull.unsent.sorted
        fetched.subtract(pull.unsent)
    }

    /// Notes that documents were fetched; some of them may have failed again.
    mutating func noteFetched(_ index: Int, _ tuning: ReplicationTuning, _ effects: inout SessionEffects) {
        // A fetch may not be a retry. If the database fails, the session ends.
        guard let delay = retryDelay, let failed = effects.ask({ try replica.failures() }) else {
            return
        }
        pull.keepUnsent(of: failed)
        retryDelay = nil
        if !needsRetry() { return }
        planRetry(index, after: min(2 * delay, tuning.maximumRetryDelay), &effects)
    }

    /// Returns documents that the feed of changes has passed: those whose own push is not taken without them, and those that could not
    /// be stored. Each is returned once in a session.
    mutating func drainMissed(atMost limit: Int) -> [String] {
        let parked = push?.fetchable ?? []
        if parked.isEmpty, failedBefore.isEmpty { return [] }
        let missed = (parked + failedBefore).filter { !fetched.contains($0) }.prefix(limit)
        fetching = DocumentSet(missed)
        fetched.insert(contentsOf: missed)
        return Array(missed)
    }
}
