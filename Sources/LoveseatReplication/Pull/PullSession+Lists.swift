import LoveseatBLIP
import LoveseatModel

/// What is said to lists of changes: which of the announced or proposed revisions are wanted (replication.md §7, §8).
extension PullSession {
    mutating func changes(_ message: Message, request: UInt64, _ effects: inout SessionEffects) {
        do throws(ReplyError) {
            var changes = try ChangesMessage.parse(message.body)
            for (index, digest) in ChangesMessage.knowledge(message, count: changes.count) {
                changes[index].knowledge = digest
            }
            if !isActive, let defect = changes.lazy.compactMap(\.defect).first {
                throw ReplyError("BLIP", 400, "invalid entry of changes: \(defect)")
            }
            if changes.isEmpty {
                isCaughtUp = true
                return acknowledge(message, request, &effects)
            }
            guard !message.noReply else { return }
            var list = List(request, isUrgent: message.isUrgent, changes: changes)
            list.bytes = message.body.count + Self.listOverhead
            add(list)
        } catch { refuse(message, request, error, &effects) }
    }

    mutating func proposals(_ message: Message, request: UInt64, _ effects: inout SessionEffects) {
        do throws(ReplyError) {
            var proposals = try ProposeChangesMessage.parse(message.body)
            for (index, digest) in ChangesMessage.knowledge(message, count: proposals.count) {
                proposals[index].knowledge = digest
            }
            if proposals.isEmpty { return acknowledge(message, request, &effects) }
            guard !message.noReply else { return }
            let namesRevision = message.properties.bool("conflictIncludesRev")
            var list = List(
                request,
                isUrgent: message.isUrgent,
                proposals: proposals,
                namesRevision: namesRevision
            )
            list.bytes = message.body.count + Self.listOverhead
            add(list)
        } catch { refuse(message, request, error, &effects) }
    }

    /// Answers a list with nothing in it.
    private func acknowledge(_ message: Message, _ request: UInt64, _ effects: inout SessionEffects) {
        if !message.noReply { effects.append(.reply(Message(isUrgent: message.isUrgent), to: request)) }
    }

    private mutating func refuse(
        _ message: Message,
        _ request: UInt64,
        _ error: ReplyError,
        _ effects: inout SessionEffects
    ) {
        // Nobody says so much by mistake.
        if error.code == 413 { failure = LoveseatError(.remoteError, "from the peer: \(error.text)") }
        if !message.noReply {
            effects.append(.replyError(error, to: request, isUrgent: message.isUrgent))
        }
    }

    /// Bytes that a list takes besides its entries.
    private static let listOverhead = 500

    private mutating func add(_ list: List) {
        listBytes += list.bytes
        guard listBytes <= tuning.listBytesAccepted, list.changes.count + list.proposals.count <= 10_000
        else {
            failure = LoveseatError(.remoteError, "the peer sent more lists of changes than it may")
            return
        }
        nextList += 1
        lists[nextList] = list
        waitingLists.append(nextList)
    }

    /// The next list, if there is room for what it may ask for.
    mutating func takeList() -> Int? {
        guard let number = waitingLists.first, incoming.count < tuning.revisionsHandled,
            let list = lists[number], hasRoom(for: list)
        else { return nil }
        waitingLists.removeFirst()
        return number
    }

    /// Says which entries of a list are wanted.
    mutating func judge(_ number: Int, _ effects: inout SessionEffects) {
        guard let list = lists[number] else { return }
        if list.proposals.isEmpty {
            let verdicts = effects.ask { try $0.judge(list.changes, from: peer, in: collection) }
            lists[number] = nil
            if let verdicts { answer(list, number, verdicts, &effects) }
        } else {
            let verdicts = effects.ask { try $0.judge(list.proposals, from: peer, in: collection) }
            lists[number] = nil
            if let verdicts { answer(list, verdicts, &effects) }
        }
        listBytes -= list.bytes
    }

    /// Whether all that a list may ask for can come now. A peer may send it all at once.
    private func hasRoom(for list: List) -> Bool {
        guard outstanding > 0 else { return true }
        // Who proposes sends a few at a time (replication.md §9.1).
        guard list.proposals.isEmpty else { return outstanding < tuning.proposalsAgreed }
        return outstanding + list.changes.count <= tuning.revisionsRequested
            && expectedBytes + list.announcedBytes + list.unsized * usualSize <= tuning.requestedBytes
    }

    private mutating func answer(
        _ list: List,
        _ number: Int,
        _ verdicts: [ChangeVerdict],
        _ effects: inout SessionEffects
    ) {
        var said: [ChangeVerdict] = []
        var removals: [AccessRemoval] = []
        // Documents that are announced, and not taken away afterwards.
        var returning: Set<String> = []
        for (index, (change, verdict)) in zip(list.changes, verdicts).enumerated() {
            let place = Announcement(list: number, index: index)
            if verdict == .alreadyHere, !change.isRemoval { confirmed(change.documentID, at: place) }
            if let defect = change.defect {
                said.append(.alreadyHere)
                sequences.finish(sequences.announce(change.sequence))
                let error = LoveseatError(.badRevisionID, "an announced document was refused: \(defect)")
                report(change.documentID, isDeleted: false, error, &effects)
                continue
            }
            if isActive, change.isRemoval {
                said.append(.alreadyHere)
                returning.remove(change.documentID)
                removals.append(
                    AccessRemoval(documentID: change.documentID, revision: change.revision)
                )
                sequences.finish(sequences.announce(change.sequence))
                continue
            }
            guard isActive else {
                said.append(verdict)
                if case .wanted = verdict { promises.add(change.documentID) }
                continue
            }
            let position = sequences.announce(change.sequence)
            let key = ExpectedKey(documentID: change.documentID, sequence: change.sequence)
            // A document that is announced twice is asked for once (gateway.md 54).
            guard verdict != .alreadyHere, expect(key, position, place, bodySize: change.bodySize) else {
                said.append(.alreadyHere)
                sequences.finish(position)
                continue
            }
            said.append(verdict)
            returning.insert(change.documentID)
            progress.total += UInt64(max(1, change.bodySize))
        }
        // Whoever takes something away holds it for gone once we answer.
        removeAccess(removals, &effects)
        guard effects.failure == nil else { return }
        answer(list, ChangesMessage.answer(said, acceptsConflicts: isActive), &effects)
        revoked.subtract(returning)
    }

    private mutating func answer(
        _ list: List,
        _ verdicts: [ProposalVerdict],
        _ effects: inout SessionEffects
    ) {
        for (proposal, verdict) in zip(list.proposals, verdicts) where verdict == .wanted {
            promises.add(proposal.documentID)
        }
        answer(list, ChangesMessage.answer(verdicts, namesRevision: list.namesRevision), &effects)
    }

    private func answer(_ list: List, _ body: [UInt8], _ effects: inout SessionEffects) {
        var properties: MessageProperties = ["maxHistory": String(tuning.maxHistory), "blobs": "true"]
        if options.takesDeltas { properties["deltas"] = "true" }
        if !list.proposals.isEmpty { properties[ProtocolExtensions.property] = options.extensions }
        effects.append(
            .reply(
                Message(
                    properties,
                    body: body,
                    isUrgent: list.isUrgent,
                    isCompressed: body.count >= tuning.compressionThreshold
                ),
                to: list.request
            )
        )
    }
}
