import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// The driver that ships, with a database in memory, on a virtual clock. The test speaks for the peer.
final class Conversation {
    let store: DocumentStore
    let collection: CollectionHandle
    let line: PuppetLine
    /// What the driver asked and nobody took yet.
    private(set) var requests: [(number: UInt64, message: Message)] = []
    private(set) var answers: [UInt64: Result<Message, ReplyError>] = [:]
    var reports: [ReplicationReport] { line.reports }
    private var lastTag: UInt64 = 0
    private let scratch: Scratch

    /// The active side, which asks for checkpoint `cp-x`. `wrap`: what it sees its database through.
    init(
        active change: (inout ActivePlan) -> Void,
        documents: [String] = [],
        wrap: (any ReplicaSource) -> any ReplicaSource = { $0 }
    ) throws {
        var plan = ActivePlan(
            collections: [.init(name: .default, checkpointID: "cp-x")],
            pushes: false,
            pulls: false,
            isContinuous: false
        )
        change(&plan)
        (scratch, store, collection) = try Self.database(documents)
        let remote = try store.write { try $0.checkpointTables.remoteNumber("puppet") }
        let replicas = DatabaseReplicas(
            store: store,
            collections: [collection],
            checkpointIDs: ["cp-x"],
            remote: remote,
            nowMilliseconds: { 0 }
        )
        line = PuppetLine({ ReplicationSession(active: plan, replicas: $0) }, wrap(replicas))
        listen()
    }

    /// The passive side. `wrap`: what it sees its database through.
    init(
        passive documents: [String],
        wrap: (any ReplicaSource) -> any ReplicaSource = { $0 }
    ) throws {
        (scratch, store, collection) = try Self.database(documents)
        line = PuppetLine(
            { ReplicationSession(passive: PassivePlan(collections: [.default]), replicas: $0) },
            wrap(DatabaseReplicas(store: store, nowMilliseconds: { 0 }))
        )
        listen()
    }

    static func database(_ documents: [String]) throws -> (Scratch, DocumentStore, CollectionHandle) {
        let scratch = try Scratch()
        let store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs")
        let collection = try #require(store.collection(.default))
        for id in documents { try store.save(id, in: collection) }
        return (scratch, store, collection)
    }

    private func listen() {
        line.onEvent = { [unowned self] event in
            switch event {
            case .request(let number, let message): requests.append((number, message))
            case .response(let tag, let message): answers[tag] = .success(message)
            case .failure(let tag, let error): answers[tag] = .failure(error)
            case .piece, .sent, .wantsBody: break
            }
        }
    }

    // MARK: The peer

    /// Takes the next request of a kind.
    func take(_ profile: String) throws -> (number: UInt64, message: Message) {
        let index = requests.firstIndex { $0.message.properties["Profile"] == profile }
        return requests.remove(at: try #require(index, "there is no \(profile)"))
    }

    func has(_ profile: String) -> Bool { requests.contains { $0.message.properties["Profile"] == profile } }

    func answer(
        _ request: (number: UInt64, message: Message),
        _ properties: MessageProperties = [:],
        _ body: String = ""
    )
        throws
    {
        try line.puppet.reply(Message(properties, body: Array(body.utf8)), to: request.number)
        try line.runUntilQuiet()
    }

    func refuse(_ request: (number: UInt64, message: Message), _ code: Int) throws {
        try line.puppet.reply(ReplyError("HTTP", code, "no"), to: request.number)
        try line.runUntilQuiet()
    }

    /// Says something, and returns the answer, if one came.
    @discardableResult
    func say(_ profile: String, _ properties: MessageProperties = [:], _ body: String = "") throws
        -> Result<Message, ReplyError>?
    {
        var properties = properties
        properties["Profile"] = profile
        lastTag += 1
        try line.puppet.send(Message(properties, body: Array(body.utf8)), tag: lastTag)
        try line.runUntilQuiet()
        return answers[lastTag]
    }

    /// The connection begins, and the peer has no checkpoint.
    func begin() throws {
        try line.connect(.mobile3)
        try refuse(try take("getCheckpoint"), 404)
    }

    /// Saves every checkpoint that the driver asks the peer to keep, and returns the last.
    @discardableResult
    func keepCheckpoints() throws -> JSONElement? {
        var last: JSONElement?
        while has("setCheckpoint") {
            let save = try take("setCheckpoint")
            last = try JSONElement(parsing: save.message.body)
            try answer(save, ["rev": "0-1"])
        }
        return last
    }

    // MARK: The database

    func record(_ id: String) throws -> DocumentRecord? {
        try store.readRows { try $0.record(id, in: collection) }
    }

    func checkpoint() throws -> JSONText? { try store.read { try $0.localCheckpoint("cp-x") } }

    /// The errors of documents that were reported.
    var documentErrors: [String: LoveseatError] {
        var errors: [String: LoveseatError] = [:]
        for case .document(let event) in reports { errors[event.documentID] = event.error }
        return errors
    }
}

extension DocumentStore {
    @discardableResult
    func save(_ id: String, in collection: CollectionHandle) throws -> RevisionID? {
        try write {
            try $0.save(
                id,
                in: collection,
                body: JSONText(canonical: ["a": 1]),
                isDeleted: false,
                condition: .lastWriteWins
            )?.revision
        }
    }
}
