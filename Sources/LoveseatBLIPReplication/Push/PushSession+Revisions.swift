import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Sends the revisions that the peer wants, and handles the answers (replication.md §9).
extension PushSession {
    /// How many revisions may be sent now. They are a few at a time, since each read is a transaction.
    private var sendingRoom: Int { min(tuning.revisionsTransmitting - sent.transmitting.count, queue.count) }

    var canSend: Bool { sendingRoom > 0 && sent.hasRoom(tuning) }

    /// Notes that the transport has all bytes of a message.
    mutating func transmitted(_ number: Int) { sent.transmitted(number) }

    mutating func sendMore(_ effects: inout SessionEffects) {
        var bytes = 0
        let next = queue.prefix(sendingRoom).prefix { document in
            // A document with much content in its tree is read alone.
            let size = document.change.storedBytes
            defer { bytes += size }
            return bytes == 0 || bytes + size <= tuning.transmittingBytes - sent.transmittingBytes
        }
        let deliveries = next.compactMap { document -> (Outgoing, Delivery)? in
            guard case .wanted(let delivery) = document.stage else {
                impossible("a revision is to be sent that the peer does not want: \(document.stage)")
                return nil
            }
            return (document, delivery)
        }
        queue.removeFirst(next.count)
        send(deliveries, &effects)
    }

    private mutating func send(_ deliveries: [(Outgoing, Delivery)], _ effects: inout SessionEffects) {
        let requests = deliveries.map { document, delivery in
            var request = RevisionRequest(
                documentID: document.id,
                revision: delivery.revision,
                known: delivery.known,
                maxHistory: delivery.maxHistory,
                wantsDelta: setup.sendsDeltas && peer.receiver?.takesDeltas == true && !delivery.refusesDelta,
                peer: peer.kind,
                isCopyOnly: delivery.isCopyOnly
            )
            request.refusedForms = delivery.refusedForms
            return request
        }
        // The database failed, which ends the session.
        guard let found = effects.ask({ try replica.revisions(requests) }) else { return }
        for ((document, delivery), outgoing) in zip(deliveries, found) {
            let change = document.change
            switch outgoing {
            case .found(let content) where wasTaken(content, of: document):
                sendNothing(of: change, 410, "obsolete", &effects)
                fail(document, conflict(change), &effects)
            case .found(let content): send(content, of: document, delivery, &effects)
            case .obsolete(let current)
            where subscription?.sendsReplacements == true && delivery.revision == change.revision:
                var delivery = delivery
                (delivery.revision, delivery.rest) = (current, nil)
                send([(document, delivery)], &effects)
            case .same where delivery.isCopyOnly && !isOnlyCopied(document):
                // The hub refused the line: it may have something else by now.
                offerCopy(document, over: delivery.known.first, &effects)
            case .same, .obsolete:
                sendNothing(of: change, 410, "obsolete", &effects)
                finish(document, synced: nil, &effects)
            case .missing:
                sendNothing(of: change, 404, "missing", &effects)
                finish(document, synced: nil, &effects)
            case .damaged:
                // The document stays pending, since it may be repaired.
                sendNothing(of: change, 500, "the document is damaged", &effects)
                guard isProposing else {
                    finish(document, synced: nil, &effects)
                    continue
                }
                let error = LoveseatError(
                    .corruptRevisionData,
                    "document \"\(document.id)\" is damaged here and was not sent: run a check"
                )
                fail(document, error, &effects)
            }
        }
    }

    private mutating func send(
        _ content: SendableRevision,
        of document: Outgoing,
        _ delivery: Delivery,
        _ effects: inout SessionEffects
    ) {
        guard let portion = portion(of: content, delivery.rest) else {
            sendNothing(of: document.change, 410, "no more of it is here", &effects)
            return finish(document, synced: nil, isDocument: delivery.rest?.isNew == true, &effects)
        }
        let content = portion.content
        let revision = RevisionMessage(
            portion,
            of: document.change,
            collection: setup.wireIndex,
            isProposal: isProposing,
            addsAttachments: peer.receiver?.findsBlobs != true
        )
        let message = revision.message.compressed(from: tuning.compressionThreshold)
        let parcel = Parcel(
            revision: delivery.rest?.head ?? NamedRevision(content),
            copy: content.copy,
            bytes: max(1, message.body.count),
            isDelta: revision.deltaSource != nil,
            isDistant: content.copy == nil && content.state == nil && !delivery.known.isEmpty
                && content.history.count > 1,
            isUncertain: content.isUncertain,
            hasOtherForm: content.hasOtherForm,
            brought: portion.brought,
            left: portion.left
        )
        if parcel.isDelta {
            progress.deltas.sent += 1
            progress.deltas.bytesSaved += UInt64(max(0, content.body.bytes.count - message.body.count))
        }
        let number = sent.add(document, parcel)
        document.stage = .sent(delivery, parcel)
        effects.append(.send(message, then: .revision(collection: setup.collection, number: number)))
    }

    private func portion(of content: SendableRevision, _ rest: RestOfDocument?) -> DocumentPortion? {
        guard let rest else { return DocumentPortion(content, takesBlobs: peer.takesTreeBlobs, tuning) }
        return DocumentPortion(content, rest, tuning)
    }

