import LoveseatAssertions
package import LoveseatBLIP
import LoveseatModel

/// One connection of a ``LiteDatabase``, message by message, in either role.
///
/// It reads no clock and opens no socket: messages come in by ``receive(_:)``, and its own are in ``drainOutput()``. It works on everything at once.
/// Callers ask for the things that Couchbase Lite does after a delay: ``advance()`` after a change of the database, ``saveCheckpoint(_:as:)`` or
/// ``saveCheckpoints(time:)`` for checkpoints.
package final class LiteSession {
    /// A message of this side.
    package enum Output: Hashable, Sendable {
        case request(Message, tag: BLIPConnection.Tag?)
        case reply(Message, to: UInt64)
        case failure(ReplyError, to: UInt64, isUrgent: Bool)
    }

    /// A document that could not be replicated.
    package struct DocumentError: Hashable, Sendable {
        package let id: String
        package let isPush: Bool
        package let error: ReplyError
    }

    /// The purpose of an answer.
    enum Awaited {
        case collections
        case proposals([LiteProposal], Int)
        case pushed(LiteProposal, Int, isDelta: Bool)
        case subscription(Int)
        case list([LiteRow], Int)
        case attachment(String, upload: UInt64)
        case checkpoint(LiteCheckpoint, Int)
        case ignored
    }

    package let database: LiteDatabase
    /// The plan of the active side; nil for the passive one.
    let plan: LitePlan?
    /// The number of the other database in ``database``.
    let remote: Int
    /// By the index of the collection.
    var channels: [LiteChannel] = []
    /// The first failure that ends the replication.
    package var failure: ReplyError?
    package private(set) var documentErrors: [DocumentError] = []
    var uploads: [UInt64: LiteUpload] = [:]
    private(set) var awaited: [BLIPConnection.Tag: Awaited] = [:]
    private var output: [Output] = []
    private var lastTag: BLIPConnection.Tag = 0
    private var isBound = false

    /// Accepts a connection of a client, whose address is another one for each connection.
    package init(passive database: LiteDatabase, client address: String) {
        self.database = database
        plan = nil
        remote = database.remoteNumber(of: address)
    }

    /// Begins a replication. ``start()`` sends the first message.
    package init(active database: LiteDatabase, _ plan: LitePlan, server address: String) {
        self.database = database
        self.plan = plan
        remote = database.remoteNumber(of: address)
    }

    /// Sends the first request of an active side.
    package func start() {
        guard let plan else { return impossible("a passive side does not begin") }
        let body: JSONObject = [
            "checkpoint_ids": .array(plan.bindings.map { .string($0.checkpointID) }),
            "collections": .array(plan.bindings.map { .string($0.collection) }),
        ]
        let properties: MessageProperties = ["Profile": "getCollections", "uuid": database.source.uuidText]
        send(Message(properties, body: Self.json(.object(body))), .collections)
    }

    /// Something came from the other side.
    package func receive(_ event: BLIPConnection.Event) {
        switch event {
        case .request(let number, let message):
            do { try answer(message, number) } catch {
                fail(error, number, to: message)
                if message.profile == "rev" { refused(message, error) }
            }
        case .response(let tag, let message): answered(tag, .success(message))
        case .failure(let tag, let error): answered(tag, .failure(error))
        case .piece, .sent, .wantsBody: break
        }
    }

    /// Announces or proposes what has changed in the database since. Only continuous replications do.
    package func advance() {
        for index in channels.indices {
            if plan?.isContinuous == true, plan?.pushes == true { readFeed(index, isLive: true) }
            announceLive(index)
        }
    }

    /// Returns this side's messages since the last call.
    package func drainOutput() -> [Output] {
        defer { output = [] }
        return output
    }

    /// Does what Couchbase Lite does in time: it announces changes, and saves checkpoints when nothing is on its way.
    ///
    /// - Parameter time: Seconds since 1970.
    package func work(time: Int) {
        advance()
        if isQuiet, plan != nil { saveCheckpoints(time: time) }
    }

    /// Whether nothing is on its way: everything is read, sent, received and resolved.
    package var isQuiet: Bool {
        let isCaughtUp = plan?.pulls != true || channels.allSatisfy(\.pull.isCaughtUp)
        return !channels.isEmpty && awaited.isEmpty && uploads.isEmpty && isCaughtUp
            && channels.allSatisfy(\.isQuiet)
    }

    /// Whether a one-shot replication has come to its end, or any to a failure. Then the connection is closed.
    package var isFinished: Bool {
        guard let plan, failure == nil else { return failure != nil }
        return !plan.isContinuous && isQuiet && channels.allSatisfy { $0.saved == $0.checkpoint }
    }

    // MARK: Requests

    private func answer(_ message: Message, _ number: UInt64) throws(ReplyError) {
        if message.profile == "getCollections" { return try bind(message, number) }
        let text = message.properties["collection"] ?? ""
        guard let index = Int(text), channels.indices.contains(index) else {
            throw ReplyError("HTTP", 400, "the collection property is out of range.")
        }
        switch message.profile {
        case "subChanges": try subscribe(message, number, index)
        case "changes": try receiveChanges(message, number, index)
        case "proposeChanges": try receiveProposals(message, number, index)
        case "rev": try receiveRevision(message, number, index)
        case "norev":
            channels[index].pull.finish(message.properties["sequence"])
            cameIn(index)
        case "getAttachment", "proveAttachment":
            reply(try database.answerAttachment(message), to: message, number)
        case "getCheckpoint", "setCheckpoint":
            reply(try database.answerCheckpoint(message), to: message, number)
        default: throw ReplyError("BLIP", 404, "no handler for message")
        }
    }

    private func answered(_ tag: BLIPConnection.Tag, _ result: Result<Message, ReplyError>) {
        guard let purpose = awaited.removeValue(forKey: tag) else {
            return impossible("an answer to request \(tag), which was not sent")
        }
        switch purpose {
        case .collections: receivedCollections(result)
        case .proposals(let proposals, let index): receivedVerdicts(proposals, result, index)
        case .pushed(let proposal, let index, let isDelta): pushed(proposal, result, index, isDelta: isDelta)
        case .subscription: if case .failure(let error) = result { failure = failure ?? error }
        case .list(let rows, let index): receivedWishes(rows, result, index)
        case .attachment(let digest, let number): receivedAttachment(digest, number, result)
        case .checkpoint(let checkpoint, let index): savedCheckpoint(checkpoint, result, index)
        case .ignored: break
        }
    }

    private func bind(_ message: Message, _ number: UInt64) throws(ReplyError) {
        guard !isBound, plan == nil else {
            throw ReplyError("BLIP", 400, "Invalid getCollections message: not the first message")
        }
        isBound = true
        let body = Self.parse(message.body)
        let paths = body?["collections"]?.array?.compactMap(\.string) ?? []
        let ids = body?["checkpoint_ids"]?.array?.compactMap(\.string) ?? []
        guard paths.count == ids.count, !paths.isEmpty else {
            throw ReplyError(
                "BLIP",
                400,
                "Invalid getCollections message: mismatched checkpoint_ids and collections"
            )
        }
        var items: [JSONValue] = []
        for (path, id) in zip(paths, ids) {
            guard database.collections[path] != nil else {
                items.append(.null)
                continue
            }
            items.append(.object(database.checkpointForPeer(id) ?? [:]))
        }
        if !items.contains(.null) { channels = paths.map { LiteChannel($0) } }
        reply(Message(body: Self.json(.array(items))), to: message, number)
    }

    private func receivedCollections(_ result: Result<Message, ReplyError>) {
        guard let plan else { return impossible("a passive side asked for collections") }
        let message: Message
        switch result {
        case .failure(let error): return failure = failure ?? error
        case .success(let answer): message = answer
        }
        let items = Self.parse(message.body)?.array ?? []
        guard items.count == plan.bindings.count else {
            return failure = ReplyError("LiteCore", 26, "Invalid response to getCollections")
        }
        for (binding, item) in zip(plan.bindings, items) where item.isNull {
            let text = "Collection '\(binding.collection)' is not found on the remote server"
            return failure = ReplyError("WebSocket", 404, text)
        }
        channels = plan.bindings.map { LiteChannel($0.collection) }
        for (index, item) in items.enumerated() { startPull(index, item.object ?? [:]) }
        for index in channels.indices {
            if plan.pushes { readFeed(index, isLive: false) }
            if plan.pulls { sendSubscription(index) }
        }
    }

    // MARK: Saying

    func send(_ message: Message, _ purpose: Awaited?) {
        guard let purpose else { return output.append(.request(message, tag: nil)) }
        lastTag += 1
        awaited[lastTag] = purpose
        output.append(.request(message, tag: lastTag))
    }

    func reply(_ message: Message, to request: Message, _ number: UInt64) {
        if request.noReply { return }
        var message = message
        message.isUrgent = request.isUrgent
        output.append(.reply(message, to: number))
    }

    func fail(_ error: ReplyError, _ number: UInt64, to request: Message) {
        if request.noReply { return }
        output.append(.failure(error, to: number, isUrgent: request.isUrgent))
    }

    func report(_ id: String, isPush: Bool, _ error: ReplyError) {
        documentErrors.append(DocumentError(id: id, isPush: isPush, error: error))
    }

    static func json(_ value: JSONValue) -> [UInt8] { JSONText(canonical: value).bytes }

    static func parse(_ bytes: [UInt8]) -> JSONValue? { (try? JSONElement(parsing: bytes))?.value }
}
