import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Handles a received revision before it is stored: expands a delta, asks the app's filter, and removes a document that the peer took away
/// (replication.md §9.4).
extension PullSession {
    mutating func revision(_ message: Message, request: UInt64, _ effects: inout SessionEffects) {
        let header = RevisionMessage(message, setup.names)
        let key = expectations.key(of: header)
        var arrival = Arrival(
            header: header,
            key: key,
            expected: key.flatMap { expectations.remove($0) },
            request: message.noReply ? nil : request,
            isUrgent: message.isUrgent,
            wireBytes: message.body.count
        )
        let isAsked = expectations.agreed.remove(header.documentID) || arrival.expected != nil
        do throws(ReplyError) {
            try header.check(needsSequence: setup.isActive)
            guard isAsked else {
                let unrequested = UnrequestedRevision(arrival: arrival, peer: peer)
                return unrequested.answer(from: replica, setup, &effects)
            }
            guard !message.isTooLarge else {
                throw ReplyError("HTTP", 413, "the document is larger than this side takes")
            }
            expectations.recordSize(message.body.count)
            let (body, tree) = try header.parts(from: peer)
            arrival.tree = tree
            guard let base = header.deltaSource else { return try accept(arrival, body, &effects) }
            guard setup.takesDeltas, !header.isDeleted else {
                return resend(arrival, "deltas were not negotiated", &effects)
            }
            try expand(body, base, arrival, &effects)
        } catch { refuse(arrival, error, &effects) }
    }

    // MARK: Deltas

    private mutating func expand(
        _ delta: [UInt8],
        _ base: RevisionName,
        _ arrival: Arrival,
        _ effects: inout SessionEffects
    ) throws(ReplyError) {
        let id = arrival.header.documentID
        // The database failed, which ends the session.
        guard let found = effects.ask({ try replica.body(of: base, id) }) else { return }
        guard let old = found else { return resend(arrival, "the delta's base is not here", &effects) }
        guard let bytes = RevisionMessage.expand(delta, base: old) else {
            return resend(arrival, "the delta cannot be applied", &effects)
        }
        progress.deltas.received += 1
        progress.deltas.bytesSaved += UInt64(max(0, bytes.count - arrival.wireBytes))
        try accept(arrival, bytes, &effects)
    }

    /// Asks for the whole body; the same revision comes once more (replication.md §10.3).
    private mutating func resend(
        _ arrival: Arrival,
        _ reason: String,
        _ effects: inout SessionEffects
    ) {
        let error = ReplyError("HTTP", 422, reason)
        guard let request = arrival.request else { return refuse(arrival, error, &effects) }
        let id = arrival.header.documentID
        expectations.expectAgain(id, arrival.key, arrival.expected, isActive: setup.isActive)
        effects.append(.replyError(error, to: request, isUrgent: arrival.isUrgent))
    }

    // MARK: Bodies

    private mutating func accept(
        _ arrival: Arrival,
        _ bytes: [UInt8],
        _ effects: inout SessionEffects
    ) throws(ReplyError) {
        let content = try ReceivedBody(bytes, generation: arrival.header.generation)
        guard !content.isRemoved else { return remove(arrival, &effects) }
        guard !notes.isRevoked(arrival.header.documentID, isDeleted: arrival.header.isDeleted) else {
            return drop(arrival, &effects)
        }
        if let report = content.leftOutReport(of: arrival.header.documentID, setup.collection) {
            effects.append(.report(report))
        }
        var revision = arrival.revision(content.body, from: peer)
        revision.parent = expectations.agreed.removeParent(of: revision.name, revision.documentID)
        // Nothing is stored of other leaves if the app's filter refuses one of them.
        let isRefused = setup.isFiltered && revision.otherLeaves.contains { replica.refusal(of: $0) != nil }
        if isRefused { revision.knowledge?.leaveOutBlobs() }
        // A policy is not asked about deletions in a tree.
        if setup.restrictsAccess { revision.knowledge?.leaveOutBlobs(where: \.isDeleted) }
        let told = revision.knowledge?.blobs ?? []
        let entry = Incoming(
            request: arrival.request,
            isUrgent: arrival.isUrgent,
            expected: arrival.expected,
            key: arrival.key,
            left: arrival.tree?.left ?? [],
            revision: revision,
            held: (content.blobs + told).map(\.digest),
            missing: content.blobs + told,
            told: told,
            asListed: content.contradictsTable ? try ReceivedBody(bytes, generation: nil) : nil
        )
        let key = incoming.add(entry)
        guard setup.isFiltered else { return hold(key, &effects) }
        let candidate = FilterCandidate(
            documentID: entry.revision.documentID,
            revision: entry.revision.name,
            isDeleted: entry.revision.isDeleted,
            body: entry.revision.body
        )
        guard let refusal = replica.refusal(of: candidate) else { return hold(key, &effects) }
        incoming[key]?.held = []
        end(key, refusal, &effects)
    }

    /// Keeps the blobs of a revision from garbage collection until it is stored, and finds out which are missing.
    private mutating func hold(_ key: Int, _ effects: inout SessionEffects) {
        guard let entry = incoming[key] else { return impossible("a revision needs blobs that is not here") }
        guard !entry.held.isEmpty else { return enqueue(key, entry, &effects) }
        if setup.restrictsAccess {
            // A peer that may not write a document must not fill the disk with its blobs.
            let answer = effects.ask { try replica.writeRefusal(of: entry.revision) }
            // The database failed, which ends the session.
            guard let answer else { return }
            if let refusal = answer {
                // The peer may write the revision, and not the content of another leaf.
                if entry.leaveOutTold() { return hold(key, &effects) }
                incoming[key]?.held = []
                return end(key, refusal, &effects)
            }
        }
        let id = entry.revision.documentID
        let missing = effects.ask { try replica.holdBlobs(entry.held, of: id) }
        // The database failed, which ends the session.
        guard let missing else { return }
        let wanted = Set(missing)
        incoming[key]?.missing.removeAll { !wanted.contains($0.digest) }
        fetchNext(key, &effects)
    }

