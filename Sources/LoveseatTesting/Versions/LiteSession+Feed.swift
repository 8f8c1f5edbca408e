import LoveseatBLIP
import LoveseatModel

extension LiteSession {
    func subscribe(_ message: Message, _ number: UInt64, _ index: Int) throws(ReplyError) {
        let properties = message.properties
        let versioning = properties["versioning"] ?? "rev-trees"
        guard versioning == (database.hasTrees ? "rev-trees" : "version-vectors") else {
            throw ReplyError("LiteCore", 501, "Incompatible document versioning.")
        }
        guard properties["filter"] == nil else {
            throw ReplyError("LiteCore", 19, "Filtering not supported")
        }
        let subscription = LiteSubscription(message)
        channels[index].subscription = subscription
        reply(Message(), to: message, number)
        announceBacklog(subscription, index)
    }

    private func announceBacklog(_ subscription: LiteSubscription, _ index: Int) {
        var rows: [LiteRow] = []
        for (id, document) in changed(since: subscription.since, index) {
            channels[index].subscription?.since = document.sequence
            if subscription.activeOnly, document.current.isDeleted { continue }
            if let listed = subscription.listed, !listed.contains(id) { continue }
            rows.append(LiteRow(id, document, database.release, isLive: false))
        }
        for start in stride(from: 0, to: rows.count, by: subscription.batch) {
            announce(Array(rows[start..<min(rows.count, start + subscription.batch)]), index)
        }
        announce([], index)
    }

    private func changed(since: UInt64, _ index: Int) -> [(key: String, value: LiteDocument)] {
        database.documents(in: channels[index].collection)
            .filter { $0.value.sequence > since }
            .sorted { $0.value.sequence < $1.value.sequence }
    }

    /// Announces to a continuous subscription what has changed since, but for what the peer itself sent. Couchbase Lite recognizes that by the texts
    /// of what it was sent and of what it announces, which differ for vectors of several versions.
    func announceLive(_ index: Int) {
        // Nobody may want to be told.
        guard let subscription = channels[index].subscription, subscription.isContinuous else { return }
        var rows: [LiteRow] = []
        for (id, document) in changed(since: subscription.since, index) {
            channels[index].subscription?.since = document.sequence
            if let listed = subscription.listed, !listed.contains(id) { continue }
            let current = document.current
            let isEcho = document.remotes[remote]?.revision.name == current.name
            if isEcho, current.shortText == current.wholeText { continue }
            rows.append(LiteRow(id, document, database.release, isLive: true))
        }
        for start in stride(from: 0, to: rows.count, by: subscription.batch) {
            announce(Array(rows[start..<min(rows.count, start + subscription.batch)]), index)
        }
    }

    private func announce(_ rows: [LiteRow], _ index: Int) {
        let message = Message(
            ["Profile": "changes", "collection": String(index)],
            body: Self.json(.array(rows.map(\.json))),
            isUrgent: true,
            isCompressed: !rows.isEmpty,
            noReply: rows.isEmpty
        )
        send(message, rows.isEmpty ? nil : .list(rows, index))
    }

    /// The peer has said which revisions it wants.
    func receivedWishes(_ rows: [LiteRow], _ result: Result<Message, ReplyError>, _ index: Int) {
        // A peer that refuses the list gets nothing of it.
        guard case .success(let message) = result else { return }
        let items = Self.parse(message.body)?.array ?? []
        for (row, item) in zip(rows, items) {
            guard let ancestors = item.array?.compactMap(\.string) else { continue }
            sendAnnounced(row, ancestors, index)
        }
    }

    private func sendAnnounced(_ row: LiteRow, _ ancestors: [String], _ index: Int) {
        let document = database.documents(in: channels[index].collection)[row.id]
        let isReplaced = document.map { $0.current.name != row.revision.name } ?? true
        guard let document, !isReplaced || channels[index].subscription?.takesReplacements == true else {
            let properties: MessageProperties = [
                "Profile": "norev", "collection": String(index), "id": row.id,
                "rev": row.revision.shortText, "sequence": String(row.sequence), "error": "404",
            ]
            return send(Message(properties, isCompressed: true, noReply: true), nil)
        }
        let history = document.sentHistory(ancestors: ancestors)
        let replaced = isReplaced ? row.text : nil
        let properties = document.properties(row.id, history, row.sequence, index, replaced: replaced)
        let body = Self.json(.object(document.current.body ?? [:]))
        send(Message(properties, body: body, isCompressed: true), .ignored)
    }
}
