import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel

extension LiteSession {
    /// Reads what was changed since the last look, and proposes it (replication.md §8).
    func readFeed(_ index: Int, isLive: Bool) {
        // Only what the first list has is in doubt. No recording shows what Couchbase Lite does later on such a connection.
        if isLive { channels[index].trustsMarks = true }
        let channel = channels[index]
        let documents = database.documents(in: channel.collection)
            .filter { $0.value.sequence > channel.push.readThrough }
            .sorted { $0.value.sequence < $1.value.sequence }
        guard let last = documents.last?.value.sequence else {
            if !isLive { propose([], index) }
            return
        }
        // An earlier run may have pushed some of them.
        let rest = documents.filter { !channel.push.completed.contains($0.value.sequence) }
        channels[index].push.completed.insert(channel.push.readThrough...last)
        channels[index].push.readThrough = last
        var proposals: [LiteProposal] = []
        for (id, document) in rest where needsPush(id, document, index) {
            if channel.push.inFlight.contains(id) {
                channels[index].push.held.insert(id)
                channels[index].push.completed.remove(document.sequence)
                continue
            }
            proposals.append(proposal(id, document, index, isLive: isLive))
        }
        if proposals.isEmpty, isLive { return }
        propose(proposals, index)
    }

    private func needsPush(_ id: String, _ document: LiteDocument, _ index: Int) -> Bool {
        guard plan?.pushFilter(id) != false, !document.isConflicted else { return false }
        if let listed = plan?.bindings[index].documentIDs, !listed.contains(id) { return false }
        guard channels[index].trustsMarks, let mark = document.remotes[remote] else { return true }
        return document.current.name != mark.revision.name
    }

    private func proposal(_ id: String, _ document: LiteDocument, _ index: Int, isLive: Bool) -> LiteProposal
    {
        let mark = channels[index].trustsMarks ? document.remotes[remote] : nil
        return LiteProposal(id, document, parent: mark?.revision, isLive: isLive)
    }

    private func propose(_ proposals: [LiteProposal], _ index: Int) {
        var rest = proposals[...]
        repeat {
            let batch = Array(rest.prefix(Self.batch))
            rest = rest.dropFirst(Self.batch)
            let properties: MessageProperties = [
                "Profile": "proposeChanges", "collection": String(index), "conflictIncludesRev": "true",
            ]
            for proposal in batch {
                channels[index].push.inFlight.insert(proposal.id)
                channels[index].push.completed.remove(proposal.sequence)
            }
            let body = Self.json(.array(batch.map { $0.json(database.release) }))
            let isEmpty = batch.isEmpty
            let message = Message(
                properties,
                body: body,
                isUrgent: true,
                isCompressed: !isEmpty,
                noReply: isEmpty
            )
            send(message, isEmpty ? nil : .proposals(batch, index))
        } while !rest.isEmpty
    }

    /// How many changes one list has at most.
    static let batch = 200

    func receivedVerdicts(_ proposals: [LiteProposal], _ result: Result<Message, ReplyError>, _ index: Int) {
        guard case .success(let message) = result else {
            if case .failure(let error) = result { failure = failure ?? error }
            for proposal in proposals { channels[index].push.inFlight.remove(proposal.id) }
            return
        }
        if message.properties.bool("deltas") { channels[index].push.peerTakesDeltas = true }
        let items = Self.parse(message.body)?.array ?? []
        for (place, proposal) in proposals.enumerated() {
            let item = items.indices.contains(place) ? items[place] : 0
            let status = item["status"]?.int ?? item.int ?? 500
            switch status {
            case 0: sendPush(proposal, index, allowsDelta: true)
            case 304:
                markPushed(proposal, index)
                complete(proposal, index)
            case 409: receivedConflict(proposal, returned: item["rev"]?.string, index)
            default:
                report(proposal.id, isPush: true, ReplyError("WebSocket", status, "rejected by server"))
                complete(proposal, index)
            }
        }
    }

