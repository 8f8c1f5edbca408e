import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Our side against what real Sync Gateways answered (Tests/Fixtures/wire/gateway-*).
struct GatewayReplayTests {
    private let ours: ReplayedPeer

    init() throws { ours = try ReplayedPeer() }

    private func line(_ names: [CollectionName], _ change: (inout ActivePlan) -> Void = { _ in }) throws
        -> ReplayedPeer.Line
    {
        let handles = try names.map { try ours.collection($0) }
        let bindings = names.map { ActivePlan.Binding(name: $0, checkpointID: "cp-\($0)") }
        var plan = ActivePlan(collections: bindings, pushes: false, pulls: true, isContinuous: false)
        change(&plan)
        let store = ours.store
        let remote = try store.write { try $0.checkpointTables.remoteNumber("recorded") }
        return ReplayedPeer.Line(
            { ReplicationSession(active: plan, replicas: $0) },
            DatabaseReplicas(
                store: store,
                collections: handles,
                checkpointIDs: bindings.map(\.checkpointID),
                remote: remote,
                nowMilliseconds: { 0 }
            ),
            resolve: { _ in nil }
        )
    }

    /// Gives every request of ours the next answer that the recording has for its kind, and says after `subChanges` what
    /// the gateway said.
    ///
    /// `saved`: how many checkpoints it has taken before.
    private func play(_ conversation: RecordedConversation, on line: ReplayedPeer.Line, saved: Int) throws {
        var saved = saved
        try line.connect(.mobile3)
        var seen = 0
        var tag: UInt64 = 1
        var used: [String: Int] = [:]
        while seen < line.requests.count {
            let request = line.requests[seen]
            seen += 1
            guard !request.message.noReply else { continue }
            let profile = request.message.profile
            if profile == "setCheckpoint" {
                let isCurrent = request.message.properties["rev"] == (saved == 0 ? "" : "0-\(saved)")
                if isCurrent { saved += 1 }
                let conflict = ReplyError("HTTP", 409, "Document update conflict")
                if isCurrent {
                    try line.puppet.reply(Message(["rev": "0-\(saved)"]), to: request.number)
                } else {
                    try line.puppet.reply(conflict, to: request.number)
                }
                try line.runUntilQuiet()
                continue
            }
            let answers = conversation.entries
                .filter { $0.isActive && $0.type == .request && $0.message.profile == profile }
                .compactMap { conversation.answer(toActive: true, number: $0.number) }
            let index = used[profile, default: 0]
            used[profile] = index + 1
            if answers.indices.contains(index) {
                try line.answer(request.number, answers[index])
            } else {
                try line.puppet.reply(Message(), to: request.number)
                try line.runUntilQuiet()
            }
            guard profile == "subChanges" else { continue }
            for entry in conversation.entries where !entry.isActive && entry.type == .request {
                try line.ask(entry.message, tag: tag)
                tag += 1
            }
        }
    }

    @Test(arguments: ["gateway-collections-resume-337", "gateway-collections-resume-411"])
    func `a named collection goes on where its last run ended`(_ name: String) throws {
        let collection = try #require(CollectionName(path: "app.one"))
        let conversations = try Recordings.load(name)
        for (index, conversation) in conversations.prefix(2).enumerated() {
            let line = try line([collection])
            try play(conversation, on: line, saved: index)
            #expect(line.failure == nil)
            let requests = line.requests.map(\.message)
            let subscription = try #require(requests.first { $0.profile == "subChanges" })
            #expect(subscription.properties["since"] == (index == 0 ? nil : "6"))
            // The checkpoint is saved at the first attempt, under the revision that the gateway named.
            let save = try #require(requests.first { $0.profile == "setCheckpoint" })
            #expect(save.properties["rev"] == (index == 0 ? "" : "0-1"))
            #expect(!requests.contains { $0.profile == "getCheckpoint" })
        }
    }

