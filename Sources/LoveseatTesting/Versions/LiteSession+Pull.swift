import LoveseatAssertions
import LoveseatBLIP
package import LoveseatModel

extension LiteSession {
    /// Compares the checkpoints (replication.md §5.5).
    func startPull(_ index: Int, _ stored: JSONObject) {
        guard let plan else { return impossible("a passive side does not pull") }
        channels[index].checkpointRevision =
            stored["rev"]?.string ?? stored["_rev"]?.string ?? ""
        var start = LiteCheckpoint()
        if !plan.resetsCheckpoint, let own = database.ownCheckpoints[plan.bindings[index].checkpointID] {
            let peer = LiteCheckpoint(stored)
            let (found, agrees) = own.compared(with: peer)
            start = found
            channels[index].trustsMarks = agrees
        }
        channels[index].push.completed = start.completed
        channels[index].push.readThrough = start.local
        channels[index].pull.since = start.remote
        channels[index].saved = start
        resolveLeftConflicts(index)
    }

    /// Earlier runs may have left conflicts.
    private func resolveLeftConflicts(_ index: Int) {
        if plan?.pulls != true { return }
        let collection = channels[index].collection
        for (id, document) in database.documents(in: collection).sorted(by: { $0.key < $1.key }) {
            for (number, mark) in document.remotes.sorted(by: { $0.key < $1.key }) where mark.isConflict {
                resolve(id, index, remote: number)
            }
        }
    }

    private func resolve(_ id: String, _ index: Int, remote: Int) {
        guard let plan else { return impossible("a passive side has no conflicts") }
        let collection = channels[index].collection
        if !database.resolve(id, in: collection, remote: remote, by: plan.resolver) {
            report(id, isPush: false, ReplyError("LiteCore", 8, "conflict"))
        }
    }

    func sendSubscription(_ index: Int) {
        guard let plan else { return impossible("a passive side does not subscribe") }
        let binding = plan.bindings[index]
        let since = channels[index].pull.since
        var properties: MessageProperties = ["Profile": "subChanges", "collection": String(index)]
        properties["since"] = since?.text
        if plan.isContinuous { properties["continuous"] = "true" }
        properties["batch"] = String(Self.batch)
        properties["sendReplacementRevs"] = "1"
        properties["versioning"] = "version-vectors"
        if since == nil, database.documents(in: binding.collection).isEmpty {
            properties["activeOnly"] = "true"
        }
        properties["revocations"] = "true"
        if let names = binding.channels {
            properties["filter"] = "sync_gateway/bychannel"
            properties["channels"] = names.joined(separator: ",")
        }
        let listed = binding.documentIDs.map { JSONValue.array($0.map { .string($0) }) }
        let body = listed.map { Self.json(.object(["docIDs": $0])) } ?? []
        send(Message(properties, body: body), .subscription(index))
    }

    // MARK: Announcements

    func receiveChanges(_ message: Message, _ number: UInt64, _ index: Int) throws(ReplyError) {
        let rows = Self.parse(message.body)?.array
        guard let rows = rows ?? (message.body == Array("null".utf8) ? [] : nil) else {
            throw ReplyError("BLIP", 400, "Invalid JSON body")
        }
        if rows.isEmpty {
            channels[index].pull.isCaughtUp = true
            return reply(Message(), to: message, number)
        }
        // A non-empty list to which no answer is wanted says nothing.
        if message.noReply { return }
        let collection = channels[index].collection
        let isBroken = rows.contains { row in
            let document = database.documents(in: collection)[row[1]?.string ?? ""]
            return document.map { $0.current.legacyID != nil && !$0.isTreeRecord } ?? false
        }
        let sequences = rows.map { RemoteSequence(json: ($0[0] ?? .null).description) ?? RemoteSequence(0) }
        channels[index].pull.announced += sequences.map { ($0, false) }
        if isBroken { throw ReplyError("SQLite", 1, "fl_callback: exception!") }
        var items: [JSONValue] = []
        for (row, sequence) in zip(rows, sequences) { items.append(try wish(row, sequence, index)) }
        replyWithWishes(items, to: message, number, index)
    }

    private func wish(_ row: JSONValue, _ sequence: RemoteSequence, _ index: Int)
        throws(ReplyError) -> JSONValue
    {
        let flags = row[3]?.int ?? (row[3]?.bool == true ? 1 : 0)
        guard let id = row[1]?.string, !id.isEmpty, let text = row[2]?.string,
            let state = try? StateHistory(text), !state.isEmpty
        else { throw ReplyError("LiteCore", 26, "Invalid change") }
        // Other flags mean that access was lost.
        guard flags <= 1 || flags == 5 else {
            channels[index].pull.finish(sequence.text)
            return 0
        }
        let verdict = database.verdict(
            onAnnounced: state,
            isDeleted: flags & 1 != 0,
            id,
            in: channels[index].collection,
            remote: remote,
            isActive: plan != nil
        )
        switch verdict {
        case .wanted(let ancestors):
            channels[index].pull.requested += 1
            return .array(ancestors.map { .string($0) })
        case .unwanted:
            channels[index].pull.finish(sequence.text)
            retryParked(id, index)
            return 0
        case .conflict: return 409
        case .failure: throw ReplyError("SQLite", 1, "fl_callback: exception!")
        }
    }

