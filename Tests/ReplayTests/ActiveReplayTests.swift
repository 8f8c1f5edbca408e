import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Our active peer talks to what a real passive peer answered, and must say what the real active peer did.
struct ActiveReplayTests {
    @Test(arguments: [
        "push-50", "pull-50", "both-update-delete", "blob-60k", "conflict-resolve", "collections", "mobile2",
        // 69 of version-vectors.md §18
        "v4-vectors",
    ])
    func `the active side says to a recorded passive peer what the recorded active peer said`(_ name: String)
        throws
    {
        // One database for each that took part, known by its checkpoint's name.
        var databases: [String: Side] = [:]
        for (index, conversation) in try Recordings.load(name).enumerated() {
            let first = try #require(conversation.requests(ofActive: true).first)
            let client = first.properties["client"] ?? name
            let side = try databases[client] ?? Side(Recordings.form(of: name))
            databases[client] = side
            try side.replay(conversation, "\(name), connection \(index + 1)")
        }
    }

    @Test func `a collection that the peer lacks ends with an error that names it`() throws {
        let conversation = try #require(try Recordings.load("unknown-collection").first)
        let side = try Side(.mobile3)
        let line = try side.line(conversation)
        try line.connect(.mobile3)
        try line.answer(1, conversation.answer(toActive: true, number: 1))
        #expect(line.failure?.code == .httpNotFound)
        #expect(line.failure?.message.contains("travel.nowhere") == true)
    }

    /// One active database of a recording, and what its peer keeps for it.
    private final class Side {
        let ours: ReplayedPeer
        private var checkpoints: [String: (revision: Int, body: [UInt8])] = [:]
        private var known: Set<String> = []

        private let form: ReplicationProtocol

        init(_ form: ReplicationProtocol) throws {
            self.form = form
            ours = try ReplayedPeer()
        }

        private func names(_ conversation: RecordedConversation) -> [CollectionName] {
            guard let message = conversation.requests(ofActive: true, "getCollections").first,
                let paths = try? JSONElement(parsing: message.body)["collections"]
            else { return [.default] }
            return paths.items.compactMap { $0.string.flatMap { CollectionName(path: $0) } }
        }

        func line(_ conversation: RecordedConversation) throws -> ReplayedPeer.Line {
            let names = names(conversation)
            let handles = try names.map { try ours.collection($0) }
            let bindings = zip(names, handles).map { name, handle in
                var binding = ActivePlan.Binding(name: name, checkpointID: "cp-\(name)")
                binding.isEmpty = ours.store.lastSequence(handle) == 0
                return binding
            }
            var plan = ActivePlan(
                collections: bindings,
                pushes: !conversation.requests(ofActive: true, "proposeChanges").isEmpty,
                pulls: !conversation.requests(ofActive: true, "subChanges").isEmpty,
                isContinuous: false
            )
            plan.usesDeltas = form == .mobile4
            let (sessionPlan, store) = (plan, ours.store)
            let remote = try store.write { try $0.checkpointTables.remoteNumber("recorded") }
            return ReplayedPeer.Line(
                { ReplicationSession(active: sessionPlan, replicas: $0) },
                DatabaseReplicas(
                    store: store,
                    collections: handles,
                    checkpointIDs: bindings.map(\.checkpointID),
                    remote: remote,
                    nowMilliseconds: { 0 }
                ),
                resolve: { notice in
                    let resolution = ConflictResolution(
                        store: store,
                        collection: handles[notice.collection],
                        documentID: notice.documentID,
                        peer: notice.peer
                    )
                    do { try resolution.runNow(DefaultConflictResolver.resolve) } catch {
                        return LoveseatError(storage: error)
                    }
                    return nil
                }
            )
        }

