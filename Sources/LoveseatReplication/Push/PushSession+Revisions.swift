import LoveseatBLIP
import LoveseatModel

/// Sends the revisions that the peer wants, and hears what became of them (replication.md §9).
extension PushSession {
    /// A few at a time, since each read is a transaction.
    private var sendingRoom: Int { min(tuning.revisionsTransmitting - transmitting, queue.count) }

    var canSend: Bool {
        sendingRoom > 0 && transmitting * 2 <= tuning.revisionsTransmitting
            && unansweredBytes < tuning.unansweredBytes
    }

    mutating func sendMore(_ effects: inout SessionEffects) {
        var bytes = 0
        var next = Array(
            queue.prefix(sendingRoom).prefix { revision in
                defer { bytes += revision.bodySize }
                return bytes == 0 || bytes + revision.bodySize <= tuning.transmittingBytes
            }
        )
        queue.removeFirst(next.count)
        transmitting += next.count
        for index in next.indices {
            next[index].isTransmitting = true
            inFlight[next[index].key] = next[index]
        }
        send(next, &effects)
    }

    private mutating func send(_ revisions: [QueuedRevision], _ effects: inout SessionEffects) {
        let requests = revisions.map {
            RevisionRequest(
                documentID: $0.documentID,
                revision: $0.sent,
                known: $0.known,
                maxHistory: $0.maxHistory,
                wantsDelta: sendsDeltas && peerTakesDeltas && !$0.refusesDelta,
                peer: peer,
                isCopyOnly: $0.isCopyOnly
            )
        }
        guard let found = effects.ask({ try $0.revisions(requests, in: collection) }) else { return }
        for (var revision, outgoing) in zip(revisions, found) {
            let key = revision.key
            switch outgoing {
            case .found(let content)
            where content.copy != nil && content.copy?.original == copied[revision.documentID]:
                // Two that copy over each other would go on for ever. The next session sees what has become of it.
                sendNothing(revision, 410, "obsolete", &effects)
                stopTransmitting(key)
                inFlight[key] = nil
                fail(revision.change, conflict(revision.change), &effects)
            case .found(let content):
                let message = RevisionMessage.message(
                    revision,
                    content,
                    collection: wireIndex,
                    addsAttachments: !peerFindsBlobs,
                    compressionThreshold: tuning.compressionThreshold
                )
                revision.sent = content.revision
                revision.copy = content.copy
                revision.isDistant =
                    content.copy == nil && !revision.known.isEmpty && content.history.count > 1
                revision.isDelta = message.properties["deltaSrc"] != nil
                if revision.isDelta {
                    progress.deltas.sent += 1
                    progress.deltas.bytesSaved += UInt64(
                        max(0, content.body.bytes.count - message.body.count)
                    )
                }
                revision.sentBytes = max(1, message.body.count)
                unansweredBytes += revision.sentBytes
                inFlight[key] = revision
                effects.append(.send(message, then: .revision(collection: collection, key: key)))
            case .obsolete(let current)
            where subscription?.sendsReplacements == true && revision.sent == revision.revision:
                revision.sent = current
                inFlight[key] = revision
                send([revision], &effects)
            case .same:
                sendNothing(revision, 410, "obsolete", &effects)
                end(revision, synced: false, &effects)
            case .missing, .obsolete:
                let (status, reason) = outgoing == .missing ? (404, "missing") : (410, "obsolete")
                sendNothing(revision, status, reason, &effects)
                end(revision, synced: false, &effects)
            case .damaged: damaged(revision, &effects)
            }
        }
    }

    /// Says that a revision which the peer asked for, or agreed to, does not come (replication.md §9.3): it counts what it waits for.
    func sendNothing(
        _ revision: QueuedRevision,
        _ status: Int,
        _ reason: String,
        _ effects: inout SessionEffects
    ) {
        var properties: MessageProperties = ["Profile": "norev"]
        properties["collection"] = wireIndex.map(String.init)
        properties["id"] = revision.documentID
        properties["rev"] = revision.revision.text
        properties["sequence"] = String(revision.sequence)
        properties["error"] = String(status)
        properties["reason"] = reason
        effects.append(.send(Message(properties, noReply: true), then: nil))
    }

    /// The stored body is not the revision's any more. The document stays pending, since it may be repaired.
    private mutating func damaged(_ revision: QueuedRevision, _ effects: inout SessionEffects) {
        sendNothing(revision, 500, "the document is damaged", &effects)
        guard isProposing else { return end(revision, synced: false, &effects) }
        stopTransmitting(revision.key)
        inFlight[revision.key] = nil
        let error = LoveseatError(
            .corruptRevisionData,
            "document \"\(revision.documentID)\" is damaged here and was not sent: run a check"
        )
        fail(revision.change, error, &effects)
    }

    /// The bytes of a revision are with the transport, or will not be.
    mutating func stopTransmitting(_ key: Int) {
        guard inFlight[key]?.isTransmitting == true else { return }
        inFlight[key]?.isTransmitting = false
        transmitting -= 1
    }

