import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

/// What a subscription's peers say to each other about deletions, the end of the backlog, and gateways.
struct SubscriptionTests {
    private let ours: ReplayedPeer

    init() throws { ours = try ReplayedPeer() }

    private func save(_ ids: some Sequence<String>, _ rev: String = "1-aa", isDeleted: Bool = false) throws {
        for id in ids {
            var properties: MessageProperties = ["id": id, "rev": rev]
            if rev.hasPrefix("2") { properties["history"] = "1-aa" }
            if isDeleted { properties["deleted"] = "1" }
            try ours.seed(Message(properties), in: .default)
        }
    }

    private func announced(_ lists: [ReplayedPeer.Heard]) throws -> [String] {
        try lists.flatMap { heard in
            try JSONElement(parsing: heard.message.body).items.map { entry in
                "\(entry[1]?.string ?? "")\(entry[3]?.int == 1 ? " deleted" : "")"
            }
        }
    }

    @Test func `a peer that wants no tombstones hears of deletions made while it pulls`() throws {
        try save((0..<200).map { "d\($0)" } + ["gone"])
        try save(["gone"], "2-bb", isDeleted: true)
        let line = try ours.passiveLine()
        _ = try line.ask("subChanges", ["activeOnly": "true", "batch": "10"], "").get()
        // One that was announced already, and one that was not yet.
        try save(["d0", "d199"], "2-bb", isDeleted: true)
        var heard: [ReplayedPeer.Heard] = []
        while case let lists = line.take("changes"), !lists.isEmpty {
            heard += lists
            for list in lists where !list.message.noReply {
                try line.puppet.reply(Message(body: Array("[]".utf8)), to: list.number)
            }
            try line.runUntilQuiet()
        }
        let names = try announced(heard)
        #expect(names.contains("d0 deleted"))
        #expect(names.contains("d199 deleted"))
        #expect(!names.contains("gone deleted"))
        #expect(Set(names.map { $0.split(separator: " ").first ?? "" }).count == 200)
    }

    @Test(arguments: [nil, "closed-branches", "closed-branches,late-deletions"])
    func `tombstones are left out only by peers that say they announce later ones`(_ extensions: String?)
        throws
    {
        let name = try #require(CollectionName(path: "travel.sights"))
        let handle = try ours.collection(name)
        var binding = ActivePlan.Binding(name: name, checkpointID: "cp-x")
        binding.isEmpty = true
        let plan = ActivePlan(collections: [binding], pushes: false, pulls: true, isContinuous: false)
        let store = ours.store
        let remote = try store.write { try $0.checkpointTables.remoteNumber("puppet") }
        let line = ReplayedPeer.Line(
            { ReplicationSession(active: plan, replicas: $0) },
            DatabaseReplicas(
                store: store,
                collections: [handle],
                checkpointIDs: ["cp-x"],
                remote: remote,
                nowMilliseconds: { 0 }
            ),
            resolve: { _ in nil }
        )
        try line.connect(.mobile3)
        let request = try #require(line.take("getCollections").first)
        var properties: MessageProperties = [:]
        properties["loveseat"] = extensions
        try line.puppet.reply(Message(properties, body: Array("[{}]".utf8)), to: request.number)
        try line.runUntilQuiet()
        let subscription = try #require(line.take("subChanges").first).message
        let isKnown = extensions?.hasSuffix("late-deletions") == true
        #expect(subscription.properties["activeOnly"] == (isKnown ? "true" : nil))
    }

    @Test func `the end of the backlog is told after all of it has been answered`() throws {
        try save((0..<25).map { "d\($0)" })
        let line = try ours.passiveLine()
        _ = try line.ask("subChanges", ["batch": "10"], "").get()
        var lists = line.take("changes")
        #expect(lists.count == 3)
        #expect(!lists.contains { $0.message.noReply })
        while !lists.isEmpty {
            let list = lists.removeLast()
            try line.puppet.reply(Message(body: Array("[]".utf8)), to: list.number)
            try line.runUntilQuiet()
            let end = line.take("changes")
            #expect(end.map(\.message.body) == (lists.isEmpty ? [Array("[]".utf8)] : []))
        }
    }

    @Test(arguments: [true, false])
    func `lists say that conflicts are no reason to refuse them, to gateways only`(_ isGateway: Bool) throws {
        try save(["d"])
        let line = try ours.passiveLine()
        _ = try line.ask("subChanges", isGateway ? ["client_sgr2": "true"] : [:], "").get()
        let list = try #require(line.take("changes").first)
        #expect(list.message.properties["ignoreNoConflicts"] == (isGateway ? "true" : nil))
    }

    @Test func `answers to urgent requests are urgent, also those that the database gives`() throws {
        let line = try ours.passiveLine()
        for (tag, isUrgent) in [(UInt64(1), true), (2, false)] {
            let properties: MessageProperties = ["Profile": "setCheckpoint", "client": "cp-\(tag)"]
            let message = Message(properties, body: Array("{}".utf8), isUrgent: isUrgent)
            try line.ask(message, tag: tag)
            #expect(try line.answers[tag]?.get().isUrgent == isUrgent)
        }
    }

