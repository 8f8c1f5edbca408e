import LoveseatModel
package import LoveseatReplication

extension ReplicationSession {
    /// The documents that are on their way in either direction, or wait for their turn. Lists at most `limit` of them. Reads at most about
    /// `unread` changes that the session has not read yet.
    package func pending(listing limit: Int, unread: Int) -> PendingTransfers {
        collections.pending(listing: limit, unread: unread)
    }

    /// The name of a collection; nil before the peers agreed on them.
    func name(of index: Int) -> CollectionName? {
        collections.indices.contains(index) ? collections[index].name : nil
    }
}

extension CollectionSessions {
    fileprivate func pending(listing limit: Int, unread: Int) -> PendingTransfers {
        var found = PendingTransfers()
        for session in self { session.addPending(to: &found, limit: limit) }
        var left = unread
        for session in self { session.addUnread(to: &found, limit: limit, reading: &left) }
        return found
    }
}

extension CollectionSession {
    /// Adds the documents that were offered or announced.
    fileprivate func addPending(to found: inout PendingTransfers, limit: Int) {
        func add(_ id: String, isPush: Bool, _ stage: PendingTransfer.Stage) {
            found.add(id, in: name, isPush: isPush, stage, limit: limit)
        }
        for document in push?.underWay ?? [] { add(document.id, isPush: true, document.pendingStage) }
        for (id, stage) in pull.underWay { add(id, isPush: false, stage) }
    }

    /// Adds the changes that the push has not read yet.
    fileprivate func addUnread(
        to found: inout PendingTransfers,
        limit: Int,
        reading left: inout Int
    ) {
        // A peer may not have subscribed, and a push may have read all of the feed.
        guard let push, push.feed.hasMore else { return }
        var since = push.feed.lastRead
        while left > 0 {
            let query = push.query(since: since, limit: min(left, 1_000))
            // If a change cannot be read now, the session ends when it is this change's turn.
            guard let page = try? push.replica.changes(query) else { break }
            for change in page.changes where push.isNews(change, pull.forPush.echoes.contains) {
                found.add(change.documentID, in: name, isPush: true, .waits, limit: limit)
            }
            if !page.hasMore || page.through <= since { return }
            left -= Int(clamping: page.through - since)
            since = page.through
        }
        found.unread[name] = since
    }
}

extension PushSession {
    /// The documents that were read from the feed and are not finished, in order.
    fileprivate var underWay: [Outgoing] {
        let all =
            isProposing
            ? Array(documents.values)
            : waiting + lists.documents.values.flatMap(\.self) + queue + sent.inFlight.values
        return all.sorted { $0.change.sequence < $1.change.sequence }
    }
}

extension Outgoing {
    fileprivate var pendingStage: PendingTransfer.Stage {
        switch stage {
        case .offered: .offered
        case .wanted: .wanted
        case .sent: .sent
        case .forbidden: .refusedOnce
        case .parked: .parked
        case .failed: .failed
        }
    }
}

extension PullSession {
    /// The announced revisions that are not stored, by document.
    fileprivate var underWay: [(id: String, stage: PendingTransfer.Stage)] {
        let came = incoming.entries.sorted { $0.key < $1.key }.map { _, entry in
            let isReady = if case .ready = entry.stage { true } else { false }
            return (entry.revision.documentID, PendingTransfer.Stage(isReady: isReady))
        }
        return came + expectations.documentIDs.map { ($0, .expected) }
            + lists.documentIDs.map { ($0, .announced) }
    }
}

extension PendingTransfer.Stage {
    fileprivate init(isReady: Bool) { self = isReady ? .received : .fetchingBlobs }
}
