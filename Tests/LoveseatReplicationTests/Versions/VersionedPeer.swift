import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// A database and a session with it. The test speaks for the peer.
final class VersionedPeer {
    private(set) var talk: SessionTalk
    let store: DocumentStore
    let collection: CollectionHandle
    private let scratch: Scratch

    /// The system's clock, which is later than every version of the tests.
    static let now: UInt64 = 0x18E9_F200_0000_0000

    static func pushing(_ plan: inout ActivePlan) { (plan.pushes, plan.isContinuous) = (true, true) }

    /// Pulls and pushes, and goes on.
    static func both(_ plan: inout ActivePlan) {
        pushing(&plan)
        plan.pulls = true
    }

    private init(
        _ form: ReplicationProtocol,
        _ prepare: (DocumentStore, CollectionHandle) throws -> Void,
        _ talk: (DocumentStore, CollectionHandle) throws -> SessionTalk
    ) throws {
        scratch = try Scratch()
        var options = DocumentStore.Options()
        options.system.nanoseconds = { Self.now }
        store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs", options: options)
        collection = try #require(store.collection(.default))
        try prepare(store, collection)
        self.talk = try talk(store, collection)
        try begin(form)
    }

    convenience init(
        _ form: ReplicationProtocol = .mobile4,
        active change: (inout ActivePlan) -> Void,
        asksResolver: Bool = false,
        _ prepare: (DocumentStore, CollectionHandle) throws -> Void = { _, _ in }
    ) throws {
        try self.init(form, prepare) { store, collection in
            try Self.talk(active: change, asksResolver: asksResolver, store, collection)
        }
    }

    convenience init(
        passive change: (inout PassivePlan) -> Void = { _ in },
        _ prepare: (DocumentStore, CollectionHandle) throws -> Void = { _, _ in }
    ) throws {
        try self.init(.mobile4, prepare) { store, _ in Self.talk(passive: change, store) }
    }

    private static func talk(
        active change: (inout ActivePlan) -> Void,
        asksResolver: Bool,
        _ store: DocumentStore,
        _ collection: CollectionHandle
    ) throws -> SessionTalk {
        var rules = CollectionRules()
        rules.asksResolver = asksResolver
        let replicas = DatabaseReplicas(
            store: store,
            collections: [collection],
            checkpointIDs: ["cp-x"],
            remote: try store.write { try $0.checkpointTables.remoteNumber("ws://peer/db") },
            rules: [rules],
            nowMilliseconds: { 0 }
        )
        return SessionTalk(active: change, replicas)
    }

    private static func talk(passive change: (inout PassivePlan) -> Void, _ store: DocumentStore)
        -> SessionTalk
    {
        SessionTalk(passive: change, DatabaseReplicas(store: store, nowMilliseconds: { 0 }))
    }

    private func begin(_ form: ReplicationProtocol) throws {
        try talk.begin(form)
        if talk.has("subChanges") { try talk.answer(try talk.take("subChanges")) }
    }

    /// Saves the checkpoint, and begins another session with the same peer.
    func reconnect(_ form: ReplicationProtocol = .mobile4, active change: (inout ActivePlan) -> Void) throws {
        try talk.saveCheckpoint()
        let checkpoint = talk.checkpoint
        talk = try Self.talk(active: change, asksResolver: false, store, collection)
        talk.checkpoint = checkpoint
        try begin(form)
    }

    /// Begins a session with another client.
    func reconnect(passive change: (inout PassivePlan) -> Void = { _ in }) throws {
        talk = Self.talk(passive: change, store)
        try begin(.mobile4)
    }

    func record(_ id: String = "d") throws -> DocumentRecord? {
        try store.readRows { try $0.record(id, in: collection) }
    }

    /// The state of the current revision.
    func state(_ id: String = "d") throws -> StateHistory? {
        try record(id).map { try $0.tree().versions.state(of: $0.revision) }
    }

    @discardableResult
    func save(_ body: String, id: String = "d", isDeleted: Bool = false) throws -> RevisionID? {
        try Self.save(body, id: id, isDeleted: isDeleted, store, collection)
    }

    @discardableResult
    static func save(
        _ body: String,
        id: String = "d",
        isDeleted: Bool = false,
        _ store: DocumentStore,
        _ collection: CollectionHandle
    ) throws -> RevisionID? {
        let body = try JSONText(body)
        return try store.write {
            try $0.save(id, in: collection, body: body, isDeleted: isDeleted, condition: .lastWriteWins)?
                .revision
        }
    }

    /// The peer sends a state, which was announced or proposed with its whole vector.
    func receive(
        _ state: String,
        revisions: [String] = [],
        _ body: String,
        isDeleted: Bool = false,
        sequence: Int = 1,
        over base: String? = nil
    ) throws -> (list: String, answer: String) {
        let vector = try VersionVector(state)
        let history = StateHistory(vector, revisions: revisions.compactMap { RevisionID($0) })
        let name = history.rev ?? ""
        let announced = state.isEmpty ? name : state
        let isPush = base != nil
        let list =
            isPush
            ? try talk.ask("proposeChanges", #"[["d","\#(announced)","\#(base ?? "")",9]]"#)
            : try talk.ask("changes", #"[[\#(sequence),"d","\#(announced)",\#(isDeleted ? 1 : 0),9]]"#)
        var properties: [(String, String)] = [("id", "d"), ("rev", name), ("sequence", String(sequence))]
        if isPush { properties.append(("noconflicts", "1")) }
        if isDeleted { properties.append(("deleted", "1")) }
        if let rest = history.history { properties.append(("history", rest)) }
        return (list, try talk.send(properties, body))
    }

    /// Takes the next proposal of one document: the proposed state, and the base.
    func proposal() throws -> (request: (number: UInt64, message: Message), state: String, base: String?) {
        let request = try talk.take("proposeChanges")
        let entries = try JSONElement(parsing: request.message.body)
        let entry = try #require(entries[0])
        #expect(entries[1] == nil)
        return (request, try #require(entry[1]?.string), entry[2]?.string)
    }

    /// Takes the next proposal, accepts it, and takes in the revision. Returns the properties of that.
    @discardableResult
    func acceptProposal() throws -> MessageProperties {
        try talk.answer(try talk.take("proposeChanges"), ["blobs": "true"], "[0]")
        let sent = try talk.take("rev")
        try talk.answer(sent)
        return sent.message.properties
    }
}

extension SessionTalk {
    /// Sends a revision, and returns the outcome.
    func send(_ properties: [(String, String)], _ body: String) throws -> String {
        var all: MessageProperties = [:]
        for (name, value) in properties { all[name] = value }
        return try refusal("rev", all, body)
    }
}

extension Message {
    /// The body as text.
    var bodyText: String { String(decoding: body, as: UTF8.self) }
}
