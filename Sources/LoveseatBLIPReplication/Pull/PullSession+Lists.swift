import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Answers lists of changes: decides which of the announced or proposed revisions are wanted (replication.md §7, §8).
extension PullSession {
    mutating func changes(_ message: Message, request: UInt64, _ effects: inout SessionEffects) {
        do throws(ReplyError) {
            var changes = try ChangesMessage(message, setup.names).changes
            for index in changes.indices where changes[index].flags.contains(.leftChannel) {
                changes[index].isNews = sequences.isNews(changes[index].sequence)
            }
            if !setup.isActive, let defect = changes.lazy.compactMap(\.defect).first {
                throw ReplyError("BLIP", 400, "invalid entry of changes: \(defect)")
            }
            if changes.isEmpty {
                isCaughtUp = true
            } else if setup.isActive, message.noReply {
                // Nothing can be asked for of such a list, and the next checkpoint would count it as done with.
                failure = LoveseatError(
                    .remoteError,
                    "the peer announced \(changes.count) changes and wants no answer, so none of them can be asked for"
                )
                return
            }
            add(message, request, .changes(changes), &effects)
        } catch { refuse(message, request, error, &effects) }
    }

    mutating func proposals(_ message: Message, request: UInt64, _ effects: inout SessionEffects) {
        do throws(ReplyError) {
            let list = try ProposeChangesMessage(message, setup.names)
            add(
                message,
                request,
                .proposals(list.proposals, namesRevision: list.namesRevision),
                &effects
            )
        } catch { refuse(message, request, error, &effects) }
    }

    private mutating func refuse(
        _ message: Message,
        _ request: UInt64,
        _ error: ReplyError,
        _ effects: inout SessionEffects
    ) {
        // No peer sends so much by mistake.
        if error.code == 413 { failure = LoveseatError(.remoteError, "from the peer: \(error.text)") }
        if !message.noReply {
            effects.append(.replyError(error, to: request, isUrgent: message.isUrgent))
        }
    }

    private mutating func add(
        _ message: Message,
        _ request: UInt64,
        _ entries: ReceivedList.Entries,
        _ effects: inout SessionEffects
    ) {
        // A list that wants no answer asks for nothing (replication.md §7.1). It is empty, and says that there are no more changes, or
        // comes from a peer that pushes, which keeps changes that were not requested.
        guard !message.noReply else { return }
        let list = ReceivedList(message, request, entries)
        guard list.count > 0 else {
            return effects.append(.reply(.acknowledgement(of: message), to: request))
        }
        guard lists.add(list, setup.tuning) else {
            failure = LoveseatError(.remoteError, "the peer sent more lists of changes than it may")
            return
        }
    }

    /// The next list, if there is room for the revisions that it may ask for.
    mutating func dequeueList() -> Int? {
        guard let (number, list) = lists.next, incoming.count < setup.tuning.revisionsHandled,
            expectations.hasRoom(for: list, of: peer, setup.tuning)
        else { return nil }
        lists.dequeue()
        return number
    }

    /// Says which entries of a list are wanted.
    mutating func evaluateList(_ number: Int, _ effects: inout SessionEffects) {
        guard let list = lists[number] else { return impossible("list \(number) is not here") }
        switch list.entries {
        case .changes(let changes):
            let verdicts = effects.ask { try replica.evaluate(changes, from: peer) }
            lists.remove(number)
            if let verdicts { answer(list, changes, number, verdicts, &effects) }
        case .proposals(let proposals, let namesRevision):
            let verdicts = effects.ask { try replica.evaluate(proposals, from: peer) }
            lists.remove(number)
            if let verdicts {
                answer(list, proposals, verdicts, namesRevision: namesRevision, &effects)
            }
        }
    }

    private mutating func answer(
        _ list: ReceivedList,
        _ changes: [AnnouncedChange],
        _ number: Int,
        _ verdicts: [ChangeVerdict],
        _ effects: inout SessionEffects
    ) {
        progress.compared += UInt64(changes.count)
        var said: [ChangesMessage.Decision] = []
        var removals: [AccessRemoval] = []
        // Documents that are announced, and not taken away afterwards.
        var returning: DocumentSet = []
        for (index, (change, verdict)) in zip(changes, verdicts).enumerated() {
            let place = Announcement(list: number, index: index)
            if verdict == .alreadyHere, !change.isRemoval { confirmed(change.documentID, at: place) }
            if let defect = change.defect {
                said.append(.notWanted)
                sequences.finish(sequences.announce(change.sequence))
                let error = LoveseatError(.badRevisionID, "an announced document was refused: \(defect)")
                setup.report(change.documentID, isDeleted: false, error, &effects)
                continue
            }
            if setup.isActive, change.isRemoval {
                said.append(.notWanted)
                returning.remove(change.documentID)
                removals.append(
                    AccessRemoval(documentID: change.documentID, revision: change.revision)
                )
                sequences.finish(sequences.announce(change.sequence))
                continue
            }
            guard setup.isActive else {
                said.append(item(verdict))
                if case .wanted = verdict { expectations.agreed.add(change.documentID) }
                continue
            }
            let position = sequences.announce(change.sequence)
            // A document that is announced twice is asked for once (gateway.md 54).
            guard verdict != .alreadyHere, expectations.expect(change, position, place) else {
                said.append(.notWanted)
                sequences.finish(position)
                continue
            }
            said.append(item(verdict))
            returning.insert(change.documentID)
            progress.total += UInt64(max(1, change.bodySize))
        }
        // A peer that takes a document away counts it as gone once we answer.
        removeAccess(removals, &effects)
        if effects.failure != nil { return }
        reply(ChangesMessage.Answer(said, from: setup.receiver).message, to: list, &effects)
        notes.returned(returning)
    }

    private func item(_ verdict: ChangeVerdict) -> ChangesMessage.Decision {
        switch verdict {
        case .wanted(let ancestors): .wanted(known: ancestors.named(setup.tuning))
        case .alreadyHere: .notWanted
        case .conflict: setup.isActive ? .wanted(known: []) : .refused(409)
        }
    }

    private mutating func answer(
        _ list: ReceivedList,
        _ proposals: [ProposedChange],
        _ verdicts: [ProposalVerdict],
        namesRevision: Bool,
        _ effects: inout SessionEffects
    ) {
        let items = zip(proposals, verdicts).map { proposal, verdict -> ProposeChangesMessage.Decision in
            switch verdict {
            case .wanted:
                expectations.agreed.add(proposal)
                return .wanted
            case .alreadyHere: return .alreadyThere
            case .conflict(let current): return .conflict(namesRevision ? .has(current) : .unknown)
            }
        }
        var receiver = setup.receiver
        receiver.extensions = setup.extensions
        reply(ProposeChangesMessage.Answer(items, from: receiver).message, to: list, &effects)
    }

    private func reply(_ message: Message, to list: ReceivedList, _ effects: inout SessionEffects) {
        var message = message.compressed(from: setup.tuning.compressionThreshold)
        message.isUrgent = list.isUrgent
        effects.append(.reply(message, to: list.request))
    }
}
