import LoveseatModel
import LoveseatReplication

extension ReplicationSession {
    /// One collection's parts.
    struct CollectionSession {
        let name: CollectionName
        var checkpoint: CheckpointSession?
        var push: PushSession?
        var pull: PullSession
        var resolving: DocumentSet = []
        /// After which sequence there are conflicts that are not being resolved yet; nil if there are none.
        var unlistedConflicts: UInt64?
        /// The pull may have changed something that a push of one pass has already gone by.
        var mayHaveMoreToPush = false
        /// Documents that could not be stored when they were pulled before.
        var failedBefore: [String] = []
        /// Documents that are being fetched by their IDs, and those that were.
        var fetching: DocumentSet = []
        var fetched: DocumentSet = []
        /// How long it takes until what the peer could not send is asked for again, in milliseconds; nil if there is no such document.
        private(set) var retryDelay: Int?

        /// Goes on as far as it gets without the peer.
        mutating func goOn(isActive: Bool, _ effects: inout SessionEffects) {
            // What was announced before a push comes after it.
            if pull.mayStoreOutdated { push?.flushMarks(&effects) }
            pull.goOn(&effects)
            while let list = pull.takeList() {
                // What the peer has got of a document decides whether it may take the document away.
                push?.flushMarks(&effects)
                pull.judge(list, &effects)
                if isActive { mayHaveMoreToPush = true }
            }
            pumpPush(&effects)
        }

        mutating func pumpPush(_ effects: inout SessionEffects) {
            if push == nil { return }
            let echoes = pull.echoes
            push?.pump(isEcho: echoes.contains, &effects)
        }

        // What runs after every event is mutating: the compiler copies all of a collection for what only looks at it.

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

        /// How far both directions are.
        func progress(pulls: Bool) -> Checkpoint {
            let start = checkpoint?.start ?? Checkpoint()
            return Checkpoint(
                completed: push?.completed ?? start.completed,
                remote: pulls ? pull.remoteSequence : start.remote
            )
        }

        /// Whether what either side has was compared.
        mutating func isCompared(pulls: Bool) -> Bool {
            (!pulls || pull.isCaughtUp) && push?.hasMore != true
        }

        mutating func add(to progress: inout ReplicationProgress) {
            progress.add(pull.progress)
            // A peer may not have subscribed, and an active side may only pull.
            guard let pushed = push?.progress else { return }
            progress.documentsPushed += pushed.documents
            progress.add(pushed)
        }

        /// The peer took a revision, and so will announce it.
        mutating func pushed(_ message: Int) {
            if let id = push?.inFlight[message]?.id { pull.pushed(id) }
        }

        /// Has a continuous replication ask again, in a while, for what the peer could not send.
        mutating func planRetry(_ index: Int, after delay: Int, _ effects: inout SessionEffects) {
            retryDelay = delay
            effects.append(.setTimer(.retry(collection: index), milliseconds: delay))
        }

        var needsRetry: Bool { retryDelay == nil && !pull.unsent.isEmpty }

        /// They count as never fetched.
        mutating func retry() {
            failedBefore = pull.unsent.sorted
            fetched.subtract(pull.unsent)
        }

        /// Documents were fetched; some of them may have failed again.
        mutating func noteFetched(_ index: Int, _ tuning: ReplicationTuning, _ effects: inout SessionEffects)
        {
            // A fetch may not be a retry. If the database fails, the session ends.
            guard let delay = retryDelay, let failed = effects.ask({ try $0.failures(in: index) }) else {
                return
            }
            pull.keepUnsent(of: failed)
            retryDelay = nil
            if !needsRetry { return }
            planRetry(index, after: min(2 * delay, tuning.maximumRetryDelay), &effects)
        }

        /// Documents that the feed of changes has passed: those that keep a push from being taken, and those that could not be
        /// stored. Each once a session.
        mutating func takeMissed(atMost limit: Int) -> [String] {
            let parked = push?.fetchable ?? []
            let missed = (parked + failedBefore).filter { !fetched.contains($0) }.prefix(limit)
            fetching = DocumentSet(missed)
            fetched.insert(contentsOf: missed)
            return Array(missed)
        }
    }
}