    @Test(arguments: [404, 409])
    func `a checkpoint whose revision the peer no longer knows is saved under the one it has`(_ code: Int)
        throws
    {
        let conversation = try #require(try Recordings.load("gateway-checkpoint-lost-during-411").first)
        let line = try line([.default]) { $0.isContinuous = true }
        try line.connect(.mobile3)
        var saves: [String?] = []
        var seen = 0
        let changes = conversation.requests(ofActive: false).filter {
            ["changes", "rev"].contains($0.profile)
        }
        while seen < line.requests.count {
            let request = line.requests[seen]
            seen += 1
            switch request.message.profile {
            case "getCheckpoint":
                try line.puppet.reply(ReplyError("HTTP", 404, "missing"), to: request.number)
            case "setCheckpoint":
                saves.append(request.message.properties["rev"])
                // The one stored is gone when the second save comes (gateway.md 18).
                if saves.count == 2 {
                    let error = ReplyError("HTTP", code, "No previous revision to replace")
                    try line.puppet.reply(error, to: request.number)
                } else {
                    try line.puppet.reply(Message(["rev": "0-1"]), to: request.number)
                }
            default: try line.puppet.reply(Message(), to: request.number)
            }
            try line.runUntilQuiet()
            if request.message.profile == "subChanges" {
                for (offset, change) in changes.enumerated() {
                    try line.ask(change, tag: UInt64(offset + 1))
                }
            }
        }
        #expect(saves.prefix(3) == ["", "0-1", ""])
        #expect(line.failure == nil)
    }

    @Test func `a peer that never takes a checkpoint is not asked for ever`() throws {
        let line = try line([.default])
        try line.connect(.mobile3)
        var saves = 0
        var seen = 0
        while seen < line.requests.count, saves < 1_000 {
            let request = line.requests[seen]
            seen += 1
            switch request.message.profile {
            case "getCheckpoint":
                try line.puppet.reply(Message(["rev": "0-5"], body: Array("{}".utf8)), to: request.number)
            case "setCheckpoint":
                saves += 1
                try line.puppet.reply(ReplyError("HTTP", 409, "conflict"), to: request.number)
            default: try line.puppet.reply(Message(), to: request.number)
            }
            try line.runUntilQuiet()
            guard request.message.profile == "subChanges" else { continue }
            try line.tell("changes", [:], #"[[1,"a","1-aa"]]"#, wantsReply: true)
            try line.tell("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{}")
            try line.tell("changes", [:], "null")
        }
        #expect((1...20).contains(saves))
        let complaints = line.reports.filter { if case .checkpointNotSaved = $0 { true } else { false } }
        #expect(complaints.count == 1)
        // The documents are here all the same.
        #expect(line.failure == nil)
        #expect(line.isClosed)
    }

    @Test func `collections are answered with the checkpoint's revision under both names`() throws {
        _ = try ours.collection(.default)
        func passive() throws -> ReplayedPeer.Line {
            let line = ReplayedPeer.Line(
                { ReplicationSession(passive: PassivePlan(collections: [.default]), replicas: $0) },
                DatabaseReplicas(store: ours.store, nowMilliseconds: { 0 }),
                resolve: { _ in nil }
            )
            try line.connect(.mobile3)
            return line
        }
        let names = #"{"collections":["_default"],"checkpoint_ids":["cp-x"]}"#
        let first = try passive()
        #expect(try first.ask("getCollections", [:], names).get().body == Array("[{}]".utf8))
        let saved = #"{"_rev":"0-9","rev":"old","last_sequence":"7"}"#
        _ = try first.ask("setCheckpoint", ["collection": "0", "client": "cp-x"], saved).get()
        let answer = try JSONElement(parsing: try passive().ask("getCollections", [:], names).get().body)
        #expect(answer[0]?["rev"]?.string == "1-cc")
        #expect(answer[0]?["_rev"]?.string == "1-cc")
        #expect(answer[0]?["last_sequence"]?.string == "7")
    }
}
