import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Handles the peer's requests, which mostly a passive side gets.
extension ReplicationSession {
    mutating func handle(_ message: Message, number: UInt64) {
        let kind = message.kind
        if case .passive(let plan) = role, hasCollections != true, kind != .getCollections {
            // The peer may not have the default collection, and was told; or the database failed, which ends the session.
            guard hasCollections == false || bindDefault(plan, message, number: number) else { return }
        }
        switch kind {
        case .getCollections: getCollections(message, number: number)
        case .getCheckpoint: getCheckpoint(message, number: number)
        case .setCheckpoint: setCheckpoint(message, number: number)
        case .getAttachment: sending(message, number) { $0.getAttachment(message, number: number) }
        case .proveAttachment: sending(message, number) { $0.proveAttachment(message, number: number) }
        case .subChanges:
            noteExtensions(message)
            sending(message, number) { session in
                session.withCollection(message, number) { $0.subscribe($1, message, number: number) }
            }
        case .unsubChanges:
            withCollection(message, number) { $0.unsubscribe($1, message, number: number) }
        case .changes:
            receiving(message, number) {
                // Revisions that the peer took before it sent this message must not be held against it.
                $0.collections[$1].push?.flushMarks(&$0.effects)
                $0.collections[$1].pull.changes(message, request: number, &$0.effects)
            }
        case .proposeChanges:
            noteExtensions(message)
            receiving(message, number) {
                $0.collections[$1].pull.proposals(message, request: number, &$0.effects)
            }
        case .revision:
            receiving(message, number) {
                $0.collections[$1].pull.revision(message, request: number, &$0.effects)
            }
        case .noRevision:
            receiving(message, number) { session, index in
                session.collections[index].pull.noRevision(message, &session.effects)
                session.acknowledge(message, number: number)
            }
        case nil: refuse(message, number, ReplyError("BLIP", 404, "no handler for message"))
        }
    }

    private mutating func acknowledge(_ message: Message, number: UInt64) {
        if !message.noReply { effects.append(.reply(.acknowledgement(of: message), to: number)) }
    }

    mutating func refuse(_ message: Message, _ number: UInt64, _ error: ReplyError) {
        if !message.noReply { effects.append(.replyError(error, to: number, isUrgent: message.isUrgent)) }
    }

    // MARK: Collections

    /// Serves a peer of the 2.x form, which knows the default collection only; false if there is none for it.
    private mutating func bindDefault(_ plan: PassivePlan, _ message: Message, number: UInt64) -> Bool {
        guard plan.collections.contains(.default) else {
            refuse(
                message,
                number,
                ReplyError("BLIP", 400, "This server is not configured for 3.0 client support")
            )
            return false
        }
        guard let bound = effects.ask({ try source.bind([.default], checkpoints: [""]) }) else {
            return false
        }
        guard bound.first?.exists == true else {
            if plan.restrictsAccess {
                let text = "you may not have the default collection\(others(plan))"
                refuse(message, number, ReplyError("HTTP", 403, text))
            } else {
                fail(LoveseatError(.notOpen, "the collection is gone"))
            }
            return false
        }
        hasCollections = false
        makeCollections([.default])
        return true
    }

    /// Names the collections that the peer may have instead of the default one, so that its user need not know them.
    private mutating func others(_ plan: PassivePlan) -> String {
        let named = plan.collections.filter { $0 != .default }
        let bound = effects.ask { try source.bind(named, checkpoints: named.map { _ in "" }) } ?? []
        let names = zip(named, bound).filter(\.1.exists).map(\.0.fullName)
        return names.isEmpty ? "" : "; you may have: \(names.joined(separator: ", "))"
    }

