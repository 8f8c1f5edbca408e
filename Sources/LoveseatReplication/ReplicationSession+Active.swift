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
        phase = .loadingCheckpoints(missing: collections.count)
        for index in collections.indices {
            guard !plan.isFetch else {
                checkpointLoaded(index, nil, .unknown, wasTakenFrom: false)
                continue
            }
            effects.append(
                .store(.loadCheckpoint(collection: index), then: .checkpointLoaded(collection: index))
            )
        }
    }

    mutating func checkpointLoaded(
        _ index: Int,
        _ json: JSONText?,
        _ marks: MarkState,
        wasTakenFrom: Bool
    ) {
        guard let plan, case .loadingCheckpoints(let missing) = phase else { return }
        collections[index].checkpoint?.loaded(json, marks, wasTakenFrom: wasTakenFrom)
        phase = .loadingCheckpoints(missing: missing - 1)
        guard missing == 1 else { return }
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
            effects.append(.store(.believeMarks(collection: index, checkpoint.trust), then: .nothing))
            collections[index].pull = makePull(index, wireIndex: wireIndex, since: checkpoint.start.remote)
            if plan.pulls {
                effects.append(
                    .store(.listFailures(collection: index), then: .failuresListed(collection: index))
                )
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
                collections[index].push?.pump(&effects)
            }
        }
    }

    mutating func handleAnswer(_ what: ReplyContinuation, _ answer: Result<Message, ReplyError>) {
        switch what {
        case .getCollections: collectionsAnswered(answer)
        case .getCheckpoint: checkpointAnswered(answer)
        case .refetchCheckpoint(let index):
            collections[index].checkpoint?.refetched(answer, &effects)
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
            effects.append(.store(.forgetGrants(collection: index, ids), then: .nothing))
        case .revision(let index, let key):
            if plan != nil, case .success = answer { collections[index].pushed(key) }
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
        for index in collections.indices { collections[index].pull.fetchWaiting(digest, &effects) }
    }

    mutating func handleStored(_ what: StoreContinuation, _ answer: StoreAnswer) {
        if case .failed(let error) = answer, handleStoreFailure(what, error) { return }
        switch (what, answer) {
        case (.checkpointLoaded(let index), .checkpoint(let json, let marks, let wasTakenFrom)):
            checkpointLoaded(index, json, marks, wasTakenFrom: wasTakenFrom)
        case (.checkpointBegun(let index), .done):
            collections[index].checkpoint?.begun(time: now, &effects)
        case (.checkpointSaved(let index), let answer):
            collections[index].checkpoint?.savedLocally(answer, &effects)
        case (.failuresListed(let index), .failures(let ids)): collections[index].failedBefore = ids
        case (.changesRead(let index), .changes(let changes, let through, let hasMore)):
            let echoes = collections[index].pull.echoes
            collections[index].push?.changesRead(
                changes,
                through: through,
                hasMore: hasMore,
                isEcho: echoes.contains,
                &effects
            )
        case (.revocationsRead(let index), .changes(let changes, _, _)): announceRevoked(changes, index)
        case (.changesJudged(let index, let list), .changeVerdicts(let verdicts)):
            // What the peer has got of a document decides whether it may take the document away.
            collections[index].push?.flushMarks(&effects)
            collections[index].pull.changesJudged(list, verdicts, &effects)
            collections[index].mayHaveMoreToPush = plan != nil
        case (.proposalsJudged(let index, let list), .proposalVerdicts(let verdicts)):
            collections[index].pull.proposalsJudged(list, verdicts, &effects)
        case (.met(let index, let key), .met(let meeting)):
            collections[index].push?.met(key, meeting, &effects)
        case (.heard(let index, let key), .heard(let hearing)):
            collections[index].push?.heard(key, hearing, &effects)
            collections[index].mayHaveMoreToPush = true
        case (.revisionsRead(let index, let keys), .revisions(let found)):
            collections[index].push?.revisionsRead(keys, found, &effects)
        case (.deltaExpanded(let index, let key), .expanded(let expansion)):
            collections[index].pull.deltaExpanded(key, expansion, &effects)
        case (.admitted(let index, let key), .admitted(let verdicts)):
            collections[index].pull.admitted(key, verdicts == [true], &effects)
        case (.accessRemoved(let index, let ids, let list), .accessRemoved(let verdicts)):
            collections[index].pull.accessRemoved(ids, verdicts, answering: list, &effects)
            for (id, verdict) in zip(ids, verdicts) where verdict == .removed {
                collections[index].push?.documentRemoved(id, &effects)
            }
        case (.inserted(let index), .inserted(let results)): inserted(index, results)
        case (.conflictsListed(let index), .conflicts(let ids, let next)):
            collections[index].isListingConflicts = false
            collections[index].unlistedConflicts = next
            for id in ids { resolve(index, id) }
        case (.subscriptionBegins(let index), .lastSequence(let last)):
            collections[index].push?.tombstonesSkipped = last
            findRevoked(index)
            collections[index].push?.pump(&effects)
        case (.unaskedJudged(let request, let isUrgent), .changeVerdicts(let verdicts)):
            answerUnasked(request, isUrgent: isUrgent, isHere: verdicts == [.alreadyHere])
        case (.blobsHeld(let index, let key), .missingBlobs(let missing)):
            collections[index].pull.blobsHeld(key, missing: missing, &effects)
        case (.blobBegun(let index, let handle), .blobBegun(let start)):
            collections[index].pull.blobBegun(handle, start, &effects)
        case (.blobFinished(let index, let handle), _): blobEnded(index, handle, nil)
        default: handleStoredPassive(what, answer)
        }
    }

    /// Returns whether the failure is dealt with.
    private mutating func handleStoreFailure(_ what: StoreContinuation, _ error: LoveseatError) -> Bool {
        switch what {
        case .checkpointSaved where error.code != .busy: return false
        case .blobBegun(let index, let handle), .blobWritten(let index, let handle),
            .blobFinished(let index, let handle):
            blobEnded(index, handle, error)
        case .blobFound(let request), .blobRead(let request), .proven(let request),
            .peerCheckpoint(let request),
            .peerCheckpointSaved(let request), .bound(let request):
            answerFailed(request, error)
        default: fail(error)
        }
        return true
    }

    private mutating func inserted(_ index: Int, _ results: [InsertResult]) {
        // A database that cannot write is no fault of one document.
        if case .failed(let error)? = results.first(where: { if case .failed = $0 { true } else { false } }),
            error.code.domain != .couchbaseLite
        {
            return fail(error)
        }
        for (id, isConflict) in collections[index].pull.inserted(results, &effects) {
            if isConflict { resolve(index, id) } else { collections[index].push?.documentMoved(id, &effects) }
        }
    }

    /// Fetches documents that the feed of changes has passed.
    mutating func fetchMissed(_ index: Int) {
        let missed = collections[index].takeMissed()
        guard !missed.isEmpty else { return }
        effects.append(.fetch(FetchNotice(collection: index, documentIDs: missed)))
    }

    /// Has the app resolve what earlier runs left, as many at a time as one answer holds.
    mutating func listConflicts(_ index: Int, after sequence: UInt64) {
        collections[index].isListingConflicts = true
        effects.append(
            .store(
                .listConflicts(collection: index, after: sequence),
                then: .conflictsListed(collection: index)
            )
        )
    }

    private mutating func answerUnasked(_ request: UInt64, isUrgent: Bool, isHere: Bool) {
        if isHere {
            effects.append(.reply(Message(["noop": "true"], isUrgent: isUrgent), to: request))
        } else {
            let error = ReplyError("HTTP", 403, "the revision was not asked for")
            effects.append(.replyError(error, to: request, isUrgent: isUrgent))
        }
    }

    /// Only an active puller takes conflicts in, and so only it resolves them.
    private mutating func resolve(_ index: Int, _ id: String) {
        guard plan?.pulls == true else { return }
        guard collections[index].resolving.insert(id).inserted else { return }
        effects.append(
            .resolve(ConflictNotice(collection: index, documentID: id, peer: peerKind))
        )
    }
}
