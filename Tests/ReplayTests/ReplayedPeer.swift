import Foundation
import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Recorded conversations of real peers (Tests/Fixtures/wire).
enum Recordings {
    /// The form of the protocol that the peers of a recording speak.
    static func form(of name: String) -> ReplicationProtocol {
        name == "v4-vectors" ? .mobile4 : .mobile3
    }

    static func load(_ name: String) throws -> [RecordedConversation] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let file = folder.appending(path: "Fixtures/wire/\(name).trace.jsonl")
        return try RecordedConversation.all(inTrace: try String(contentsOf: file, encoding: .utf8))
    }
}

/// A database of ours that takes one side of a recorded conversation, and a puppet that says what the real peer on the
/// other side said.
final class ReplayedPeer {
    let store: DocumentStore
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        var options = DocumentStore.Options()
        // A moment after the recording with versions.
        options.system.nanoseconds = { 1_795_231_960_000_000_000 }
        store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs", options: options)
    }

    func collection(_ name: CollectionName) throws -> CollectionHandle {
        try store.write { try $0.createCollection(name) }
    }

    /// Makes a document that a recorded `rev` carries part of the database, as if an app had saved it.
    func seed(_ revision: Message, in name: CollectionName) throws {
        let properties = revision.properties
        let id = try #require(properties["id"])
        let rev = try #require(properties["rev"])
        let body = try JSONText(revision.body.isEmpty ? Array("{}".utf8) : revision.body)
        let handle = try collection(name)
        if rev.contains("@") {
            let state = IncomingState(
                documentID: id,
                state: try StateHistory(rev: rev, history: properties["history"]),
                isDeleted: properties["deleted"] != nil,
                body: body,
                remote: nil
            )
            try store.beginVersions()
            _ = try store.write { try $0.versionTable.insert(state, in: handle) }
            return
        }
        let history = [rev] + (properties["history"] ?? "").split(separator: ",").map(String.init)
        let incoming = IncomingRecord(
            documentID: id,
            history: try history.map { try #require(RevisionID($0)) },
            isDeleted: properties["deleted"] != nil,
            body: body,
            sender: .client
        )
        _ = try store.write { try $0.insert(incoming, in: handle) }
    }

    /// The content of a recorded `rev` of the default collection. A delta is against the current revision.
    func content(of revision: Message) throws -> [UInt8] {
        guard revision.properties["deltaSrc"] != nil, let id = revision.properties["id"] else {
            return revision.body
        }
        let handle = try collection(.default)
        let base = try #require(try store.readRows { try $0.record(id, in: handle) }?.body)
        let delta = try JSONElement(parsing: revision.body).value
        return Array(try JSONDelta.apply(delta, to: JSONElement(base).value).description.utf8)
    }

    func hasRevision(_ message: Message, in name: CollectionName) throws -> Bool {
        let handle = try collection(name)
        guard let id = message.properties["id"], let rev = message.properties["rev"],
            let record = try store.readRows({ try $0.record(id, in: handle) })
        else { return false }
        return try record.tree().versions.node(named: RevisionName(rev)) != nil
    }

    func addBlob(_ content: [UInt8]) throws {
        let writer = try store.blobs.writer()
        try writer.write(content)
        _ = try writer.finish()
    }

    // MARK: The conversation

    /// A request of ours, as the puppet saw it.
    struct Heard {
        let number: UInt64
        let message: Message
    }

    /// The driver that ships, and the puppet.
    final class Line {
        var requests: [Heard] = []
        var answers: [UInt64: Result<Message, ReplyError>] = [:]
        private let line: PuppetLine

        var puppet: BLIPConnection { line.puppet }
        var failure: LoveseatError? { line.failure }
        var isClosed: Bool { line.isClosed }
        var reports: [ReplicationReport] { line.reports }
        var onFetch: (FetchNotice) -> Bool {
            get { line.onFetch }
            set { line.onFetch = newValue }
        }

        init(
            _ session: (any ReplicaSource) -> ReplicationSession,
            _ replicas: DatabaseReplicas,
            resolve: @escaping (ConflictNotice) -> LoveseatError?
        ) {
            line = PuppetLine(session, replicas, resolve: resolve)
            line.onEvent = { [unowned self] event in hear(event) }
        }

        func connect(_ negotiated: ReplicationProtocol) throws { try line.connect(negotiated) }

        /// Something was saved here.
        func localChange() throws { try line.localChange() }

        func runUntilQuiet() throws { try line.runUntilQuiet() }

        private func hear(_ event: BLIPConnection.Event) {
            switch event {
            case .request(let number, let message): requests.append(Heard(number: number, message: message))
            case .response(let tag, let message): answers[tag] = .success(message)
            case .failure(let tag, let error): answers[tag] = .failure(error)
            case .piece, .sent, .wantsBody: break
            }
        }

        /// Has the puppet ask something; `tag` names the answer.
        func ask(_ message: Message, tag: UInt64) throws {
            try puppet.send(message, tag: message.noReply ? nil : tag)
            try runUntilQuiet()
        }

        /// The tag of the last question that ``ask(_:_:_:)`` or ``tell(_:_:_:wantsReply:)`` sent.
        private(set) var lastTag: UInt64 = 1_000_000

        /// Has the puppet ask something, and returns the answer.
        func ask(_ profile: String, _ properties: MessageProperties, bytes: [UInt8]) throws
            -> Result<Message, ReplyError>
        {
            var properties = properties
            properties["Profile"] = profile
            lastTag += 1
            try ask(Message(properties, body: bytes), tag: lastTag)
            return try #require(answers[lastTag], "there is no answer to \(profile)")
        }

        func ask(_ profile: String, _ properties: MessageProperties, _ body: String) throws
            -> Result<Message, ReplyError>
        {
            try ask(profile, properties, bytes: Array(body.utf8))
        }

        /// Has the puppet say something and not wait.
        func tell(
            _ profile: String,
            _ properties: MessageProperties,
            _ body: String,
            wantsReply: Bool = false
        ) throws {
            var properties = properties
            properties["Profile"] = profile
            lastTag += 1
            try ask(Message(properties, body: Array(body.utf8), noReply: !wantsReply), tag: lastTag)
        }

        func answer(_ number: UInt64, _ entry: RecordedConversation.Entry?) throws {
            guard let entry else { return }
            if entry.type == .error {
                let properties = entry.message.properties
                let error = ReplyError(properties["Error-Domain"] ?? "", properties.int("Error-Code") ?? 0)
                try puppet.reply(error, to: number)
            } else {
                try puppet.reply(entry.message, to: number)
            }
            try runUntilQuiet()
        }
    }
}

extension Message {
    /// What names a request, whoever sends it: two peers that do the same send the same names.
    var name: String {
        let parts = ["Profile", "collection", "id", "rev", "digest"].map { properties[$0] ?? "" }
        let isCheckpoint = profile == "setCheckpoint"
        return (isCheckpoint ? [profile, parts[1]] : parts).joined(separator: "|")
    }

    /// The properties as a dictionary, without those that name our database or our place in it.
    var comparable: [String: String] {
        var result = Dictionary(properties.pairs.map { ($0.name, $0.value) }) { $1 }
        for name in ["client", "sequence", "loveseat", "uuid"] {
            result[name] = result[name].map { _ in "…" }
        }
        result["loveseat"] = nil
        result["loveseat_active_only"] = nil
        // Real ones ask every peer to leave out tombstones, and lose deletions by it (replication.md §6).
        result["activeOnly"] = nil
        // They ask for lists of 200, of which one at a time fits what they ask for.
        result["batch"] = nil
        // The gateway compares this one with the word (replication.md §6); everybody takes both forms of the other.
        for name in ["sendReplacementRevs", "noconflicts"] where result[name] == "1" { result[name] = "true" }
        return result
    }
}