    private mutating func getCollections(_ message: Message, number: UInt64) {
        guard case .passive(let plan) = role else {
            return refuse(message, number, ReplyError("BLIP", 404, "no handler for message"))
        }
        guard hasCollections == nil else {
            return refuse(
                message,
                number,
                ReplyError("BLIP", 400, "Invalid getCollections message: not the first message")
            )
        }
        do throws(ReplyError) {
            let request = try GetCollectionsMessage(message)
            let known = request.names.map { name in name.flatMap { plan.collections.contains($0) ? $0 : nil }
            }
            guard known.allSatisfy({ $0 != nil }) else {
                // A peer that was answered `null` cannot go on.
                let bound = known.map { BoundCollection(exists: $0 != nil) }
                let answer = GetCollectionsMessage.Answer(bound, extensions: extensions)
                return effects.append(.reply(answer.message, to: number))
            }
            let served = known.compactMap { $0 }
            let bound = effects.answering(number) {
                try source.bind(served, checkpoints: request.checkpoints)
            }
            // The database failed, and the peer was told.
            guard let bound else { return }
            if bound.allSatisfy(\.exists) {
                hasCollections = true
                makeCollections(served)
            }
            let answer = GetCollectionsMessage.Answer(bound, extensions: extensions)
            effects.append(.reply(answer.message, to: number))
        } catch { refuse(message, number, error) }
    }

    private mutating func makeCollections(_ names: [CollectionName]) {
        let sessions = zip(names, makeReplicas(names.count)).enumerated().map { index, bound in
            let (name, replica) = bound
            var setup = PullSetup(
                collection: index,
                wireIndex: wireIndex(index),
                isActive: false,
                tuning: tuning
            )
            setup.takesDeltas = usesDeltas
            if case .passive(let plan) = role {
                setup.isFiltered = plan.filtersIncoming
                setup.restrictsAccess = plan.restrictsAccess
            }
            setup.extensions = extensions
            var pull = PullSession(replica, setup, since: nil, peer: peerKind)
            pull.incoming.resumesBlobs = peer.resumesBlobs
            return CollectionSession(name: name, replica: replica, pull: pull)
        }
        begin(sessions)
    }

    /// The index of the collection that a message names. Throws if it names none (replication.md §B.1).
    func collection(of message: Message) throws(ReplyError) -> Int {
        guard let text = message.collectionText else {
            guard hasCollections != true else {
                throw ReplyError("HTTP", 400, "inappropriate use of the collection property.")
            }
            return 0
        }
        guard hasCollections == true else {
            throw ReplyError("HTTP", 400, "inappropriate use of the collection property.")
        }
        guard let index = Int(text), collections.indices.contains(index) else {
            throw ReplyError("HTTP", 400, "the collection property is out of range.")
        }
        return index
    }

    private mutating func withCollection(
        _ message: Message,
        _ number: UInt64,
        _ body: (inout ReplicationSession, Int) -> Void
    ) {
        do throws(ReplyError) { body(&self, try collection(of: message)) } catch {
            refuse(message, number, error)
        }
    }

    /// Handles a message by which the peer pushes.
    private mutating func receiving(
        _ message: Message,
        _ number: UInt64,
        _ body: (inout ReplicationSession, Int) -> Void
    ) {
        switch role {
        case .passive(let plan) where plan.isReadOnly:
            refuse(message, number, ReplyError("HTTP", 403, "Attempting to push to a pull-only replicator"))
        case .active(let plan) where !plan.pulls:
            refuse(message, number, ReplyError("HTTP", 403, "Attempting to push to a push-only replicator"))
        case .active where phase == .negotiating:
            // No pull has begun, and a peer announces nothing before it is asked to (replication.md §1).
            refuse(message, number, ReplyError("HTTP", 400, "there is no subscription to changes yet"))
        case .active, .passive: withCollection(message, number, body)
        }
    }

    /// Handles a message by which the peer pulls.
    private mutating func sending(
        _ message: Message,
        _ number: UInt64,
        _ body: (inout ReplicationSession) -> Void
    ) {
        if case .passive(let plan) = role, plan.isWriteOnly {
            return refuse(
                message,
                number,
                ReplyError("HTTP", 403, "Attempting to pull from a push-only replicator")
            )
        }
        body(&self)
    }

    // MARK: Subscriptions

