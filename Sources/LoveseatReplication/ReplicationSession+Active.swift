import LoveseatBLIP
import LoveseatModel

/// The side that opened the connection (replication.md §2).
extension ReplicationSession {
    mutating func beginActive(_ plan: ActivePlan, _ negotiated: ReplicationProtocol) {
        let isSoleDefault = plan.collections.map(\.name) == [.default]
        guard negotiated == .mobile3 || isSoleDefault else {
            return fail(
                LoveseatError(
                    .unsupported,
                    "the peer speaks CBMobile_2, which knows the default collection only: sync that one"
                )
            )
        }
        if !plan.isContinuous { startListening() }
        isMobile2 = negotiated == .mobile2
        // The form of 2.x is understood by every peer; it has no collections.
        hasCollections = !isSoleDefault
        collections = plan.collections.enumerated().map { index, binding in
            var checkpoint = CheckpointSession(
                collection: index,
                id: binding.checkpointID,
                repairs: tuning.checkpointRepairs,
                plan
            )
            checkpoint.wireIndex = isSoleDefault ? nil : index
            let pull = makePull(index, wireIndex: checkpoint.wireIndex, since: nil)
            return CollectionSession(name: binding.name, checkpoint: checkpoint, pull: pull)
        }
        for index in collections.indices where !plan.isFetch {
            guard let stored = effects.ask({ try $0.checkpoint(of: index) }) else { return }
            collections[index].checkpoint?.loaded(stored)
        }
        phase = .negotiating
        if hasCollections == true {
            let message = GetCollectionsMessage.request(
                plan.collections.map(\.name),
                checkpoints: plan.collections.map(\.checkpointID)
            )
            effects.append(.send(message, then: .getCollections))
        } else {
            let message = Message(["Profile": "getCheckpoint", "client": plan.collections[0].checkpointID])
            effects.append(.send(message, then: .getCheckpoint(collection: 0)))
        }
    }

    mutating func collectionsAnswered(_ answer: Result<Message, ReplyError>) {
        guard phase == .negotiating else { return }
        do throws(ReplyError) {
            let message = try answer.get()
            learn(message)
            let items = try ChangesMessage.list(message.body)
            guard items.count == collections.count else {
                throw ReplyError("BLIP", 400, "wrong number of collections")
            }
            let missing = zip(collections, items).filter { $0.1.isNull }.map { "'\($0.0.name.path)'" }
            guard missing.isEmpty else {
                let names = missing.joined(separator: ", ")
                return fail(
                    LoveseatError(.httpNotFound, "Collection \(names) is not found on the remote server")
                )
            }
            for (index, item) in items.enumerated() {
                // Couchbase Lite says `rev`, gateways `_rev`; anything but an empty object is a checkpoint
                // (replication.md §B.2).
                let hasCheckpoint = item.kind == .object && item.count > 0
                collections[index].checkpoint?.peerAnswered(
                    hasCheckpoint ? item : nil,
                    revision: (item["rev"] ?? item["_rev"])?.string
                )
            }
            startAll()
        } catch { fail(LoveseatError(reply: error, "asking for collections")) }
    }

    mutating func checkpointAnswered(_ answer: Result<Message, ReplyError>) {
        guard phase == .negotiating else { return }
        switch answer {
        case .success(let message):
            let json = try? JSONElement(parsing: message.body)
            collections[0].checkpoint?.peerAnswered(json, revision: message.properties["rev"])
        case .failure(let error) where error.code == 404 && error.domain != "BLIP":
            collections[0].checkpoint?.peerAnswered(nil, revision: nil)
        case .failure(let error):
            return fail(LoveseatError(reply: error, "asking for the checkpoint"))
        }
        startAll()
    }

    private func makePull(_ index: Int, wireIndex: Int?, since: RemoteSequence?) -> PullSession {
        var options = PullSession.Options()
        if let plan {
            options.autoPurges = plan.autoPurges
            options.isFiltered = plan.collections[index].filtersPull
            options.takesDeltas = plan.usesDeltas
            options.removesByBody = isMobile2
        }
        return PullSession(
            collection: index,
            wireIndex: wireIndex,
            isActive: true,
            since: since,
            options: options,
            peer: peerKind,
            tuning: tuning
        )
    }

