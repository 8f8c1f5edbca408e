import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The side that opened the connection (replication.md §2).
extension ReplicationSession {
    mutating func beginActive(_ plan: ActivePlan) {
        let isSoleDefault = plan.isSoleDefault
        guard form.negotiated != .mobile2 || isSoleDefault else {
            return fail(
                LoveseatError(
                    .unsupported,
                    "the peer speaks CBMobile_2, which knows the default collection only: sync that one"
                )
            )
        }
        if !plan.isContinuous { conduct.startListening(tuning, &effects) }
        // The form of 2.x is understood by every peer with trees; it has no collections.
        form.addressing =
            isSoleDefault && form.names == .trees && !form.isOpen ? .defaultOnly : .positions
        begin(collectionSetup.collections(plan, makeReplicas(plan.collections.count)))
        for index in collections.indices where !plan.isFetch {
            // The database failed, which ends the session.
            guard let stored = effects.ask({ try collections[index].replica.checkpoint() }) else { return }
            collections[index].checkpoint?.loaded(stored)
        }
        phase = .negotiating
        if form.addressing == .positions {
            let request = GetCollectionsMessage(
                plan.collections.map(\.name),
                checkpoints: plan.collections.map(\.checkpointID),
                source: form.source
            )
            effects.append(.send(request.message, then: .getCollections))
        } else {
            askForCheckpoint(plan)
        }
    }

    /// Asks for the checkpoint of the default collection in the form of 2.x.
    private mutating func askForCheckpoint(_ plan: ActivePlan) {
        let request = GetCheckpointMessage(id: plan.collections[0].checkpointID, collection: nil)
        effects.append(.send(request.message, then: .getCheckpoint(collection: 0)))
    }

    mutating func collectionsAnswered(_ answer: Result<Message, ReplyError>) {
        guard phase == .negotiating, let plan else {
            return impossible("collections are answered when \(phase)")
        }
        if case .failure(let error) = answer, error.isUnknownRequest, form.isOpen, plan.isSoleDefault {
            // Couchbase Lite knows collections since 3.1. Nothing older has versions.
            form.noteNaming(.trees)
            form.addressing = .defaultOnly
            collections[0].checkpoint?.wireIndex = nil
            return askForCheckpoint(plan)
        }
        do throws(ReplyError) {
            let answer = try GetCollectionsMessage.Answer(try answer.get())
            noteExtensions(answer.extensions)
            guard answer.items.count == collections.count else {
                throw ReplyError("BLIP", 400, "wrong number of collections")
            }
            var missing: [CollectionName] = []
            for (index, item) in answer.items.enumerated() {
                switch item {
                case .missing: missing.append(collections[index].name)
                case .empty: collections[index].checkpoint?.peerAnswered(nil, revision: nil)
                case .checkpoint(let body, let revision):
                    collections[index].checkpoint?.peerAnswered(body, revision: revision)
                }
            }
            guard missing.isEmpty else { return fail(.lacking(missing)) }
            // Two Loveseats speak of trees.
            if form.isOpen, !form.peer.knowsTrees { askForForm() } else { startAll() }
        } catch { fail(LoveseatError(reply: error, "asking for collections")) }
    }

    mutating func checkpointAnswered(_ answer: Result<Message, ReplyError>) {
        guard phase == .negotiating else { return impossible("a checkpoint is answered when \(phase)") }
        switch answer {
        case .success(let message):
            let answer = GetCheckpointMessage.Answer(message)
            // A checkpoint that is not JSON counts as none.
            let json = try? JSONElement(parsing: answer.body)
            collections[0].checkpoint?.peerAnswered(json, revision: answer.revision)
        case .failure(let error) where error.code == 404 && error.domain != "BLIP":
            collections[0].checkpoint?.peerAnswered(nil, revision: nil)
        case .failure(let error):
            return fail(LoveseatError(reply: error, "asking for the checkpoint"))
        }
        startAll()
    }

