import LoveseatAssertions
package import LoveseatBLIP
package import LoveseatModel
package import LoveseatReplication

/// One connection's life: checkpoints, push and pull of every collection, for the active or the passive side.
///
/// It reads no clock and opens no socket: events arrive as method calls. Each asks the database and returns what the driver must do. A
/// session serves one connection; another attempt is a new session.
package struct ReplicationSession {
    enum Phase: Hashable {
        case connecting
        case negotiating
        case running
        case stopping
        case over
    }

    enum Role: Sendable {
        case active(ActivePlan)
        case passive(PassivePlan)
    }

    let role: Role
    let tuning: ReplicationTuning
    var phase = Phase.connecting
    var collections = CollectionSessions()
    var effects = SessionEffects()
    let source: any ReplicaSource
    /// Unix time in seconds, for the `time` of checkpoints.
    package var now: Int64 = 0

    var form: ProtocolForm
    var blobReads = BlobReads()
    var peerCheckpoints = PeerCheckpoints()
    var conduct = PeerConduct()
    var lastReport: ProgressReport
    private var hasFailed = false
    private var invariantPace = InvariantPace()

    package init(
        active plan: ActivePlan,
        replicas source: any ReplicaSource,
        tuning: ReplicationTuning = ReplicationTuning()
    ) {
        role = .active(plan)
        form = ProtocolForm(extensions: plan.isPlain ? nil : ProtocolExtensions.all, isActive: true)
        self.source = source
        self.tuning = tuning
        lastReport = ProgressReport(tuning)
    }

    package init(
        passive plan: PassivePlan,
        replicas source: any ReplicaSource,
        tuning: ReplicationTuning = ReplicationTuning()
    ) {
        role = .passive(plan)
        form = ProtocolForm(extensions: plan.isPlain ? nil : ProtocolExtensions.all, isActive: false)
        self.source = source
        self.tuning = tuning
        lastReport = ProgressReport(tuning)
    }

    var usesDeltas: Bool {
        switch role {
        case .active(let plan): plan.usesDeltas
        case .passive(let plan): plan.usesDeltas
        }
    }

    var plan: ActivePlan? { if case .active(let plan) = role { plan } else { nil } }
    package var isOver: Bool { phase == .over }

    /// Whether the waiting received revisions take all the memory that they may. Further ones wait outside the session.
    package var isFull: Bool { collections.total.bufferedBytes > tuning.receivedBytes }

    /// Revisions that the peer was asked for, or was told that it may send, and that have not come.
    package var revisionsExpected: Int { collections.total.expectations }

    /// The positions of the collections by their names; none before the peers agreed on them.
    package var collectionIndices: [CollectionName: Int] { collections.positions }

    // MARK: Events

    /// The connection is open and speaks this protocol; nil if the transport negotiates none.
    package mutating func connected(_ negotiated: ReplicationProtocol?) -> [ReplicationEffect] {
        event { session in
            session.form.agree(on: negotiated)
            // The database failed, which ends the session.
            guard session.beginVersions() else { return }
            if let plan = session.plan {
                session.beginActive(plan)
            } else {
                session.phase = .running
            }
        }
    }

    /// Prepares the database, if the peer has versions; false if that failed, which ends the session.
    mutating func beginVersions() -> Bool {
        if form.names == .trees { return true }
        let source = source
        form.source = effects.ask { try source.beginVersions() }
        return form.source != nil
    }

    package mutating func received(_ message: Message, number: UInt64) -> [ReplicationEffect] {
        event { $0.handle(message, number: number) }
    }

    package mutating func answered(_ what: ReplyContinuation, _ answer: Result<Message, ReplyError>)
        -> [ReplicationEffect]
    {
        event { $0.handleAnswer(what, answer) }
    }

    /// A piece of a blob arrived.
    package mutating func piece(_ what: ReplyContinuation, _ bytes: [UInt8], isLast: Bool)
        -> [ReplicationEffect]
    {
        event { session in
            guard case .blob(let index, let handle) = what else {
                return impossible("pieces come of an answer that is not a blob")
            }
            do throws(LoveseatError) {
                try session.collections[index].pull.blobPiece(handle, bytes, isLast: isLast)
                if let event = session.collections[index].pull.incoming.blobEvent(handle, collection: index) {
                    session.effects.append(.report(.blob(event)))
                }
                if isLast { session.blobEnded(index, handle, nil) }
            } catch { session.blobEnded(index, handle, error) }
        }
    }

    /// All bytes of a request were handed to the transport.
    package mutating func sent(_ what: ReplyContinuation) -> [ReplicationEffect] {
        event { session in
            // Any request is reported when it is sent; only revisions are counted until then.
            guard case .revision(let index, let number) = what else { return }
            session.collections.update(index, &session.effects) { collection, _ in
                collection.push?.transmitted(number)
            }
        }
    }

    /// A blob being sent has room for more.
    package mutating func wantsBody(_ number: UInt64) -> [ReplicationEffect] {
        event { session in
            session.blobReads.supply(
                number,
                for: session.form.peer,
                from: session.collections,
                session.tuning,
                &session.effects
            )
        }
    }

    package mutating func timerFired(_ timer: ReplicationTimer) -> [ReplicationEffect] {
        event { session in
            switch timer {
            case .checkpoint(let index):
                let checkpoint = session.currentCheckpoint(index)
                session.collections[index].push?.flushMarks(&session.effects)
                session.collections[index].checkpoint?.timerFired(
                    checkpoint,
                    time: session.now,
                    &session.effects
                )
            case .insert(let index): session.collections[index].pull.insertQueue.timerFired()
            case .retry(let index): session.collections[index].retry()
            case .stop: session.close(1000, "")
            case .silence: session.checkSilence()
            }
        }
    }

    /// Ends the session if the peer is silent. Time that the app takes for a decision, or another connection for a fetch, does not count.
    private mutating func checkSilence() {
        guard phase != .over else { return impossible("a session that is over waits for its peer") }
        let isOurTurn = collections.contains { !$0.resolving.isEmpty || !$0.fetching.isEmpty }
        if let failure = conduct.checkSilence(isOurTurn: isOurTurn, tuning, &effects) { fail(failure) }
    }

    /// Something was saved in a collection here.
    package mutating func localChange(_ index: Int) -> [ReplicationEffect] {
        event { session in
            // A commit may come before the peers agree on collections: a push reads it when it begins. A session that stops reads no more.
            guard session.phase == .running, session.collections.indices.contains(index) else { return }
            // A peer may not have subscribed, and a push of one pass does not follow the feed.
            guard let push = session.collections[index].push, push.isContinuous else { return }
            session.collections[index].push?.feed.hasMore = true
        }
    }

    /// Looks for documents that the peer may no longer read. Call this when its permissions may have changed.
    package mutating func accessChanged() -> [ReplicationEffect] {
        event { session in
            // Access may change before the connection is up: a subscription looks for losses when it begins.
            guard session.phase == .running else { return }
            for index in session.collections.indices { session.findLosses(index) }
        }
    }

    /// The app resolved a conflict, or could not.
    package mutating func resolved(_ index: Int, documentID: String, _ error: LoveseatError?)
        -> [ReplicationEffect]
    {
        event { session in
            guard session.collections[index].resolving.remove(documentID) else {
                return impossible("a conflict is resolved that nobody was asked to resolve")
            }
            // The next connection finds the conflict again.
            if let error, error.code == .busy { return session.fail(error) }
            if session.collections[index].resolving.isEmpty,
                let next = session.collections[index].unlistedConflicts
            {
                session.collections[index].unlistedConflicts = nil
                session.listConflicts(index, after: next)
            }
            session.effects.append(.report(.document(.pulled(documentID, in: index, error))))
            session.collections[index].push?.documentMoved(documentID, &session.effects)
            // A resolver's result belongs to this run, even if the run makes only one pass.
            session.collections[index].mayHaveMoreToPush = true
        }
    }

    /// Documents were fetched by their IDs, as far as the peer shows them.
    ///
    /// `isComplete`: whether the peer was asked for all of them.
    package mutating func fetched(_ notice: FetchNotice, isComplete: Bool) -> [ReplicationEffect] {
        event { session in
            let index = notice.collection
            session.collections[index].fetching = []
            session.collections[index].noteFetched(index, session.tuning, &session.effects)
            for id in notice.documentIDs {
                session.collections[index].push?.fetched(id, isComplete: isComplete, &session.effects)
            }
            session.collections[index].mayHaveMoreToPush = true
        }
    }

    /// The app wants the replication to end. Saves the checkpoints first, and does not wait long for the peer.
    package mutating func stop() -> [ReplicationEffect] {
        event { session in
            // A passive peer that stops is going away (replication.md §21.3).
            guard session.plan != nil else { return session.close(1001, "") }
            guard session.phase == .running else { return session.close(1000, "") }
            session.phase = .stopping
            session.effects.append(.setTimer(.stop, milliseconds: session.tuning.stopDelay))
        }
    }

    /// The connection is gone.
    package mutating func disconnected() -> [ReplicationEffect] {
        event { session in
            session.finish()
            session.phase = .over
        }
    }

    private mutating func event(_ body: (inout ReplicationSession) -> Void) -> [ReplicationEffect] {
        if phase != .over {
            body(&self)
            goOn()
            if let failure = conduct.failure(after: effects.violations, tuning) { fail(failure) }
            finishEvent()
            if let failure = effects.failure {
                // A session that ends for another reason still writes down the revisions that the peer has taken, which may fail.
                if phase == .over, !hasFailed { effects.append(.report(.checkpointNotSaved(failure))) }
                fail(failure)
            }
            if AssertionFailures.areFatal, invariantPace.isDue(holding: checkedEntries) { checkInvariants() }
            collections.endEvent()
        }
        return effects.drain()
    }

    func makeReplicas(_ count: Int) -> [any Replica] {
        let replicas = source.makeReplicas()
        invariant(replicas.count == count, "there are \(replicas.count) replicas of \(count) collections")
        return replicas
    }

    /// Makes collections in the form that the two sides have agreed on so far.
    var collectionSetup: CollectionSetup { CollectionSetup(form: form, tuning: tuning) }

    /// The collections of a session that begins.
    mutating func begin(_ sessions: [CollectionSession]) {
        collections = CollectionSessions(sessions)
    }

    /// Continues every collection that the event touched, as far as possible without the peer.
    private mutating func goOn() {
        if phase == .over { return }
        forTouched { session, index in
            let isActive = session.plan != nil
            var moved: [PushHints.Moved] = []
            repeat {
                session.collections.update(index, &session.effects) { collection, effects in
                    collection.goOn(isActive: isActive, &effects)
                    moved = collection.pull.forPush.drainMoved()
                }
                for document in moved { session.follow(document, index) }
            } while !moved.isEmpty
        }
        // The call copies what it needs of the session.
        if blobReads.areWaiting { blobReads.begin(for: form.peer, from: collections, tuning, &effects) }
    }

    /// Does something for every collection that the event touched, and those that are touched by that.
    mutating func forTouched(_ body: (inout ReplicationSession, Int) -> Void) {
        var next = 0
        while next < collections.touched.count {
            body(&self, collections.touched[next])
            next += 1
        }
    }

    /// The pull changed a document.
    private mutating func follow(_ document: PushHints.Moved, _ index: Int) {
        switch document {
        case .stored(let id): collections.update(index, &effects) { $0.push?.documentMoved(id, &$1) }
        case .inConflict(let id): resolve(index, id)
        case .takenAway(let id): collections[index].push?.documentRemoved(id)
        }
    }

    // MARK: Ending

    /// Ends the session with an error from outside.
    mutating func failed(_ error: LoveseatError) -> [ReplicationEffect] {
        fail(error)
        return effects.drain()
    }

    mutating func fail(_ error: LoveseatError) {
        if phase == .over || hasFailed { return }
        hasFailed = true
        effects.append(.report(.failure(error)))
        // A peer whose collection is gone here shall ask once more, and be told which one it is.
        let isTransient =
            error.code.domain == .posix || error.code == .busy || (plan == nil && error.code == .notOpen)
        close(isTransient ? 4001 : 1011, String(error.message.prefix(100)))
    }

    mutating func close(_ code: Int, _ reason: String) {
        if phase == .over { return }
        finish()
        phase = .over
        effects.append(.close(code: code, reason: reason))
    }

    /// Discards incomplete transfers, writes down the marks, and reports documents that still wait.
    private mutating func finish() {
        for index in collections.indices {
            collections[index].pull.disconnected()
            collections[index].push?.flushMarks(&effects)
            collections[index].push?.reportParked(&effects)
        }
    }
}