        /// What the real active peer offers now and nobody sent it was saved by an app before.
        private func seed(_ conversation: RecordedConversation) throws {
            let names = names(conversation)
            for offer in conversation.requests(ofActive: true, "proposeChanges") {
                for item in try JSONElement(parsing: offer.body).items {
                    let (id, rev) = (item[0]?.string ?? "", item[1]?.string ?? "")
                    // A state is offered with its whole vector.
                    let name = rev.contains("@") ? try StateHistory(rev).rev : rev
                    let sent = conversation.requests(ofActive: true, "rev").first {
                        $0.properties["id"] == id && $0.properties["rev"] == name
                    }
                    var message = sent ?? Message(["id": id, "rev": rev])
                    if form == .mobile4 {
                        message.body = try ours.content(of: message)
                    } else if sent == nil || message.properties["deltaSrc"] != nil {
                        message.properties["history"] = item[2]?.string.flatMap { $0.isEmpty ? nil : $0 }
                        message.body = Array("{\"offered\":true}".utf8)
                    }
                    guard known.insert("\(id) \(rev)").inserted else { continue }
                    try ours.seed(message, in: names[offer.properties.int("collection") ?? 0])
                }
            }
            for entry in conversation.entries where !entry.isActive && entry.type == .request {
                guard let request = Optional(entry.message), request.profile == "getAttachment",
                    let answer = conversation.answer(toActive: false, number: entry.number)
                else { continue }
                try ours.addBlob(answer.message.body)
            }
            for message in conversation.requests(ofActive: false, "rev") {
                known.insert("\(message.properties["id"] ?? "") \(message.properties["rev"] ?? "")")
            }
        }

        func replay(_ conversation: RecordedConversation, _ place: String) throws {
            try seed(conversation)
            let line = try line(conversation)
            try line.connect(form)
            var seen = 0
            var nextTag: UInt64 = 1
            while seen < line.requests.count {
                let request = line.requests[seen]
                seen += 1
                try answer(request, line, conversation, place)
                if request.message.profile == "subChanges" {
                    try announce(
                        line,
                        conversation,
                        request.message.properties["collection"],
                        &nextTag,
                        place
                    )
                }
            }
            #expect(line.failure == nil, "\(place)")
            #expect(line.isClosed, "\(place): it ends by itself")
            try expectEverythingSaid(line, conversation, place)
            for message in conversation.requests(ofActive: false, "rev") {
                let index = message.properties.int("collection") ?? 0
                #expect(try ours.hasRevision(message, in: names(conversation)[index]), "\(place)")
            }
        }

        /// The real passive peer's changes, and the revisions that ours asks for.
        private func announce(
            _ line: ReplayedPeer.Line,
            _ conversation: RecordedConversation,
            _ collection: String?,
            _ nextTag: inout UInt64,
            _ place: String
        ) throws {
            for entry in conversation.entries where !entry.isActive && entry.type == .request {
                let message = entry.message
                guard ["changes", "rev"].contains(message.profile),
                    message.properties["collection"] == collection
                else { continue }
                try line.ask(message, tag: nextTag)
                if message.profile == "changes", !message.noReply {
                    let answer = try #require(try line.answers[nextTag]?.get())
                    let recorded = try #require(conversation.answer(toActive: false, number: entry.number))
                        .message
                    var expected = recorded.comparable
                    if form != .mobile4 { expected["deltas"] = nil }
                    // Nobody reads it in an answer.
                    expected["sendReplacementRevs"] = nil
                    #expect(answer.comparable == expected, "\(place)")
                    #expect(
                        try JSONText(answer.body).canonical == JSONText(recorded.body).canonical,
                        "\(place)"
                    )
                }
                nextTag += 1
            }
        }

