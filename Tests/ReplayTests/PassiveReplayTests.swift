import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Our passive peer is told what a real active peer said, and must say what the real passive peer did.
struct PassiveReplayTests {
    @Test(arguments: [
        "push-50", "pull-50", "both-update-delete", "blob-60k", "conflict-resolve", "collections", "mobile2",
        "docids",
        "unknown-collection",
        // 69 of version-vectors.md §18
        "v4-vectors",
    ])
    func `the passive side answers a recorded active peer as the recorded passive peer did`(_ name: String)
        throws
    {
        let conversations = try Recordings.load(name)
        let ours = try ReplayedPeer()
        // What the real passive peer sends and nobody sent it before was in its database.
        var known: Set<String> = []
        for conversation in conversations {
            for entry in conversation.entries where entry.type == .request && entry.message.profile == "rev" {
                if !entry.isActive, known.insert(entry.message.name).inserted {
                    try Self.seedBefore(entry.message, ours)
                }
                if entry.isActive { known.insert(entry.message.name) }
            }
        }
        for conversation in conversations { try Self.replay(conversation, ours, name) }
        let takesDeltas = Recordings.form(of: name) == .mobile4
        // What the real active peer pushed successfully is here.
        for conversation in conversations {
            let names = Self.collections(of: conversation)
            for entry in conversation.entries where entry.isActive && entry.message.profile == "rev" {
                if entry.message.properties["deltaSrc"] != nil, !takesDeltas { continue }
                guard conversation.answer(toActive: true, number: entry.number)?.type == .response else {
                    continue
                }
                let index = entry.message.properties.int("collection") ?? 0
                #expect(try ours.hasRevision(entry.message, in: names[index]))
            }
        }
    }

    /// The recorded passive database of docids has documents before the ones asked for, and so other sequences.
    private static func seedBefore(_ message: Message, _ ours: ReplayedPeer) throws {
        let sequence = message.properties.int("sequence") ?? 0
        let handle = try ours.collection(.default)
        while try ours.store.read({ try $0.lastSequence(handle) }) + 1 < UInt64(sequence) {
            let filler = try ours.store.read { try $0.lastSequence(handle) }
            _ = try ours.store.write {
                try $0.save(
                    "filler\(filler)",
                    in: handle,
                    body: .emptyObject,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
        }
        try ours.seed(message, in: .default)
    }

    private static func collections(of conversation: RecordedConversation) -> [CollectionName] {
        guard let message = conversation.requests(ofActive: true, "getCollections").first,
            let paths = try? JSONElement(parsing: message.body)["collections"]
        else { return [.default] }
        return paths.items.compactMap { $0.string.flatMap { CollectionName(path: $0) } }
    }

    private static func replay(_ conversation: RecordedConversation, _ ours: ReplayedPeer, _ name: String)
        throws
    {
        let names = collections(of: conversation)
        // The passive peer of unknown-collection has the default collection only.
        let served = name == "unknown-collection" ? [.default] : names
        for name in served { _ = try ours.collection(name) }
        let form = Recordings.form(of: name)
        var plan = PassivePlan(collections: served)
        plan.usesDeltas = form == .mobile4
        let line = ReplayedPeer.Line(
            { ReplicationSession(passive: plan, replicas: $0) },
            DatabaseReplicas(store: ours.store, nowMilliseconds: { 0 }),
            resolve: { _ in nil }
        )
        try line.connect(form)
        var seen = 0
        for entry in conversation.entries where entry.isActive && entry.type == .request {
            try line.ask(entry.message, tag: entry.number)
            try answerRequests(line, &seen, conversation)
        }
        #expect(line.failure == nil)
        #expect(seen == conversation.requests(ofActive: false).count, "it asks as often as the real one")
        for entry in conversation.entries
        where entry.isActive && entry.type == .request && !entry.message.noReply {
            try compare(
                line.answers[entry.number],
                conversation.answer(toActive: true, number: entry.number),
                entry,
                takesDeltas: plan.usesDeltas
            )
        }
    }

    /// Answers what ours asks as the real active peer answered the same question.
    private static func answerRequests(
        _ line: ReplayedPeer.Line,
        _ seen: inout Int,
        _ conversation: RecordedConversation
    ) throws {
        while seen < line.requests.count {
            let request = line.requests[seen]
            seen += 1
            let isEmpty = request.message.profile == "changes" && request.message.body == Array("[]".utf8)
            let recorded = try #require(
                conversation.entry(ofActive: false) {
                    $0.name == request.message.name && ($0.body == Array("[]".utf8)) == isEmpty
                },
                "the real one did not say \(request.message)"
            )
            #expect(request.message.comparable == recorded.message.comparable)
            #expect(request.message.isUrgent == recorded.message.isUrgent)
            #expect(request.message.noReply == recorded.message.noReply)
            if request.message.profile == "rev" {
                #expect(
                    try JSONText(request.message.body).canonical == JSONText(recorded.message.body).canonical
                )
            } else if request.message.profile == "changes" {
                let (mine, theirs) = (try changes(request.message), try changes(recorded.message))
                #expect(Set(mine) == Set(theirs))
            }
            if !request.message.noReply {
                try line.answer(request.number, conversation.answer(toActive: false, number: recorded.number))
            }
        }
    }

    /// ID, revision and flags of each announced change. Sizes differ by what bodies are stored as.
    private static func changes(_ message: Message) throws -> [String] {
        try JSONElement(parsing: message.body).items.map { item in
            "\(item[1]?.string ?? "") \(item[2]?.string ?? "") \(item[3]?.int ?? 0)"
        }
    }

    /// The JSON of an answer, without the revision of a checkpoint in the words of a gateway.
    private static func content(of answer: Message) throws -> JSONValue {
        let value = try JSONElement(parsing: answer.body).value
        guard let item = value[0], item["_rev"] != nil, item["rev"] != nil else { return value }
        var checkpoint = item
        checkpoint["_rev"] = nil
        return [checkpoint]
    }

    private static func compare(
        _ answer: Result<Message, ReplyError>?,
        _ recorded: RecordedConversation.Entry?,
        _ request: RecordedConversation.Entry,
        takesDeltas: Bool
    ) throws {
        let answer = try #require(answer, "no answer to \(request.message)")
        let recorded = try #require(recorded)
        if request.message.properties["deltaSrc"] != nil, !takesDeltas {
            // The real one had said that it takes deltas; ours asks for the whole body (replication.md §10.3).
            guard case .failure(let error) = answer else { throw ReplyError("test", 0, "a delta was taken") }
            #expect(error.code == 422)
            return
        }
        switch answer {
        case .failure(let error):
            #expect(recorded.type == .error, "\(request.message) gets \(error)")
            #expect(recorded.message.properties["Error-Domain"] == error.domain)
            #expect(recorded.message.properties.int("Error-Code") == error.code)
        case .success(let message):
            #expect(recorded.type == .response)
            var expected = recorded.message.comparable
            if !takesDeltas { expected["deltas"] = nil }
            // Nobody reads it in an answer.
            expected["sendReplacementRevs"] = nil
            #expect(message.comparable == expected, "\(request.message)")
            guard !recorded.message.body.isEmpty else {
                #expect(message.body.isEmpty)
                return
            }
            if request.message.profile == "getAttachment" {
                #expect(message.body == recorded.message.body)
            } else {
                // A checkpoint's time is the active peer's own, which ours keeps as it came.
                #expect(
                    try content(of: message) == content(of: recorded.message),
                    "\(request.message.profile)"
                )
            }
        }
    }
}