    /// Tells the peer that a revision which it asked for, or agreed to, does not come (replication.md §9.3): it counts the ones it waits
    /// for.
    func sendNothing(
        of change: LocalChange,
        _ status: Int,
        _ reason: String,
        _ effects: inout SessionEffects
    ) {
        let message = NoRevisionMessage(change, status: status, reason: reason, collection: setup.wireIndex)
        effects.append(.send(message.message, then: nil))
    }

    /// Handles the answer to a revision: the peer stored it, or says why not (replication.md §9.2).
    mutating func revisionAnswered(
        _ number: Int,
        _ answer: Result<Message, ReplyError>,
        _ effects: inout SessionEffects
    ) {
        guard let document = sent.remove(number),
            case .sent(let delivery, let parcel) = document.stage
        else { return impossible("message \(number) was not sent, or is answered twice") }
        sent.unansweredBytes -= parcel.bytes
        switch answer {
        case .success(let message):
            if let next = delivery.next(after: parcel, message) {
                document.stage = .wanted(next)
                queue.insert(document, at: 0)
            } else {
                let isNew = delivery.rest?.isNew
                acknowledged(document, parcel, RevisionMessage.Answer(message), wasNew: isNew, &effects)
            }
        case .failure(let reply): refused(document, delivery, parcel, reply, &effects)
        }
    }

    private mutating func acknowledged(
        _ document: Outgoing,
        _ parcel: Parcel,
        _ answer: RevisionMessage.Answer,
        wasNew: Bool?,
        _ effects: inout SessionEffects
    ) {
        if case .outranked(let tree) = answer, peer.kind == .loveseat {
            return outranked(document, parcel, tree, &effects)
        }
        agreed(document.id)
        let isNew = wasNew ?? answer.isNew
        if isNew { setup.report(document.change, nil, &effects) }
        let mayBeOld = parcel.isDistant || parcel.isUncertain || document.change.hasDoubtedMark
        if pulls, mayBeOld, parcel.copy == nil, peer.kind == .hub {
            return doubt(document, parcel.revision.id)
        }
        if let copy = parcel.copy {
            var entry = disagreements[ExactText(document.id)] ?? Disagreement()
            (entry.copied, entry.taken) = (copy.original, parcel.revision.id)
            disagreements[ExactText(document.id)] = entry
            effects.ask { try replica.adoptCopy(parcel.revision.id, of: document.id, parent: copy.parent) }
        }
        finish(document, synced: parcel.copy == nil ? parcel.revision : nil, isDocument: isNew, &effects)
    }

    private mutating func refused(
        _ document: Outgoing,
        _ delivery: Delivery,
        _ parcel: Parcel,
        _ reply: ReplyError,
        _ effects: inout SessionEffects
    ) {
        let change = document.change
        var again = delivery
        let error = LoveseatError(reply: reply, "pushing document \"\(document.id)\"")
        let isFirstTry = !delivery.isLastTry && delivery.rest == nil
        if reply.domain == "HTTP", reply.code == 403, isFirstTry, isProposing {
            // Access may come with a document of this push. The revision that was sent may be a copy, which is made anew.
            again.isLastTry = true
            again.revision = change.revision
            document.stage = .forbidden(again)
            forbidden.append(document)
        } else if parcel.isDelta, reply.asksForWholeBody {
            again.refusesDelta = true
            send([(document, again)], &effects)
        } else if isProposing, parcel.isDistant, !delivery.isCopyOnly, error.code == .httpConflict {
            // A gateway whose document was purged may know one of the revisions between as part of a deleted branch, to
            // which nothing can be added.
            again.isCopyOnly = true
            send([(document, again)], &effects)
        } else if isProposing, parcel.hasOtherForm, error.isConflict {
            again.refusedForms += 1
            send([(document, again)], &effects)
        } else if isProposing, error.isConflict {
            // A real passive peer says LiteCore/8 (replication.md §13.3).
            countDisagreement(change)
            document.change.remoteAncestor = delivery.known.first
            handleConflict(document, .unknown, &effects)
        } else if isProposing, !error.isFinalRefusal {
            fail(document, error, &effects)
        } else {
            // Other refusals are final until the document changes: it is forbidden, or too large.
            setup.report(change, error, &effects)
            finish(document, synced: nil, &effects)
        }
    }

    /// Queues the forbidden documents once more, when everything else is done.
    mutating func tryForbiddenAgain() {
        for document in forbidden {
            guard case .forbidden(let delivery) = document.stage else {
                impossible("a document waits for another try that was not forbidden: \(document.stage)")
                continue
            }
            document.stage = .wanted(delivery)
            queue.append(document)
        }
        forbidden = []
    }
}

extension ReplyError {
    /// Whether a peer says that it cannot use a delta (replication.md §10.3).
    fileprivate var asksForWholeBody: Bool {
        switch domain {
        case "HTTP": code == 422 || code == 404
        case "LiteCore": code == 31 || code == 32
        default: false
        }
    }
}

extension LoveseatError {
    fileprivate var isConflict: Bool { code == .httpConflict || code == .conflict }
}