    private mutating func subscribe(_ index: Int, _ message: Message, number: UInt64) {
        guard plan == nil else {
            return refuse(message, number, ReplyError("LiteCore", 501, "Not implemented."))
        }
        guard collections[index].push == nil else {
            return refuse(message, number, ReplyError("HTTP", 500, "there is a subscription already"))
        }
        do throws(ReplyError) {
            let subscription = try SubChangesMessage(message)
            let answer = SubChangesMessage.Answer(extensions: extensions, isUrgent: message.isUrgent)
            effects.append(.reply(answer.message, to: number))
            var start = SequenceSet([0...0])
            start.insert(0...subscription.position)
            let replica = collections[index].replica
            collections[index].push = PushSession(
                replica,
                PushSetup(
                    collection: index,
                    wireIndex: wireIndex(index),
                    mode: .announcing(subscription),
                    isContinuous: subscription.isContinuous,
                    sendsDeltas: usesDeltas,
                    tuning: tuning
                ),
                start: start,
                peer: PushTarget(peerKind, takesTreeBlobs: peer.takesTreeBlobs)
            )
            // Later deletions are announced: the peer may have the document by then.
            if subscription.activeOnly || (subscription.lateActiveOnly && extensions != nil) {
                collections[index].push?.feed.tombstonesSkipped = replica.lastSequence
            }
            findLosses(index)
        } catch { refuse(message, number, error) }
    }

    /// Ends a subscription, and takes back its messages that are still queued.
    private mutating func unsubscribe(_ index: Int, _ message: Message, number: UInt64) {
        // An active side pushes because its app wants that: no subscription of the peer began it, and none ends it.
        guard plan == nil else {
            return refuse(message, number, ReplyError("LiteCore", 501, "Not implemented."))
        }
        // A peer may unsubscribe twice, or without a subscription.
        if let push = collections[index].push {
            collections[index].push = nil
            effects.append(
                .cancel(
                    push.lists.documents.keys.map { .changes(collection: index, list: $0) }
                        + push.sent.inFlight.keys.map { .revision(collection: index, number: $0) }
                )
            )
        }
        acknowledge(message, number: number)
    }

    /// Looks for documents that the peer has and may not have any more, if it wants to hear of them (replication.md §B.1).
    mutating func findLosses(_ index: Int) {
        // Access may change for a peer that has not subscribed, or does not want to hear of it. An active side judges no access.
        guard case .passive(let plan) = role, plan.restrictsAccess, let push = collections[index].push,
            push.subscription?.wantsRevocations == true
        else { return }
        effects.ask { try collections[index].replica.noteLosses() }
        if push.isContinuous { collections[index].push?.feed.hasMore = true }
    }

    // MARK: Checkpoints

    private mutating func getCheckpoint(_ message: Message, number: UInt64) {
        do throws(ReplyError) {
            let replica = collections[try collection(of: message)].replica
            let request = try GetCheckpointMessage(message)
            // The database failed, and the peer was told.
            guard let found = effects.answering(number, { try replica.peerCheckpoint(request.id) }) else {
                return
            }
            guard let found else {
                return effects.append(.replyError(ReplyError("HTTP", 404), to: number, isUrgent: false))
            }
            let answer = GetCheckpointMessage.Answer(revision: found.revision, body: found.body)
            effects.append(.reply(answer.message, to: number))
        } catch { refuse(message, number, error) }
    }

    private mutating func setCheckpoint(_ message: Message, number: UInt64) {
        do throws(ReplyError) {
            let replica = collections[try collection(of: message)].replica
            let request = try SetCheckpointMessage(message)
            let id = request.id
            guard
                conduct.checkpoints.contains(ExactText(id))
                    || conduct.checkpoints.count < tuning.checkpointsSaved
            else {
                throw ReplyError("HTTP", 403, "a connection may save \(tuning.checkpointsSaved) checkpoints")
            }
            conduct.checkpoints.insert(ExactText(id))
            guard let revision = CheckpointRevision.number(request.revision) else {
                throw ReplyError("HTTP", 409, "revision ID mismatch")
            }
            let saved = effects.answering(number) {
                try replica.savePeerCheckpoint(request.body, as: id, replacing: revision)
            }
            // The database failed, and the peer was told.
            guard let saved else { return }
            guard let saved else { throw ReplyError("HTTP", 409, "revision ID mismatch") }
            effects.append(.reply(SetCheckpointMessage.Answer(revision: saved).message, to: number))
        } catch { refuse(message, number, error) }
    }
}
