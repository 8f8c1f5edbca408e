import LoveseatBLIP
import LoveseatModel

extension GatewaySession {
    /// A subscription.
    struct Feed {
        let keyspace: String
        var query: GatewayFeedQuery
        let rowsPerList: Int
        let sendsReplacements: Bool
        /// The rows that a one-shot feed found and has not announced yet; nil before it looked.
        var rows: [GatewayFeedRow]?
        var isListInFlight = false
        var isCaughtUp = false
    }

    func subscribe(_ message: Message, _ number: UInt64, _ keyspace: String, _ index: Int)
        throws(ReplyError)
    {
        guard feeds[index] == nil, !closedFeeds.contains(index) else {
            let reason = "Internal error: blipHandler for default collection already has an outstanding"
            throw ReplyError("HTTP", 500, "\(reason) subChanges. Cannot open another one")
        }
        let properties = message.properties
        var query = GatewayFeedQuery()
        if let text = properties["since"] {
            guard let since = GatewaySequence(parsing: text) else {
                throw ReplyError("HTTP", 400, "Invalid subChanges parameters")
            }
            query.since = since
        }
        query.isContinuous = properties["continuous"].map { $0 != "false" } ?? false
        query.activeOnly = properties["activeOnly"] == "true"
        query.revocations = properties["revocations"] == "true"
        query.documentIDs = Self.parse(message.body)?["docIDs"]?.array?.compactMap(\.string)
        if let refusal = readFilter(properties, &query) {
            closedFeeds.insert(index)
            throw refusal
        }
        let batch = properties["batch"].map { Int($0) ?? 200 } ?? 200
        feeds[index] = Feed(
            keyspace: keyspace,
            query: query,
            rowsPerList: batch == 0 ? 1 : max(10, batch),
            sendsReplacements: properties["sendReplacementRevs"] == "true"
        )
        reply(Message(), to: message, number)
    }

    private func readFilter(_ properties: MessageProperties, _ query: inout GatewayFeedQuery) -> ReplyError? {
        if let filter = properties["filter"] {
            guard filter == "sync_gateway/bychannel" else {
                return ReplyError("HTTP", 400, "Unknown filter; try sync_gateway/bychannel")
            }
            let names = (properties["channels"] ?? "").split(separator: ",").map(String.init)
            guard !names.isEmpty else { return ReplyError("HTTP", 400, "Empty channel list") }
            query.channels = Set(names)
        }
        if query.documentIDs != nil, query.isContinuous {
            return ReplyError("HTTP", 400, "DocIDs filter not supported for continuous subChanges")
        }
        return nil
    }

    // MARK: Announcing

    /// Sends what every feed may send now.
    func advanceFeeds() {
        for index in feeds.keys.sorted() { while advanceFeed(index) {} }
    }

    /// Sends a feed's next list, or that it is caught up; false if there is nothing to say, or a list has no answer yet
    /// (gateway.md 21, 22).
    ///
    /// `database`: where to look, for a gateway whose feed lags behind. `limit`: the most rows, for one that was interrupted.
    @discardableResult
    package func advanceFeed(_ index: Int, reading database: GatewayDatabase? = nil, limit: Int = .max)
        -> Bool
    {
        guard var feed = feeds[index], !feed.isListInFlight else { return false }
        var rows = feed.rows ?? []
        if feed.rows == nil {
            if feed.isCaughtUp, !feed.query.isContinuous { return false }
            rows = lookAhead(index, reading: database)
        }
        guard !rows.isEmpty else {
            guard !feed.isCaughtUp else { return false }
            feed.isCaughtUp = true
            feed.query.activeOnly = false
            feed.rows = feed.query.isContinuous ? nil : []
            feeds[index] = feed
            announce([], index)
            return true
        }
        let list = Array(rows.prefix(min(limit, feed.rowsPerList)))
        rows.removeFirst(list.count)
        // A continuous feed looks again each time, so that a document that changed meanwhile is announced once.
        feed.rows = feed.query.isContinuous ? nil : rows
        feed.query.since = list.last?.sequence ?? feed.query.since
        feed.isListInFlight = true
        feeds[index] = feed
        announce(list, index)
        return true
    }

    /// Returns the rows that a feed would announce.
    package func lookAhead(_ index: Int, reading other: GatewayDatabase? = nil) -> [GatewayFeedRow] {
        guard let feed = feeds[index] else { return [] }
        if let rows = feed.rows { return rows }
        guard var other else {
            database.refreshAccess(of: user)
            return database.feed(of: user, in: feed.keyspace, feed.query)
        }
        other.refreshAccess(of: user)
        return other.feed(of: user, in: feed.keyspace, feed.query)
    }