    /// The peer stored a revision, or says why not (replication.md §9.2).
    mutating func revisionAnswered(
        _ key: Int,
        _ answer: Result<Message, ReplyError>,
        _ effects: inout SessionEffects
    ) {
        stopTransmitting(key)
        guard var revision = inFlight[key] else { return }
        unansweredBytes -= revision.sentBytes
        revision.sentBytes = 0
        switch answer {
        case .success(let message) where message.properties[TreeMessage.property] != nil && peer == .loveseat:
            inFlight[key] = nil
            outranked(revision, message, &effects)
        case .success:
            disagreements[revision.documentID] = nil
            report(revision, nil, &effects)
            if let copy = revision.copy {
                copied[revision.documentID] = copy.original
                effects.ask {
                    try $0.adoptCopy(
                        revision.sent,
                        of: revision.documentID,
                        parent: copy.parent,
                        in: collection
                    )
                }
            }
            end(revision, synced: revision.copy == nil, isDocument: true, &effects)
        case .failure(let reply):
            let error = LoveseatError(reply: reply, "pushing document \"\(revision.documentID)\"")
            if reply.domain == "HTTP", reply.code == 403, !revision.wasForbidden, isProposing {
                // Access may come with a document of this push, so it gets one more try when all others are through.
                revision.wasForbidden = true
                // What was sent may be a copy, which is made anew.
                (revision.sent, revision.copy) = (revision.revision, nil)
                inFlight[key] = nil
                forbidden.append(revision)
            } else if revision.isDelta, Self.asksForWholeBody(reply) {
                revision.refusesDelta = true
                inFlight[key] = revision
                send([revision], &effects)
            } else if isProposing, revision.isDistant, error.code == .httpConflict {
                // A gateway whose document was purged may know one of the revisions between as part of a deleted branch, to
                // which nothing can be added.
                revision.isCopyOnly = true
                inFlight[key] = revision
                send([revision], &effects)
            } else if isProposing, error.code == .httpConflict || error.code == .conflict {
                // A real passive peer says LiteCore/8 (replication.md §13.3).
                inFlight[key] = nil
                countDisagreement(revision.change)
                meet(revision.change, .unknown, &effects)
            } else if isProposing, error.code != .httpForbidden {
                inFlight[key] = nil
                fail(revision.change, error, &effects)
            } else {
                // Forbidden is forbidden, until the document changes.
                report(revision, error, &effects)
                end(revision, synced: false, &effects)
            }
        }
    }

    /// Whether a peer says that it cannot use a delta (replication.md §10.3).
    private static func asksForWholeBody(_ reply: ReplyError) -> Bool {
        switch reply.domain {
        case "HTTP": reply.code == 422 || reply.code == 404
        case "LiteCore": reply.code == 31 || reply.code == 32
        default: false
        }
    }

    mutating func end(
        _ revision: QueuedRevision,
        synced: Bool,
        isDocument: Bool = false,
        _ effects: inout SessionEffects
    ) {
        stopTransmitting(revision.key)
        inFlight[revision.key] = nil
        completed.insert(revision.sequence)
        progress.finish(revision.bodySize, isDocument: synced || isDocument)
        if synced { mark(revision.documentID, revision.sent, &effects) }
        release(revision.documentID, succeeded: synced ? revision.sent : nil, &effects)
    }

    mutating func finish(
        _ change: LocalChange,
        synced: RevisionID?,
        _ effects: inout SessionEffects
    ) {
        complete(change)
        if let synced { mark(change.documentID, synced, &effects) }
        release(change.documentID, succeeded: synced, &effects)
    }

    /// The peer took a document away, and it was purged: what waited of it was no edit, and is done with.
    mutating func documentRemoved(_ id: String) {
        if let change = parked.removeValue(forKey: id) { complete(change) }
    }

    mutating func complete(_ change: LocalChange) {
        completed.insert(change.sequence)
        progress.finish(change.bodySize, isDocument: false)
    }

    /// A document is no longer under way: offers the newer revision that waited for it.
    mutating func release(_ id: String, succeeded: RevisionID?, _ effects: inout SessionEffects) {
        guard let entry = busy.removeValue(forKey: id), var next = entry else { return }
        if let older = parked.removeValue(forKey: id) { complete(older) }
        if isProposing, let succeeded { next.remoteAncestor = succeeded }
        busy[id] = .some(nil)
        waiting.append(next)
    }

    // MARK: Marks and reports

    mutating func mark(_ id: String, _ revision: RevisionID, _ effects: inout SessionEffects) {
        guard isProposing else { return }
        unflushedMarks.append(DocumentRevision(documentID: id, revision: revision))
        if unflushedMarks.count >= tuning.insertBatch { flushMarks(&effects) }
    }

    /// Writes down what the peer is now known to have.
    mutating func flushMarks(_ effects: inout SessionEffects) {
        guard !unflushedMarks.isEmpty else { return }
        let marks = unflushedMarks
        unflushedMarks = []
        effects.ask { try $0.markSynced(marks, in: collection) }
    }

    func report(_ change: LocalChange, _ error: LoveseatError?, _ effects: inout SessionEffects) {
        report(change.documentID, isDeleted: change.isDeleted, error, &effects)
    }

    func report(
        _ revision: QueuedRevision,
        _ error: LoveseatError?,
        _ effects: inout SessionEffects
    ) {
        report(revision.documentID, isDeleted: revision.isDeleted, error, &effects)
    }

    func report(
        _ id: String,
        isDeleted: Bool,
        _ error: LoveseatError?,
        _ effects: inout SessionEffects
    ) {
        guard isProposing else { return }
        effects.append(
            .report(
                .document(
                    DocumentEvent(
                        collection: collection,
                        documentID: id,
                        isPush: true,
                        isDeleted: isDeleted,
                        error: error
                    )
                )
            )
        )
    }
}