    @Test func `a cancelled subscription's answers mean nothing to the next one`() throws {
        try save((0..<25).map { "d\($0)" })
        let line = try ours.passiveLine()
        _ = try line.ask("subChanges", ["batch": "10"], "").get()
        let old = line.take("changes")
        _ = try line.ask("unsubChanges", [:], "").get()
        _ = try line.ask("subChanges", ["batch": "10"], "").get()
        for list in old {
            let body = Array("[[],[],[]]".utf8)
            try line.puppet.reply(Message(body: body), to: list.number)
        }
        try line.runUntilQuiet()
        #expect(line.take("rev").isEmpty)
        #expect(line.take("changes").count == 3)
    }

    @Test func `all unresolved conflicts are resolved, however many there are`() throws {
        let handle = try ours.collection(.default)
        let store = ours.store
        let remote = try store.write { try $0.checkpointTables.remoteNumber("puppet") }
        try store.write { transaction in
            for number in 0..<2_500 {
                for rev in ["2-aa", "2-bb"] {
                    var incoming = IncomingRecord(
                        documentID: "d\(number)",
                        history: [RevisionID(rev), RevisionID("1-aa")].compactMap { $0 },
                        isDeleted: false,
                        body: JSONText(canonical: ["rev": .string(rev)]),
                        sender: .loveseat,
                        remote: rev == "2-aa" ? nil : remote
                    )
                    incoming.asksResolver = true
                    _ = try transaction.insert(incoming, in: handle)
                }
            }
        }
        var resolved: Set<String> = []
        let binding = ActivePlan.Binding(name: .default, checkpointID: "cp-x")
        let plan = ActivePlan(collections: [binding], pushes: false, pulls: true, isContinuous: false)
        let line = ReplayedPeer.Line(
            { ReplicationSession(active: plan, replicas: $0) },
            DatabaseReplicas(
                store: store,
                collections: [handle],
                checkpointIDs: ["cp-x"],
                remote: remote,
                nowMilliseconds: { 0 }
            ),
            // Nobody resolves them here: each is offered once all the same.
            resolve: { notice in
                resolved.insert(notice.documentID)
                return nil
            }
        )
        try line.connect(.mobile3)
        let checkpoint = try #require(line.take("getCheckpoint").first)
        try line.puppet.reply(ReplyError("HTTP", 404), to: checkpoint.number)
        try line.runUntilQuiet()
        let subscription = try #require(line.take("subChanges").first)
        try line.puppet.reply(Message(), to: subscription.number)
        try line.runUntilQuiet()
        try line.tell("changes", [:], "[]")
        try line.takeCheckpoints()
        #expect(resolved.count == 2_500)
        #expect(line.isClosed)
        #expect(line.failure == nil)
    }

    @Test func `checkpoints of peers are bounded in size, and in number for a connection`() throws {
        let line = try ours.passiveLine()
        func save(_ id: String, _ bytes: Int) throws -> String {
            let body = #"{"x":"\#(String(repeating: "x", count: bytes))"}"#
            return code(try line.ask("setCheckpoint", ["client": id], body))
        }
        #expect(try save("large", 65_000) == "ok")
        #expect(try save("too large", 66_000) == "HTTP/413")
        var refused = 0
        for number in 0..<200 where try save("cp-\(number)", 10) != "ok" { refused += 1 }
        #expect(refused >= 100)
        let again = try line.ask("setCheckpoint", ["client": "cp-0", "rev": "1-cc"], "{}")
        #expect(code(again) == "ok")
        #expect(line.failure == nil)
    }

    @Test func `a peer may leave thousands of small lists with us`() throws {
        let line = try ours.passiveLine()
        for number in 0..<3_000 {
            let list = Message(["Profile": "proposeChanges"], body: Array(#"[["d\#(number)","1-aa"]]"#.utf8))
            try line.puppet.send(list, tag: UInt64(number + 1))
        }
        try line.runUntilQuiet()
        #expect(line.failure == nil)
        for number in 0..<3_000 {
            try line.tell("rev", ["id": "d\(number)", "rev": "1-aa"], "{}")
        }
        #expect(try ours.count() == 3_000)
        #expect(line.answers[3_000] != nil)
    }

    @Test func `subscriptions that are cancelled and never read leave no lists behind`() throws {
        let id = String(repeating: "x", count: 200)
        try save((0..<500).map { "\(id)\($0)" })
        let replicas = DatabaseReplicas(store: ours.store, nowMilliseconds: { 0 })
        let plan = PassivePlan(collections: [.default])
        let peer = ReplicationConnection(session: ReplicationSession(passive: plan, replicas: replicas))
        _ = peer.connected(.mobile3)
        let puppet = BLIPConnection()
        for number in 0..<100 {
            for profile in ["subChanges", "unsubChanges"] {
                let message = Message(["Profile": profile, "batch": "500"])
                try puppet.send(message, tag: UInt64(number))
                while let frame = try puppet.nextFrame() { _ = peer.receive(frame) }
            }
        }
        var bytes = 0
        while true {
            guard let frame = peer.nextFrame().frame else { break }
            bytes += frame.count
        }
        // One list has more than 100 kB.
        #expect(bytes < 100_000)
        #expect(!peer.isOver)
    }
}
