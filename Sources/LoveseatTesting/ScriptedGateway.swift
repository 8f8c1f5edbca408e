package import LoveseatBLIP
package import LoveseatBLIPReplication
package import LoveseatCore
package import LoveseatModel
import Synchronization

/// A passive peer that says what a test has it say, in the words of a gateway (replication.md Parts A and B).
///
/// It keeps no documents: it announces a feed, sends the revisions that are asked for, and takes or refuses those that
/// are pushed. Everything it hears is kept for the test to look at.
package final class ScriptedGateway: BLIPEndpoint {
    /// A change that it announces.
    package struct Change: Sendable {
        package var sequence: JSONValue
        package var id: String
        package var revision: String
        /// 1 deleted, 2 access revoked, 4 removed from the channel.
        package var flags = 0
        package var body = "{}"
        /// The properties of the `rev` message besides the usual. `whole`: the body to send when a delta is refused;
        /// `norev`: the status with which the revision is not sent after all.
        package var properties: [String: String] = [:]

        package init(
            _ sequence: JSONValue,
            _ id: String,
            _ revision: String,
            flags: Int = 0,
            body: String = "{}",
            properties: [String: String] = [:]
        ) {
            (self.sequence, self.id, self.revision) = (sequence, id, revision)
            (self.flags, self.body, self.properties) = (flags, body, properties)
        }
    }

    /// The gateway's behaviour, which a test sets, and the messages that it has heard.
    package struct Script: Sendable {
        package var feed: [Change] = []
        /// The refusals of `rev` messages of a document, in turn; later messages are accepted.
        package var refusals: [String: [ReplyError]] = [:]
        /// The answers to proposals of a document, as JSON; 0 for all others.
        package var verdicts: [String: JSONValue] = [:]
        package var answers: MessageProperties = ["blobs": "true", "maxHistory": "50"]
        package var blobs: [String: [UInt8]] = [:]
        /// The answer to a request for a blob that is not there.
        package var blobError = ReplyError("HTTP", 404)
        package var checkpoints: [String: (revision: Int, body: [UInt8])] = [:]
        /// Accepts connections and says nothing.
        package var isSilent = false
        /// Revisions that it sends without having announced them.
        package var volunteers: [Change] = []
        /// Whether it announces its feed only when it has answered a proposal.
        package var announcesLate = false
        /// How it says that there is nothing more.
        package var caughtUp = "[]"
        /// The error with which it answers a request for a checkpoint; nil to answer with a checkpoint.
        package var checkpointError: ReplyError?
        /// How many saved checkpoints it refuses, because somebody else saved one.
        package var checkpointConflicts = 0
        /// The messages that it has heard so far.
        package fileprivate(set) var heard: [Message] = []
        /// How its changes were answered: nil for "not wanted".
        package fileprivate(set) var wanted: [String: [String]?] = [:]
        /// How its revisions were answered; nil for well.
        package fileprivate(set) var answered: [(id: String, error: ReplyError?)] = []
    }

    package let remoteName: String
    private let negotiated: ReplicationProtocol
    private let script = Mutex(Script())

    package init(_ name: String = "gateway", negotiated: ReplicationProtocol = .mobile3) {
        remoteName = "script://\(name)"
        self.negotiated = negotiated
    }

    /// Changes what it does, or looks at what it heard.
    package func edit<T: Sendable>(_ body: (inout sending Script) -> sending T) -> T {
        script.withLock { body(&$0) }
    }

    /// The messages of a kind that it has heard.
    package func received(_ profile: String) -> [Message] {
        edit { $0.heard.filter { $0.profile == profile } }
    }

    package func validate() throws(LoveseatError) {}

    package func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
        let (near, far) = LoopbackChannel.pair()
        Task.detached { [self] in await Conversation(self, far).run() }
        return PeerConnection(channel: near, negotiated: negotiated)
    }

    /// One connection.
    private final class Conversation {
        private let gateway: ScriptedGateway
        private let channel: LoopbackChannel
        private let connection = BLIPConnection()
        private var sent: [BLIPConnection.Tag: Change] = [:]
        private var announced: [BLIPConnection.Tag: [Change]] = [:]
        private var nextTag: BLIPConnection.Tag = 0
        /// The subscription whose changes are held back.
        private var waiting: Message?

        init(_ gateway: ScriptedGateway, _ channel: LoopbackChannel) {
            self.gateway = gateway
            self.channel = channel
        }

        func run() async {
            do {
                while let frames = try await channel.receive() {
                    for frame in frames { try connection.receive(frame) }
                    while true {
                        let events = connection.drainEvents()
                        if events.isEmpty { break }
                        for event in events { try handle(event) }
                    }
                    while let frame = try connection.nextFrame() { try await channel.send([frame]) }
                }
            } catch let error as BLIPError {
                preconditionFailure("the replicator and the script cannot understand each other: \(error)")
            } catch {
                // The connection broke, which the replicator has noticed.
            }
            await channel.close(code: 1000, reason: "")
        }

        private func handle(_ event: BLIPConnection.Event) throws {
            switch event {
            case .request(let number, let message):
                gateway.edit { $0.heard.append(message) }
                if gateway.edit({ $0.isSilent }) { return }
                try answer(message, number)
            case .response(let tag, let message):
                if let changes = announced.removeValue(forKey: tag) { try send(changes, message) }
                if let change = sent.removeValue(forKey: tag) {
                    gateway.edit { $0.answered.append((change.id, nil)) }
                }
            case .failure(let tag, let error):
                // The peer may refuse a list of changes, of which nothing is sent then.
                guard let change = sent.removeValue(forKey: tag) else { return }
                gateway.edit { $0.answered.append((change.id, error)) }
                if error.code != 422 { return }
                // The whole body, then (replication.md §10.3).
                try send(change, isWhole: true)
            case .piece, .sent, .wantsBody: break
            }
        }

        private func answer(_ message: Message, _ number: UInt64) throws {
            switch message.profile {
            case "getCheckpoint":
                let id = message.properties["client"] ?? ""
                if let error = gateway.edit({ $0.checkpointError }) {
                    return try connection.reply(error, to: number)
                }
                guard let found = gateway.edit({ $0.checkpoints[id] }) else {
                    return try connection.reply(ReplyError("HTTP", 404), to: number)
                }
                try connection.reply(Message(["rev": "0-\(found.revision)"], body: found.body), to: number)
            case "setCheckpoint":
                let id = message.properties["client"] ?? ""
                let isRefused = gateway.edit { script in
                    defer { script.checkpointConflicts = max(0, script.checkpointConflicts - 1) }
                    return script.checkpointConflicts > 0
                }
                if isRefused {
                    gateway.edit { $0.checkpoints[id] = (7, Array("{}".utf8)) }
                    return try connection.reply(
                        ReplyError("HTTP", 409, "Document update conflict"),
                        to: number
                    )
                }
                let revision = gateway.edit { script in
                    let revision = (script.checkpoints[id]?.revision ?? 0) + 1
                    script.checkpoints[id] = (revision, message.body)
                    return revision
                }
                try connection.reply(Message(["rev": "0-\(revision)"]), to: number)
            case "subChanges":
                try connection.reply(Message(), to: number)
                if gateway.edit({ $0.announcesLate }) { waiting = message } else { try announce(message) }
            case "proposeChanges":
                try answerProposals(message, number)
                if let message = waiting {
                    waiting = nil
                    try announce(message)
                }
            case "rev":
                let id = message.properties["id"] ?? ""
                let refusal = gateway.edit { script -> ReplyError? in
                    guard script.refusals[id]?.isEmpty == false else { return nil }
                    return script.refusals[id]?.removeFirst()
                }
                if let refusal {
                    try connection.reply(refusal, to: number)
                } else {
                    try connection.reply(Message(), to: number)
                }
            case "getAttachment":
                guard let bytes = gateway.edit({ $0.blobs[message.properties["digest"] ?? ""] }) else {
                    return try connection.reply(gateway.edit { $0.blobError }, to: number)
                }
                try connection.reply(Message(body: bytes), to: number)
            default:
                if !message.noReply { try connection.reply(Message(), to: number) }
            }
        }

        private func announce(_ subscription: Message) throws {
            let since = subscription.properties["since"]
            let changes = gateway.edit { script in
                script.feed.drop { change in since.map { change.sequence.description != $0 } ?? false }
            }
            // The one named by `since` is the last that the peer has.
            var new = Array(since == nil ? changes : changes.dropFirst())
            if let listed = try? JSONElement(parsing: subscription.body)["docIDs"] {
                let ids = listed.items.compactMap(\.string)
                new.removeAll { !ids.contains($0.id) }
            }
            let entries: [JSONValue] = new.map { change in
                var entry: [JSONValue] = [change.sequence, .string(change.id), .string(change.revision)]
                if change.flags != 0 { entry.append(JSONValue(change.flags)) }
                return .array(entry)
            }
            if !new.isEmpty {
                nextTag += 1
                announced[nextTag] = new
                let body = JSONText(canonical: .array(entries)).bytes
                try connection.send(Message(["Profile": "changes"], body: body), tag: nextTag)
            }
            for change in gateway.edit({ $0.volunteers }) { try send(change, isWhole: false) }
            let text = gateway.edit { $0.caughtUp }
            let caughtUp = Message(["Profile": "changes"], body: Array(text.utf8), noReply: true)
            try connection.send(caughtUp, tag: nil)
        }

        /// Reads a list that the replicator sent. Anything else is the replicator's fault, and ends the test.
        private static func list(_ body: [UInt8]) -> [JSONElement] {
            guard let list = try? JSONElement(parsing: body), list.kind == .array else {
                preconditionFailure("the replicator sent no list: \(String(decoding: body, as: UTF8.self))")
            }
            return Array(list.items)
        }

        private func answerProposals(_ message: Message, _ number: UInt64) throws {
            let entries = Self.list(message.body)
            let verdicts = gateway.edit { script in
                entries.map { entry -> JSONValue in
                    let verdict = script.verdicts[entry[0]?.string ?? ""] ?? 0
                    // A revision on top of the current one is accepted.
                    guard let current = verdict["rev"]?.string, entry[2]?.string == current else {
                        return verdict
                    }
                    return 0
                }
            }
            let properties = gateway.edit { $0.answers }
            try connection.reply(
                Message(properties, body: JSONText(canonical: .array(verdicts)).bytes),
                to: number
            )
        }

        private func send(_ changes: [Change], _ answer: Message) throws {
            // An answer may be empty: the peer wants nothing.
            let items = answer.body.isEmpty ? [] : Self.list(answer.body)
            for (index, change) in changes.enumerated() {
                let isWanted = items.indices.contains(index) && items[index].kind == .array
                let known = isWanted ? items[index].items.compactMap(\.string) : nil
                gateway.edit { $0.wanted[change.id] = .some(known) }
                if isWanted { try send(change, isWhole: false) }
            }
        }

        private func send(_ change: Change, isWhole: Bool) throws {
            var properties: MessageProperties = ["Profile": "rev", "id": change.id, "rev": change.revision]
            properties["sequence"] = change.sequence.description
            if change.flags & 1 != 0 { properties["deleted"] = "1" }
            if let status = change.properties["norev"] {
                properties["Profile"] = "norev"
                properties["error"] = status
                return try connection.send(Message(properties, noReply: true), tag: nil)
            }
            for (name, value) in change.properties.sorted(by: { $0.key < $1.key }) where name != "whole" {
                if isWhole, name == "deltaSrc" { continue }
                properties[name] = value
            }
            let body = isWhole ? change.properties["whole"] ?? change.body : change.body
            nextTag += 1
            sent[nextTag] = change
            try connection.send(Message(properties, body: Array(body.utf8)), tag: nextTag)
        }
    }
}
