import LoveseatBLIP
import LoveseatModel

/// What is said to lists of changes: which of the announced or proposed revisions are wanted (replication.md §7, §8).
extension PullSession {
    mutating func changes(_ message: Message, request: UInt64, _ effects: inout [ReplicationEffect]) {
        do throws(ReplyError) {
            let changes = try ChangesMessage.parse(message.body)
            if changes.isEmpty {
                isCaughtUp = true
                return acknowledge(message, request, &effects)
            }
            guard !message.noReply else { return }
            add(
                List(request: request, isUrgent: message.isUrgent, namesRevision: false, changes: changes),
                &effects
            )
        } catch { refuse(message, request, error, &effects) }
    }

    mutating func proposals(_ message: Message, request: UInt64, _ effects: inout [ReplicationEffect]) {
        do throws(ReplyError) {
            let proposals = try ProposeChangesMessage.parse(message.body)
            if proposals.isEmpty { return acknowledge(message, request, &effects) }
            guard !message.noReply else { return }
            let namesRevision = message.properties.bool("conflictIncludesRev")
            add(
                List(
                    request: request,
                    isUrgent: message.isUrgent,
                    namesRevision: namesRevision,
                    proposals: proposals
                ),
                &effects
            )
        } catch { refuse(message, request, error, &effects) }
    }

    /// Answers a list with nothing in it.
    private func acknowledge(_ message: Message, _ request: UInt64, _ effects: inout [ReplicationEffect]) {
        if !message.noReply { effects.append(.reply(Message(isUrgent: message.isUrgent), to: request)) }
    }

    private mutating func refuse(
        _ message: Message,
        _ request: UInt64,
        _ error: ReplyError,
        _ effects: inout [ReplicationEffect]
    ) {
        // Nobody says so much by mistake.
        if error.code == 413 { failure = LoveseatError(.remoteError, "from the peer: \(error.text)") }
        if !message.noReply {
            effects.append(.replyError(error, to: request, isUrgent: message.isUrgent))
        }
    }

    mutating func add(_ list: List, _ effects: inout [ReplicationEffect]) {
        guard lists.count < tuning.listsAccepted, list.changes.count + list.proposals.count <= 10_000 else {
            failure = LoveseatError(.remoteError, "the peer sent more lists of changes than it may")
            return
        }
        nextList += 1
        lists[nextList] = list
        waitingLists.append(nextList)
        judgeNext(&effects)
    }

    mutating func judgeNext(_ effects: inout [ReplicationEffect]) {
        let outstanding = expected.count + promises.total
        guard judging == nil, let number = waitingLists.first, outstanding < tuning.revisionsRequested,
            incoming.count < tuning.revisionsHandled,
            let list = lists[number]
        else { return }
        waitingLists.removeFirst()
        judging = number
        if list.proposals.isEmpty {
            effects.append(
                .store(
                    .judgeChanges(collection: collection, list.changes),
                    then: .changesJudged(collection: collection, list: number)
                )
            )
        } else {
            effects.append(
                .store(
                    .judgeProposals(collection: collection, list.proposals, from: peer),
                    then: .proposalsJudged(collection: collection, list: number)
                )
            )
        }
    }

    mutating func changesJudged(
        _ number: Int,
        _ verdicts: [ChangeVerdict],
        _ effects: inout [ReplicationEffect]
    ) {
        judging = nil
        guard let list = lists.removeValue(forKey: number) else { return }
        var said: [ChangeVerdict] = []
        var removals: [String] = []
        for (change, verdict) in zip(list.changes, verdicts) {
            if isActive, change.isRemoval {
                said.append(.alreadyHere)
                removals.append(change.documentID)
                sequences.finish(sequences.announce(change.sequence))
                continue
            }
            said.append(verdict)
            if isActive {
                let position = sequences.announce(change.sequence)
                if verdict == .alreadyHere {
                    sequences.finish(position)
                } else {
                    let key = ExpectedKey(documentID: change.documentID, sequence: change.sequence)
                    revoked.remove(change.documentID)
                    if let double = expected.updateValue((position, change.bodySize), forKey: key) {
                        sequences.finish(double.number)
                    }
                    progress.total += UInt64(max(1, change.bodySize))
                }
            } else if case .wanted = verdict {
                promises.add(change.documentID)
            }
        }
        answer(list, ChangesMessage.answer(said, acceptsConflicts: isActive), &effects)
        removeAccess(removals, &effects)
        judgeNext(&effects)
    }

    mutating func proposalsJudged(
        _ number: Int,
        _ verdicts: [ProposalVerdict],
        _ effects: inout [ReplicationEffect]
    ) {
        judging = nil
        guard let list = lists.removeValue(forKey: number) else { return }
        for (proposal, verdict) in zip(list.proposals, verdicts) where verdict == .wanted {
            promises.add(proposal.documentID)
        }
        answer(list, ChangesMessage.answer(verdicts, namesRevision: list.namesRevision), &effects)
        judgeNext(&effects)
    }

    private func answer(_ list: List, _ body: [UInt8], _ effects: inout [ReplicationEffect]) {
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