    private mutating func startAll() {
        guard let plan else { return }
        phase = .running
        for index in collections.indices {
            guard let checkpoint = collections[index].checkpoint else { continue }
            let wireIndex = checkpoint.wireIndex
            effects.store.believeMarks(checkpoint.trust, in: index)
            collections[index].pull = makePull(index, wireIndex: wireIndex, since: checkpoint.start.remote)
            if plan.pulls {
                collections[index].failedBefore = effects.ask { try $0.failures(in: index) } ?? []
                let binding = plan.collections[index]
                let message = Subscription.request(
                    collection: wireIndex,
                    since: checkpoint.start.remote,
                    isContinuous: plan.isContinuous,
                    batch: tuning.changesAskedFor,
                    // Other peers leave out deletions that were made while the pull went on.
                    activeOnly: binding.isEmpty && checkpoint.start.remote == nil
                        && peer.announcesLateDeletions,
                    // Over the older protocol revoked documents are announced like any others (gateway.md 32).
                    wantsRevocations: !isMobile2,
                    channels: binding.channels,
                    documentIDs: binding.documentIDs
                )
                effects.append(.send(message, then: .subscribe(collection: index)))
            }
            if plan.pushes {
                collections[index].push = PushSession(
                    collection: index,
                    wireIndex: wireIndex,
                    mode: .proposing(pulls: plan.pulls),
                    start: checkpoint.start.completed,
                    isContinuous: plan.isContinuous,
                    sendsDeltas: plan.usesDeltas,
                    peer: peerKind,
                    tuning: tuning
                )
            }
        }
    }

    mutating func handleAnswer(_ what: ReplyContinuation, _ answer: Result<Message, ReplyError>) {
        switch what {
        case .getCollections: collectionsAnswered(answer)
        case .getCheckpoint: checkpointAnswered(answer)
        case .refetchCheckpoint(let index):
            collections[index].checkpoint?.refetched(answer, time: now, &effects)
        case .setCheckpoint(let index):
            collections[index].checkpoint?.savedRemotely(answer, time: now, &effects)
        case .subscribe(let index):
            switch answer {
            case .success(let message):
                learn(message)
                listConflicts(index, after: 0)
            case .failure(let error): fail(LoveseatError(reply: error, "subscribing to changes"))
            }
        case .proposals(let index, let list), .changes(let index, let list):
            if case .success(let message) = answer { learn(message) }
            collections[index].push?.listAnswered(list, answer, &effects)
        case .revocations(let index, let ids):
            collections[index].push?.revocationsAnswered(&effects)
            guard case .success = answer else { return }
            effects.ask { try $0.forgetGrants(ids, in: index) }
        case .revision(let index, let key):
            if plan != nil, case .success(let message) = answer {
                collections[index].pushed(key)
                if message.properties[TreeMessage.property] != nil {
                    collections[index].mayHaveMoreToPush = true
                }
            }
            collections[index].push?.revisionAnswered(key, answer, &effects)
        case .blob(let index, let handle):
            guard case .failure(let error) = answer else { return }
            blobEnded(index, handle, LoveseatError(reply: error, "fetching a blob"))
        }
    }

    mutating func blobEnded(_ index: Int, _ handle: BlobHandle, _ error: LoveseatError?) {
        let digest = collections[index].pull.digest(handle)
        collections[index].pull.blobEnded(handle, error, &effects)
        // Documents of any collection may have waited for this one.
        for index in collections.indices { collections[index].pull.blobCame(digest) }
    }

    /// Fetches documents that the feed of changes has passed.
    mutating func fetchMissed(_ index: Int) {
        let missed = collections[index].takeMissed()
        guard !missed.isEmpty else { return }
        effects.append(.fetch(FetchNotice(collection: index, documentIDs: missed)))
    }

    /// Has the app resolve what earlier runs left, as many at a time as one answer holds.
    mutating func listConflicts(_ index: Int, after sequence: UInt64) {
        guard let page = effects.ask({ try $0.conflicts(in: index, after: sequence) }) else { return }
        collections[index].unlistedConflicts = page.next
        for id in page.ids { resolve(index, id) }
    }

    /// Only an active puller takes conflicts in, and so only it resolves them.
    mutating func resolve(_ index: Int, _ id: String) {
        guard plan?.pulls == true else { return }
        guard collections[index].resolving.insert(id).inserted else { return }
        effects.append(
            .resolve(ConflictNotice(collection: index, documentID: id, peer: peerKind))
        )
    }
}