        private func answer(
            _ request: ReplayedPeer.Heard,
            _ line: ReplayedPeer.Line,
            _ conversation: RecordedConversation,
            _ place: String
        ) throws {
            let message = request.message
            switch message.profile {
            case "getCollections" where form == .mobile4:
                let recorded = try #require(conversation.entry(ofActive: true) { $0.name == message.name })
                try compare(message, recorded.message, place)
                let kept = checkpoints["cp-\(CollectionName.default)"]
                let body = kept.map { kept in
                    let text = String(decoding: kept.body, as: UTF8.self)
                    return #"[{"rev":"\#(kept.revision)-cc",\#(text.dropFirst())]"#
                }
                try line.puppet.reply(Message([:], body: Array((body ?? "[{}]").utf8)), to: request.number)
            case "getCheckpoint":
                guard let kept = checkpoints[message.properties["client"] ?? ""] else {
                    try line.puppet.reply(ReplyError("HTTP", 404), to: request.number)
                    break
                }
                try line.puppet.reply(
                    Message(["rev": "\(kept.revision)-cc"], body: kept.body),
                    to: request.number
                )
            case "setCheckpoint":
                let client = message.properties["client"] ?? ""
                let revision = (checkpoints[client]?.revision ?? 0)
                #expect(message.properties["rev"] == (revision == 0 ? "" : "\(revision)-cc"), "\(place)")
                checkpoints[client] = (revision + 1, message.body)
                try line.puppet.reply(Message(["rev": "\(revision + 1)-cc"]), to: request.number)
            default:
                let recorded = try #require(
                    conversation.entry(ofActive: true) {
                        $0.name == message.name && ($0.body == Array("[]".utf8)) == false
                    },
                    "\(place): the real one did not say \(message)"
                )
                try compare(message, recorded.message, place)
                return try line.answer(
                    request.number,
                    conversation.answer(toActive: true, number: recorded.number)
                )
            }
            try line.runUntilQuiet()
        }

        private func compare(_ mine: Message, _ theirs: Message, _ place: String) throws {
            // Ours sends whole bodies where the form is an older one.
            if theirs.properties["deltaSrc"] != nil, form != .mobile4 { return }
            #expect(mine.comparable == theirs.comparable, "\(place): \(mine.profile)")
            #expect(mine.isUrgent == theirs.isUrgent, "\(place): \(mine.profile)")
            #expect(mine.noReply == theirs.noReply, "\(place): \(mine.profile)")
            switch mine.profile {
            case "rev":
                #expect(try JSONText(mine.body).canonical == JSONText(theirs.body).canonical, "\(place)")
            case "proposeChanges": #expect(try Self.offers(mine) == Self.offers(theirs), "\(place)")
            case "getCollections":
                let (ours, real) = (
                    try JSONElement(parsing: mine.body), try JSONElement(parsing: theirs.body)
                )
                #expect(ours["collections"]?.value == real["collections"]?.value, "\(place)")
                #expect(ours["checkpoint_ids"]?.count == real["checkpoint_ids"]?.count, "\(place)")
            default: #expect(mine.body == theirs.body, "\(place): \(mine.profile)")
            }
        }

        /// ID, revision and the peer's revision of each offer; sizes differ by what bodies are stored as.
        private static func offers(_ message: Message) throws -> Set<String> {
            Set(
                try JSONElement(parsing: message.body).items.map { item in
                    "\(item[0]?.string ?? "") \(item[1]?.string ?? "") \(item[2]?.string ?? "")"
                }
            )
        }

        /// Beside what the real one says without need: empty offers, and checkpoints on the way.
        private func expectEverythingSaid(
            _ line: ReplayedPeer.Line,
            _ conversation: RecordedConversation,
            _ place: String
        ) throws {
            let said = Set(line.requests.map(\.message.name))
            for message in conversation.requests(ofActive: true) where message.body != Array("[]".utf8) {
                #expect(said.contains(message.name), "\(place): \(message.profile) is missing")
            }
            for collection in names(conversation).indices {
                let key =
                    conversation.requests(ofActive: true, "getCollections").isEmpty ? nil : String(collection)
                let last = { (messages: [Message]) in
                    try messages.last { $0.profile == "setCheckpoint" && $0.properties["collection"] == key }
                        .map {
                            try JSONElement(parsing: $0.body)
                        }
                }
                // Local sequences are each database's own.
                let (mine, theirs) = (
                    try last(line.requests.map(\.message)), try last(conversation.requests(ofActive: true))
                )
                #expect(mine?["remote"]?.value == theirs?["remote"]?.value, "\(place): how far the pull is")
                if theirs?["local"] != nil { #expect(mine?["local"] != nil, "\(place): how far the push is") }
            }
        }
    }
}