    private func announce(_ rows: [GatewayFeedRow], _ index: Int) {
        var properties: MessageProperties = ["Profile": "changes", "Content-Type": "application/json"]
        if index >= 0 { properties["collection"] = String(index) }
        guard !rows.isEmpty else {
            let message = Message(properties, body: Array("null".utf8), isCompressed: true, noReply: true)
            return send(message, tag: nil)
        }
        let tag = nextTag()
        awaited[tag] = .list(rows, feed: index)
        let body = Self.json(.array(rows.map { $0.json(negotiated) }))
        send(Message(properties, body: body, isCompressed: true), tag: tag)
    }

    // MARK: Answers

    func answered(_ tag: BLIPConnection.Tag, _ result: Result<Message, ReplyError>) {
        // A test may answer twice, or without a question.
        guard let awaited = awaited.removeValue(forKey: tag) else { return }
        switch awaited {
        case .list(let rows, let index):
            feeds[index]?.isListInFlight = false
            // An error reply is ignored; the feed goes on (gateway.md 33).
            guard case .success(let message) = result else { return }
            let items = Self.parse(message.body)?.array ?? []
            let maximum = message.properties["maxHistory"].flatMap { Int($0) } ?? .max
            for (row, item) in zip(rows, items) {
                guard let known = knownRevisions(item) else { continue }
                deliver(row, index, known: known, maximumHistory: maximum)
            }
        case .revision(let id, let digests): endServing(id, digests)
        case .attachment(let digest, let upload): receivedAttachment(digest, upload, result)
        case .proof(let digest, let nonce, let upload): receivedProof(digest, nonce, upload, result)
        }
    }

    /// Sends a revision that the client asked for, a newer one in its place, or that it is gone (gateway.md 37–39).
    private func deliver(_ row: GatewayFeedRow, _ index: Int, known: Set<String>, maximumHistory: Int) {
        // The client may have unsubscribed before it answered.
        guard let feed = feeds[index] else { return }
        var properties: MessageProperties = ["id": row.id, "sequence": row.sequence.json.description]
        if index >= 0 { properties["collection"] = String(index) }
        let access = database.channels(of: user, in: feed.keyspace)
        let document = database.keyspaces[feed.keyspace]?.documents[row.id]
        var chosen = row.revision
        if let document, document.revisions[chosen]?.body == nil, feed.sendsReplacements,
            let leaf = document.leaf, document.isReadable(leaf, by: access)
        {
            chosen = document.current
            properties["replacedRev"] = row.name(isVersioned: speaksVersions)
        }
        guard let document, let revision = document.revisions[chosen], let body = revision.body else {
            properties["Profile"] = "norev"
            properties["rev"] = row.name(isVersioned: speaksVersions)
            properties["error"] = "404"
            properties["reason"] = "missing"
            return send(Message(properties, noReply: true), tag: nil)
        }
        database.keyspaces[feed.keyspace]?.documents[row.id]?.revisions[chosen]?.isCached = true
        properties["Profile"] = "rev"
        let names = names(of: chosen, in: document, known: known, maximumHistory: maximumHistory)
        properties["rev"] = names.revision
        properties["Content-Type"] = "application/json"
        if !names.history.isEmpty { properties["history"] = names.history }
        if revision.isDeleted { properties["deleted"] = "1" }
        guard revision.isDeleted || document.isReadable(revision, by: access) else {
            return send(
                Message(properties, body: Self.json(["_removed": true]), isCompressed: true, noReply: true),
                tag: nil
            )
        }
        send(body, with: revision.attachments, properties, id: row.id)
    }

    private func send(
        _ body: JSONObject,
        with attachments: [String: JSONObject],
        _ properties: MessageProperties,
        id: String
    ) {
        guard !attachments.isEmpty else {
            let bytes = Self.json(.object(body))
            return send(Message(properties, body: bytes, isCompressed: true, noReply: true), tag: nil)
        }
        var body = body
        body["_attachments"] = .object(JSONObject(attachments.mapValues { .object($0) }))
        let digests = attachments.values.compactMap { $0["digest"]?.string }
        for digest in digests { servable[id, default: [:]][digest, default: 0] += 1 }
        let tag = nextTag()
        awaited[tag] = .revision(id: id, digests: digests)
        send(Message(properties, body: Self.json(.object(body)), isCompressed: true), tag: tag)
    }
}