    mutating func startAll() {
        guard let plan else { return impossible("a passive side starts by itself") }
        phase = .running
        if form.isOpen { form.noteNaming(.trees) }
        let setup = collectionSetup
        for index in collections.indices {
            collections.update(index, &effects) { setup.start(&$0, at: index, plan, &$1) }
        }
    }

    mutating func handleAnswer(_ what: ReplyContinuation, _ answer: Result<Message, ReplyError>) {
        switch what {
        case .getCollections: collectionsAnswered(answer)
        case .getCheckpoint: checkpointAnswered(answer)
        case .form: formAnswered(answer)
        case .refetchCheckpoint(let index):
            collections[index].checkpoint?.refetched(answer, time: now, &effects)
        case .setCheckpoint(let index):
            collections[index].checkpoint?.savedRemotely(answer, time: now, &effects)
        case .subscribe(let index):
            switch answer {
            case .success(let message):
                noteExtensions(message)
                listConflicts(index, after: 0)
            case .failure(let error):
                pullRefused(index, LoveseatError(reply: error, "subscribing to changes"))
            }
        case .proposals(let index, let list), .changes(let index, let list):
            if case .success(let message) = answer { noteExtensions(message) }
            collections[index].push?.listAnswered(list, answer, &effects)
            collections.refusal = collections.refusal ?? collections[index].push?.peer.refusal
        case .revision(let index, let number):
            if plan != nil, case .success(let message) = answer {
                collections.update(index, &effects) { collection, _ in
                    collection.pushed(number)
                    if case .outranked = RevisionMessage.Answer(message) {
                        collection.mayHaveMoreToPush = true
                    }
                }
            }
            collections.update(index, &effects) { $0.push?.revisionAnswered(number, answer, &$1) }
        case .blob(let index, let handle):
            guard case .failure(let error) = answer else {
                return impossible("a blob comes as one whole answer")
            }
            blobEnded(index, handle, LoveseatError(reply: error, "fetching a blob"))
        }
    }

    /// The peer refused a subscription. A peer that only takes documents still gets them before the session ends.
    private mutating func pullRefused(_ index: Int, _ error: LoveseatError) {
        guard plan?.pushes == true, error.code == .httpForbidden else { return fail(error) }
        collections[index].refusePull()
        collections.refusal = collections.refusal ?? error
    }

    mutating func blobEnded(_ index: Int, _ handle: BlobHandle, _ error: LoveseatError?) {
        let digest = collections[index].pull.incoming.digest(handle)
        collections[index].pull.blobEnded(handle, error, &effects)
        // A blob that was given up still ends when the peer has sent all of it.
        guard let digest else { return }
        // Documents of any collection may have waited for this one.
        for index in collections.indices
        where collections.mayBeBusy(index) && collections[index].pull.incoming.isWaiting(for: digest) {
            collections[index].pull.incoming.blobCame(digest)
        }
    }

    /// Has the app resolve the conflicts that earlier runs left, as many at a time as one answer holds.
    mutating func listConflicts(_ index: Int, after sequence: UInt64) {
        let replica = collections[index].replica
        // The database failed, which ends the session.
        guard let page = effects.ask({ try replica.conflicts(after: sequence) }) else { return }
        collections[index].unlistedConflicts = page.next
        for id in page.ids { resolve(index, id) }
    }

    /// Only an active puller takes conflicts in, and so only it resolves them.
    mutating func resolve(_ index: Int, _ id: String) {
        guard plan?.pulls == true else {
            return impossible("a side that does not pull is to resolve a conflict")
        }
        // The app may be resolving a conflict of this document already.
        guard collections[index].resolving.insert(id) else { return }
        effects.append(
            .resolve(ConflictNotice(collection: index, documentID: id, peer: form.peerKind))
        )
    }
}

extension ActivePlan {
    /// Whether only the default collection is replicated, which also the form of 2.x has.
    fileprivate var isSoleDefault: Bool { collections.map(\.name) == [.default] }
}
