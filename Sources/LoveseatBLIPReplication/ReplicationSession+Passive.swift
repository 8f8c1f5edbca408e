import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Handles the peer's requests, which mostly a passive side gets.
extension ReplicationSession {
    mutating func handle(_ message: Message, number: UInt64) {
        let kind = message.kind
        // The database failed, which ends the session.
        guard plan != nil || adoptForm(of: message) else { return }
        if case .passive(let plan) = role, form.addressing == .unknown, kind != .getCollections {
            // The peer may not have the default collection, and was told; or the database failed, which ends the session.
            guard bindDefault(plan, message, number: number) else { return }
        }
        switch kind {
        case .getCollections: getCollections(message, number: number)
        case .getCheckpoint:
            withCollection(message, number) { session, index throws(ReplyError) in
                let request = try GetCheckpointMessage(message)
                let replica = session.collections[index].replica
                session.peerCheckpoints.answer(request, number: number, from: replica, &session.effects)
            }
        case .setCheckpoint:
            withCollection(message, number) { session, index throws(ReplyError) in
                try session.peerCheckpoints.save(
                    try SetCheckpointMessage(message),
                    number: number,
                    limit: max(session.tuning.checkpointsSaved, session.collections.count),
                    in: session.collections[index].replica,
                    &session.effects
                )
            }
        case .getAttachment:
            sending(message, number) { session, index throws(ReplyError) in
                let request = try GetAttachmentMessage(message)
                try session.blobReads.add(request, number: number, in: index, session.tuning)
            }
        case .proveAttachment:
            sending(message, number) { session, index throws(ReplyError) in
                let request = try ProveAttachmentMessage(message)
                try request.answer(number, from: session.collections[index].replica, &session.effects)
            }
        case .subChanges:
            noteExtensions(message)
            sending(message, number) { session, index throws(ReplyError) in
                try session.subscribe(index, message, number: number)
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
        do throws(ReplyError) {
            guard try ServedCollections(plan: plan, source: source).bindDefault(&effects) else {
                return false
            }
        } catch {
            refuse(message, number, error)
            return false
        }
        form.addressing = .defaultOnly
        begin(collectionSetup.collections([.default], plan, makeReplicas(1)))
        return true
    }

    private mutating func getCollections(_ message: Message, number: UInt64) {
        guard case .passive(let plan) = role else {
            return refuse(message, number, ReplyError("BLIP", 404, "no handler for message"))
        }
        do throws(ReplyError) {
            guard form.addressing == .unknown else {
                throw ReplyError("BLIP", 400, "Invalid getCollections message: not the first message")
            }
            let names = ServedCollections(plan: plan, source: source).bind(
                try GetCollectionsMessage(message),
                number: number,
                extensions: form.extensions,
                &effects
            )
            // A peer that misses one of them cannot go on.
            guard let names else { return }
            form.addressing = .positions
            begin(collectionSetup.collections(names, plan, makeReplicas(names.count)))
        } catch { refuse(message, number, error) }
    }

    private mutating func withCollection(
        _ message: Message,
        _ number: UInt64,
        _ body: (inout ReplicationSession, Int) throws(ReplyError) -> Void
    ) {
        do throws(ReplyError) {
            try body(&self, try form.index(of: message, in: collections.count))
        } catch { refuse(message, number, error) }
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
        _ body: (inout ReplicationSession, Int) throws(ReplyError) -> Void
    ) {
        if case .passive(let plan) = role, plan.isWriteOnly {
            return refuse(
                message,
                number,
                ReplyError("HTTP", 403, "Attempting to pull from a push-only replicator")
            )
        }
        withCollection(message, number, body)
    }

    // MARK: Subscriptions

    private mutating func subscribe(_ index: Int, _ message: Message, number: UInt64) throws(ReplyError) {
        guard plan == nil else { throw ReplyError("LiteCore", 501, "Not implemented.") }
        guard collections[index].push == nil else {
            throw ReplyError("HTTP", 500, "there is a subscription already")
        }
        let subscription = try SubChangesMessage(message, form.names)
        let answer = SubChangesMessage.Answer(extensions: form.extensions, isUrgent: message.isUrgent)
        effects.append(.reply(answer.message, to: number))
        let replica = collections[index].replica
        collections[index].push = collectionSetup.push(
            of: replica,
            at: index,
            to: subscription,
            sendsDeltas: usesDeltas
        )
        findLosses(index)
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
}