    func replyWithWishes(_ items: [JSONValue], to message: Message, _ number: UInt64, _ index: Int) {
        var items = items
        while items.last == 0 { items.removeLast() }
        var properties: MessageProperties = ["blobs": "true"]
        if !channels[index].pull.saidDeltas { properties["deltas"] = "true" }
        properties["sendReplacementRevs"] = "1"
        channels[index].pull.saidDeltas = true
        reply(Message(properties, body: Self.json(.array(items)), isCompressed: true), to: message, number)
    }

    /// A revision was stored, or lies beside the current one.
    func pulled(_ id: String, _ sequence: String?, _ insertion: LiteDatabase.Insertion, _ index: Int) {
        channels[index].pull.finish(sequence)
        if plan == nil { return }
        if insertion == .conflict {
            giveUpParked(id, index)
            channels[index].pull.conflicts.append(id)
        }
        cameIn(index)
    }

    /// One of the revisions that were asked for has come.
    func cameIn(_ index: Int) {
        channels[index].pull.requested = max(0, channels[index].pull.requested - 1)
        resolveConflicts(index)
    }

    /// Resolves the conflicts that came in, once nothing is on its way. Resolvers run beside everything else.
    func resolveConflicts(_ index: Int) {
        if channels[index].pull.requested > 0 || !channels[index].push.inFlight.isEmpty { return }
        let conflicts = channels[index].pull.conflicts
        channels[index].pull.conflicts = []
        for id in conflicts { resolve(id, index, remote: remote) }
    }

    // MARK: Checkpoints

    /// How far the replication of a collection has come.
    package func checkpoint(_ index: Int) -> LiteCheckpoint { channels[index].checkpoint }

    /// The checkpoint that was saved last.
    package func savedCheckpoint(_ index: Int) -> LiteCheckpoint { channels[index].saved }

    /// The number of collections that are replicated.
    package var collectionCount: Int { channels.count }

    /// Saves a checkpoint.
    package func saveCheckpoint(_ index: Int, as body: JSONObject) {
        guard let plan else { return impossible("a passive side saves no checkpoint") }
        let properties: MessageProperties = [
            "Profile": "setCheckpoint", "collection": String(index),
            "client": plan.bindings[index].checkpointID, "rev": channels[index].checkpointRevision,
        ]
        let message = Message(properties, body: Self.json(.object(body)))
        send(message, .checkpoint(LiteCheckpoint(body), index))
    }

    /// Saves the checkpoints that have changed.
    ///
    /// - Parameter time: Seconds since 1970.
    package func saveCheckpoints(time: Int) {
        for index in channels.indices where checkpoint(index) != channels[index].saved {
            saveCheckpoint(index, as: checkpoint(index).body(time: time))
        }
    }

    func savedCheckpoint(
        _ checkpoint: LiteCheckpoint,
        _ result: Result<Message, ReplyError>,
        _ index: Int
    ) {
        guard let plan else { return impossible("a passive side saved a checkpoint") }
        // A failure is logged, and the next run starts where the last one did.
        guard case .success(let message) = result else { return }
        channels[index].checkpointRevision = message.properties["rev"] ?? ""
        channels[index].saved = checkpoint
        database.ownCheckpoints[plan.bindings[index].checkpointID] = checkpoint
    }

}

extension LiteDatabase {
    /// A peer's checkpoint as the answer to `getCollections` has it.
    func checkpointForPeer(_ id: String) -> JSONObject? {
        guard let stored = peerCheckpoints[id] else { return nil }
        var body = stored.body
        body["rev"] = .string("\(stored.revision)-cc")
        return body
    }

    /// Answers `getCheckpoint` and `setCheckpoint`.
    func answerCheckpoint(_ message: Message) throws(ReplyError) -> Message {
        guard let client = message.properties["client"] else {
            throw ReplyError("BLIP", 400, "missing checkpoint ID")
        }
        let stored = peerCheckpoints[client]
        let revision = stored.map { "\($0.revision)-cc" } ?? ""
        guard message.profile == "setCheckpoint" else {
            guard let stored else { throw ReplyError("HTTP", 404, "missing") }
            return Message(["rev": revision], body: LiteSession.json(.object(stored.body)))
        }
        guard message.properties["rev"] ?? "" == revision,
            let body = LiteSession.parse(message.body)?.object
        else { throw ReplyError("HTTP", 409, "revision ID mismatch") }
        let next = (stored?.revision ?? 0) + 1
        peerCheckpoints[client] = StoredCheckpoint(body: body, revision: next)
        return Message(["rev": "\(next)-cc"])
    }
}