    /// Takes the blobs that the peer's table of attachments lists, since the peer does not have those that the body names. Returns false if
    /// both are the same.
    mutating func replaceByListed(_ key: Int, _ effects: inout SessionEffects) -> Bool {
        guard let entry = incoming[key], let listed = entry.asListed else { return false }
        replica.releaseBlobs(entry.held)
        let other = Incoming(
            request: entry.request,
            isUrgent: entry.isUrgent,
            expected: entry.expected,
            key: entry.key,
            left: entry.left,
            revision: entry.revision.with(listed.body),
            held: (listed.blobs + entry.told).map(\.digest),
            missing: listed.blobs + entry.told,
            told: entry.told,
            asListed: nil
        )
        incoming.replace(key, by: other)
        hold(key, &effects)
        return true
    }

    /// Refuses a revision that cannot be read. It does not keep the checkpoint back: the next session requests it by its ID.
    private mutating func refuse(
        _ arrival: Arrival,
        _ error: ReplyError,
        finishesSequence: Bool = true,
        _ effects: inout SessionEffects
    ) {
        // No announced document has such an ID, so the one that the peer means would be expected for ever.
        if !DocumentID.isValidOnWire(arrival.header.documentID) { failUnnamed("rev") }
        let reason = LoveseatError(
            LoveseatError(reply: error, "").code,
            "a received revision was refused: \(error.text)"
        )
        if finishesSequence, arrival.expected != nil, let revision = arrival.header.name {
            noteFailure(arrival.header.documentID, revision, reason, &effects)
        }
        finish(arrival, finishesSequence: finishesSequence, &effects)
        expectations.agreed.refuse(arrival.header.documentID)
        arrival.answer(error, &effects)
        setup.report(arrival.header.documentID, isDeleted: arrival.header.isDeleted, reason, &effects)
    }

    private mutating func finish(
        _ arrival: Arrival,
        finishesSequence: Bool = true,
        _ effects: inout SessionEffects
    ) {
        forgetIfDone(arrival.header.documentID)
        if finishesSequence, let entry = arrival.expected { sequences.finish(entry.number) }
        progress.finish(arrival.expected?.bodySize ?? 1, isDocument: false)
        progress.total = max(progress.total, progress.completed)
    }

    // MARK: Access

    /// Handles a document that left every channel that this peer may see.
    private mutating func remove(_ arrival: Arrival, _ effects: inout SessionEffects) {
        guard setup.isActive else {
            // As a gateway does (gateway.md 36): a peer that pushes must not count a revision as taken that is not stored.
            let error = ReplyError("HTTP", 404, "a body with _removed is not the content of a document")
            return refuse(arrival, error, &effects)
        }
        guard setup.removesByBody else {
            // Its announcement said otherwise: nothing is purged, and the checkpoint stays before it (replication.md §14).
            let error = ReplyError(
                "HTTP",
                404,
                "the peer announced the document and sent that it was removed"
            )
            return refuse(arrival, error, finishesSequence: false, &effects)
        }
        drop(arrival, &effects)
        let removal = AccessRemoval(
            documentID: arrival.header.documentID,
            revision: arrival.header.name
        )
        removeAccess([removal], &effects)
    }

    /// Finishes a revision that is not stored.
    private mutating func drop(_ arrival: Arrival, _ effects: inout SessionEffects) {
        finish(arrival, &effects)
        if let request = arrival.request {
            effects.append(.reply(Message(isUrgent: arrival.isUrgent), to: request))
        }
    }

    /// Discards in-flight revisions of a document that was taken away, so that they cannot bring it back.
    ///
    /// `takesDeletion`: the document stays here, and its deletion is still accepted.
    private mutating func revoke(_ id: String, takesDeletion: Bool, _ effects: inout SessionEffects) {
        let waiting = insertQueue.keys.filter { key in
            guard let revision = incoming[key]?.revision, revision.documentID.isExactly(id) else {
                return false
            }
            return !(takesDeletion && revision.isDeleted)
        }
        for key in waiting {
            insertQueue.remove(key, incoming[key]?.revision)
            end(key, nil, reports: false, &effects)
        }
        // Other revisions are still to come, or wait for a blob.
        guard isComing(id) else { return }
        notes.revoke(id, takesDeletion: takesDeletion)
    }

    /// Handles documents that the peer takes away: purges them, if the app wants that (replication.md §14).
    mutating func removeAccess(_ removals: [AccessRemoval], _ effects: inout SessionEffects) {
        if removals.isEmpty { return }
        guard setup.autoPurges else {
            for removal in removals {
                setup.report(removal.documentID, isDeleted: false, isAccessRemoved: true, nil, &effects)
            }
            return
        }
        // The database failed, which ends the session.
        guard let verdicts = effects.ask({ try replica.removeAccess(removals) }) else { return }
        for (removal, verdict) in zip(removals, verdicts) {
            let id = removal.documentID
            // A document that stays may get its deletion. Any other revision in flight would be mistaken for one that the peer still has.
            revoke(id, takesDeletion: verdict == .edited || verdict == .neverThere, &effects)
            if verdict == .removed { forPush.moved.append(.takenAway(id)) }
            let error = LoveseatError(keeping: id, verdict)
            setup.report(id, isDeleted: false, isAccessRemoved: true, error, &effects)
        }
    }
}