    /// The other side has something else (version-vectors.md §11.4).
    private func receivedConflict(_ proposal: LiteProposal, returned: String?, _ index: Int) {
        guard let document = database.documents(in: channels[index].collection)[proposal.id],
            document.current.name == proposal.revision.name
        else { return complete(proposal, index) }
        if let returned, !returned.isEmpty, returned != proposal.parent,
            document.descends(from: returned, source: database.source)
        {
            return repropose(proposal, parent: returned, index)
        }
        if plan?.pulls == true {
            let mark = document.remotes[remote]
            let isOwn = mark?.revision.vector.current?.source == database.source
            if let mark, !mark.isConflict, !isOwn, mark.revision.shortText != proposal.parent {
                return repropose(proposal, parent: mark.revision.shortText, index)
            }
            channels[index].push.parked[proposal.id] = proposal
        } else {
            let error = ReplyError("WebSocket", 409, "conflicts with newer server revision")
            report(proposal.id, isPush: true, error)
        }
        complete(proposal, index)
    }

    private func repropose(_ proposal: LiteProposal, parent: String, _ index: Int) {
        var proposal = proposal
        proposal.parent = parent
        propose([proposal], index)
    }

    /// The pull was told of a revision that the own one includes (replication.md §8). Couchbase Lite does not recognize it if it is its own.
    func retryParked(_ id: String, _ index: Int) {
        guard let proposal = channels[index].push.parked[id],
            let document = database.documents(in: channels[index].collection)[id],
            document.current.name == proposal.revision.name,
            let mark = document.remotes[remote]
        else {
            channels[index].push.parked[id] = nil
            return
        }
        if mark.revision.vector.current?.source == database.source { return giveUpParked(id, index) }
        channels[index].push.parked[id] = nil
        if document.current.isNamed(mark.revision.shortText) { return }
        repropose(proposal, parent: mark.revision.shortText, index)
    }

    /// Ends a refused proposal: the pull brought something that is in conflict with it.
    func giveUpParked(_ id: String, _ index: Int) {
        if channels[index].push.parked.removeValue(forKey: id) == nil { return }
        report(id, isPush: true, ReplyError("WebSocket", 409, "conflicts with server document"))
    }

    // MARK: Revisions

    private func sendPush(_ proposal: LiteProposal, _ index: Int, allowsDelta: Bool) {
        let collection = channels[index].collection
        guard let document = database.documents(in: collection)[proposal.id],
            document.current.name == proposal.revision.name
        else { return complete(proposal, index) }
        let parents = proposal.parent.isEmpty ? [] : [proposal.parent]
        let history = document.sentHistory(ancestors: parents)
        var properties = document.properties(proposal.id, history, proposal.sequence, index)
        properties["noconflicts"] = "1"
        var body = document.current.body ?? [:]
        var isDelta = false
        if allowsDelta, channels[index].push.peerTakesDeltas,
            let (base, delta) = proposal.delta(of: document, remote: remote)
        {
            properties["deltaSrc"] = base
            body = delta
            isDelta = true
        }
        let message = Message(properties, body: Self.json(.object(body)), isCompressed: true)
        send(message, .pushed(proposal, index, isDelta: isDelta))
    }

    func pushed(_ proposal: LiteProposal, _ result: Result<Message, ReplyError>, _ index: Int, isDelta: Bool)
    {
        switch result {
        case .success:
            markPushed(proposal, index)
            complete(proposal, index)
        case .failure(let error):
            let isDeltaError =
                error.code == 422 || (error.domain == "LiteCore" && [31, 32].contains(error.code))
            if isDelta, isDeltaError { return sendPush(proposal, index, allowsDelta: false) }
            report(proposal.id, isPush: true, error)
            if error.domain == "HTTP", [408, 429, 500, 502, 503, 504].contains(error.code) {
                // It is tried again in the next run.
                channels[index].push.inFlight.remove(proposal.id)
            } else {
                complete(proposal, index)
            }
        }
    }

    /// The other side has the revision now. The document may have another one meanwhile.
    private func markPushed(_ proposal: LiteProposal, _ index: Int) {
        let mark = LiteDocument.Remote(revision: proposal.revision)
        database.setRemote(mark, remote, of: proposal.id, in: channels[index].collection)
    }

    private func complete(_ proposal: LiteProposal, _ index: Int) {
        channels[index].push.inFlight.remove(proposal.id)
        channels[index].push.completed.insert(proposal.sequence)
        defer { resolveConflicts(index) }
        // Most documents have not changed since, and some are purged.
        guard channels[index].push.held.remove(proposal.id) != nil,
            let document = database.documents(in: channels[index].collection)[proposal.id]
        else { return }
        if needsPush(proposal.id, document, index) {
            propose([self.proposal(proposal.id, document, index, isLive: true)], index)
        } else {
            channels[index].push.completed.insert(document.sequence)
        }
    }
}
