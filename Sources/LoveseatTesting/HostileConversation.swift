package import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A session, on a database with a few documents, and the peer that says what a fuzzer makes up.
package final class HostileConversation {
    /// The session that the peer talks to.
    package struct Side: Sendable {
        let isActive: Bool
        /// Nil where nothing is negotiated.
        let form: ReplicationProtocol?

        package static let passive = Side(isActive: false, form: .mobile3)
        package static let active = Side(isActive: true, form: .mobile3)
        package static let passiveWithVersions = Side(isActive: false, form: .mobile4)
        package static let activeWithVersions = Side(isActive: true, form: .mobile4)
        package static let passiveOpen = Side(isActive: false, form: nil)
        package static let activeOpen = Side(isActive: true, form: nil)
    }

    private static let profiles: [Profile?] = [
        .getCollections, .getCheckpoint, .setCheckpoint, .subChanges, .changes, .proposeChanges, .revision,
        .noRevision, .getAttachment, .proveAttachment, .unsubChanges, nil,
    ]
    /// The errors with which a peer refuses, by the first byte of a message from 240 on.
    private static let refusals = [
        ReplyError("HTTP", 404, "no"), ReplyError("HTTP", 409, "no"), ReplyError("LiteCore", 501, "no"),
        ReplyError("LiteCore", 8, "no"), ReplyError("LiteCore", 4, "no"), ReplyError("BLIP", 404, "no"),
        ReplyError("HTTP", 422, "no"), ReplyError("SQLite", 1, "no"), ReplyError("HTTP", 403, "no"),
        ReplyError("LiteCore", 19, "no"), ReplyError("HTTP", 503, "no"), ReplyError("WebSocket", 404, "no"),
        ReplyError("BLIP", 400, "no"), ReplyError("HTTP", 304, "no"), ReplyError("x", -1, ""),
        ReplyError("HTTP", 500, "no"),
    ]

    private let store: DocumentStore
    private let collection: CollectionHandle
    private let line: PuppetLine
    /// The session's requests that have no answer yet.
    private var questions: [UInt64] = []

    init(_ side: Side, folder: String) throws {
        var options = DocumentStore.Options()
        // The same input does the same every time. The time is later than all versions of the recordings.
        options.system.nanoseconds = { 0x18F0_0000_0000_0000 }
        options.newUUID = { [UInt8](1...16) }
        let store = try DocumentStore.inMemory(blobFolder: folder, options: options)
        let collection = try Self.fill(store, withVersions: side.form == .mobile4)
        (self.store, self.collection) = (store, collection)
        let replicas =
            side.isActive
            ? DatabaseReplicas(
                store: store,
                collections: [collection],
                checkpointIDs: ["cp-x"],
                remote: 1,
                nowMilliseconds: { 0 }
            ) : DatabaseReplicas(store: store, nowMilliseconds: { 0 })
        line = PuppetLine({ Self.session(side, $0) }, replicas)
        line.onEvent = { [unowned self] event in
            if case .request(let number, let message) = event, !message.noReply { questions.append(number) }
        }
        try line.connect(side.form)
    }

    private static func session(_ side: Side, _ replicas: any ReplicaSource) -> ReplicationSession {
        if side.isActive {
            var plan = ActivePlan(
                collections: [.init(name: .default, checkpointID: "cp-x")],
                pushes: true,
                pulls: true,
                isContinuous: true
            )
            plan.usesDeltas = true
            return ReplicationSession(active: plan, replicas: replicas)
        }
        var plan = PassivePlan(collections: [.default])
        plan.usesDeltas = true
        return ReplicationSession(passive: plan, replicas: replicas)
    }

    /// Saves two documents; with versions, also edits one of them, creates another one and deletes a third.
    private static func fill(_ store: DocumentStore, withVersions: Bool) throws -> CollectionHandle {
        let collection = try store.write { try $0.createCollection(.default) }
        func save(_ id: String, _ body: JSONValue, isDeleted: Bool = false) throws {
            try store.write { transaction in
                _ = try transaction.save(
                    id,
                    in: collection,
                    body: JSONText(canonical: body),
                    isDeleted: isDeleted,
                    condition: .lastWriteWins
                )
            }
        }
        for id in ["d", "e"] { try save(id, ["a": 1]) }
        guard withVersions else { return collection }
        try store.beginVersions()
        // Long enough that the difference to the next edit is sent.
        try save("d", ["a": 2, "text": .string(String(repeating: "a long text ", count: 40))])
        try save("big", ["a": 1])
        for isDeleted in [false, true] { try save("gone", isDeleted ? [:] : ["a": 1], isDeleted: isDeleted) }
        return collection
    }

    // MARK: The peer

    /// The number of documents that are not deleted.
    var documentCount: Int {
        do { return try store.read { try $0.count(collection) } } catch {
            preconditionFailure("the documents cannot be counted: \(error)")
        }
    }

    /// Sends one message; false when the conversation is over. The first byte says whether it asks (below 128) or answers,
    /// and what.
    func say(_ piece: [UInt8]) -> Bool {
        guard !line.isClosed, piece.count >= 2 else { return !line.isClosed }
        let (properties, body) = Self.content(piece[1...])
        do throws(BLIPError) {
            if piece[0] < 128 {
                var request = properties
                request["Profile"] = Self.profiles[Int(piece[0]) % Self.profiles.count]?.rawValue ?? "x"
                try line.puppet.send(Message(request, body: body), tag: 1)
            } else if let question = questions.first {
                questions.removeFirst()
                if piece[0] < 240 {
                    try line.puppet.reply(Message(properties, body: body), to: question)
                } else {
                    try line.puppet.reply(Self.refusals[Int(piece[0]) - 240], to: question)
                }
            }
        } catch {
            // The fuzzer's properties may be too long for any message: that one is not sent.
            guard case .tooLarge = error else { preconditionFailure("a message cannot be sent: \(error)") }
            return true
        }
        attempt { try line.runUntilQuiet() }
        return true
    }

    /// Runs a step of the conversation. The fuzzer's peer can read the driver's answers, whatever the fuzzer says.
    private func attempt(_ answers: () throws -> Void) {
        do { try answers() } catch { preconditionFailure("the driver says what no peer can read: \(error)") }
    }

    func end() {
        attempt { try line.cut() }
        precondition((try? store.check()) == [], "the database is damaged")
    }

    // MARK: Bytes and messages

    /// The first byte says how many lines of `name=value` follow; the rest is the body.
    private static func content(_ bytes: ArraySlice<UInt8>) -> (MessageProperties, [UInt8]) {
        var properties: MessageProperties = [:]
        var rest = bytes.dropFirst()
        for _ in 0..<Int((bytes.first ?? 0) % 16) {
            let line = rest.prefix { $0 != 0x0A }
            rest = rest.dropFirst(line.count + 1)
            let parts = line.split(
                separator: UInt8(ascii: "="),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            guard parts.count == 2 else { continue }
            let (name, value) = (
                String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self)
            )
            guard !name.utf8.contains(0), !value.utf8.contains(0) else { continue }
            properties[name] = value
        }
        return (properties, Array(rest))
    }

    /// A message as the piece of bytes by which a fuzzer says it; nil for a message that has no such form.
    package static func piece(_ message: Message, _ type: MessageType) -> [UInt8]? {
        let lines = message.properties.pairs.filter { $0.0 != "Profile" }.map { "\($0.0)=\($0.1)" }
        guard lines.count < 16, !lines.contains(where: { $0.contains("\n") }) else { return nil }
        let head: Int
        switch type {
        case .request:
            // A message that no session knows.
            guard let kind = message.kind, let index = profiles.firstIndex(of: kind) else { return nil }
            head = index
        case .response: head = 128
        case .error:
            let code = message.properties["Error-Code"].flatMap { Int($0) }
            head = 240 + (refusals.firstIndex { $0.code == code } ?? 0)
        case .acknowledgeRequest, .acknowledgeResponse: return nil
        }
        let text = lines.map { $0 + "\n" }.joined()
        return [UInt8(head), UInt8(lines.count)] + text.utf8 + message.body
    }
}
