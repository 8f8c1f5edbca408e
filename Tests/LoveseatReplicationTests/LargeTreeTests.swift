import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Documents of which more leaves are in conflict than one message has room for.
struct LargeTreeTests {
    /// The bytes of other leaves' content in one message.
    private static let room = 2_000
    private static let longestBody = 5_000

    /// Two databases, and complete replications between them with the drivers that ship, on a virtual clock.
    ///
    /// @unchecked because everything runs on the thread that steps the clock.
    private final class Pair: @unchecked Sendable {
        let here: Database
        let there: Database
        /// What ended a session before its time. That the active side leaves when it is done is how a passive one ends.
        private(set) var failures: [LoveseatError] = []
        /// The bytes of the longest revision that was stored, with the content that came along.
        private(set) var longest = 0
        private(set) var revisionsStored = 0
        /// How many messages with the rest of a document are still to be refused.
        var refusals = 0

        struct Database {
            let scratch: Scratch
            let store: DocumentStore
            let collection: CollectionHandle

            init() throws { (scratch, store, collection) = try Conversation.database([]) }

            func insert(_ history: [RevisionID], _ body: JSONText, isDeleted: Bool = false) throws {
                _ = try store.write { [collection] in
                    try $0.insertBranch(history, of: "x", in: collection, body: body, isDeleted: isDeleted)
                }
            }

            func tree() throws -> RevisionTree? {
                try store.readRows { [collection] in try $0.record("x", in: collection)?.tree() }
            }

            /// The leaves whose content is here.
            func leaves() throws -> [RevisionID: JSONText] {
                let tree = try tree()
                var found: [RevisionID: JSONText] = [:]
                for leaf in tree?.leaves ?? [] { found[leaf.id] = leaf.body }
                return found
            }
        }

        init() throws { (here, there) = (try Database(), try Database()) }

        func note(_ revisions: [IncomingRevision]) {
            revisionsStored += revisions.count
            longest = max(longest, revisions.map(\.contentBytes).max() ?? 0)
        }

        /// `cut`: the bytes after which the connection breaks; nil for never.
        func replicate(seed: UInt64, pushes: Bool = true, pulls: Bool = true, cut: Int? = nil) throws {
            let clock = VirtualClock()
            var link = SimulatedLink.Plan()
            link.cutAfter = cut
            let line = SimulatedLink(clock, link, seed: seed)
            let runtime = SimulatedRuntime(clock, seed: seed).runtime()
            var tuning = ReplicationTuning()
            tuning.keptTreeBodies = LargeTreeTests.room
            let active = ActivePlan(
                collections: [.init(name: .default, checkpointID: "cp")],
                pushes: pushes,
                pulls: pulls,
                isContinuous: false
            )
            let remote = try here.store.write { try $0.checkpointTables.remoteNumber("there") }
            let near = DatabaseReplicas(
                store: here.store,
                collections: [here.collection],
                checkpointIDs: ["cp"],
                remote: remote,
                nowMilliseconds: { 0 }
            )
            let far = DatabaseReplicas(store: there.store, nowMilliseconds: { 0 })
            let passive = PassivePlan(collections: [.default])
            run(
                ReplicationSession(passive: passive, replicas: watched(far), tuning: tuning),
                line,
                .far,
                runtime
            )
            run(
                ReplicationSession(active: active, replicas: watched(near), tuning: tuning),
                line,
                .near,
                runtime
            )
            while clock.step(until: 3_600_000) {}
        }

        private func watched(_ replicas: DatabaseReplicas) -> LayeredReplicas {
            LayeredReplicas(replicas) { [unowned self] replica, _ in Watcher(replica, self) }
        }

        private func run(
            _ session: ReplicationSession,
            _ line: SimulatedLink,
            _ side: SimulatedLink.Side,
            _ runtime: ReplicationRuntime
        ) {
            // Everything runs on one thread.
            nonisolated(unsafe) let session = session
            let driver = ReplicationDriver(
                session: session,
                channel: line.channel(side),
                negotiated: .mobile3,
                runtime: runtime,
                compressionLevel: BLIPLimits().compressionLevel,
                hooks: ReplicationHooks()
            )
            runtime.task { [self] in
                let failure = await driver.run()
                let isGoodbye = side == .far && failure?.code == .webSocketGoingAway
                if let failure, !isGoodbye { failures.append(failure) }
            }
        }
    }

    private final class Watcher: ReplicaLayer {
        let inner: any Replica
        private let pair: Pair

        init(_ inner: any Replica, _ pair: Pair) { (self.inner, self.pair) = (inner, pair) }

        func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
            pair.note(revisions)
            if pair.refusals > 0, revisions.contains(where: { $0.restOf != nil }) {
                pair.refusals -= 1
                return revisions.map { _ in .failed(LoveseatError(.init(10_503), "not now")) }
            }
            return try inner.insert(revisions)
        }
    }

    private static func body(_ number: Int, bytes: Int) -> JSONText {
        JSONText(canonical: ["n": JSONValue(number), "text": .string(String(repeating: "x", count: bytes))])
    }

    private static func id(_ generation: Int, _ number: Int) -> RevisionID {
        RevisionID(generation: UInt32(generation), digest: [0xD0, UInt8(number >> 8), UInt8(number & 0xFF)])
    }

    /// Gives both databases parts of a random tree with bodies of up to 5,000 bytes, at least two leaves of it to the first one.
    private static func grow(_ pair: Pair, _ dice: inout SeededGenerator) throws {
        var lines: [[RevisionID]] = []
        for number in 0..<dice.int(3...20) {
            let below = dice.chance(0.5) ? lines.randomElement(using: &dice) ?? [] : []
            lines.append([id(below.count + 1, number)] + below)
        }
        let inner = Set(lines.flatMap { $0.dropFirst() })
        var leavesHere = 0
        for (number, line) in lines.enumerated() {
            // A revision in the middle of the tree may be a leaf in one of the databases.
            if inner.contains(line[0]), dice.chance(0.7) { continue }
            let body = body(
                number,
                bytes: dice.chance(0.3) ? dice.int(0...50) : dice.int(0...Self.longestBody - 50)
            )
            let place = dice.int(0...3)
            if place != 1 || leavesHere < 2 {
                try pair.here.insert(line, body)
                leavesHere += inner.contains(line[0]) ? 0 : 1
            }
            if place == 1 || place == 2 { try pair.there.insert(line, body) }
        }
    }

    @Test(arguments: PropertySeeds.of("LARGE_TREES", 60))
    func `after complete replications each leaf that one has with its content is at the other with it, too`(
        _ seed: UInt64
    ) throws {
        var dice = SeededGenerator(seed: seed)
        let pair = try Pair()
        try Self.grow(pair, &dice)
        let before = try pair.here.leaves().merging(pair.there.leaves()) { first, _ in first }
        // What a session stores last is told in the next one. Another one may break anywhere: compressed, a session has some 2,000 bytes.
        if dice.chance(0.3) { try pair.replicate(seed: dice.next(), cut: dice.int(1...2_000)) }
        let broken = pair.failures.count
        for _ in 0..<3 { try pair.replicate(seed: dice.next()) }
        let (here, there) = (try pair.here.leaves(), try pair.there.leaves())
        #expect(here == there)
        let tree = try pair.here.tree()
        for (id, body) in before where tree?.isLeaf(id) == true { #expect(here[id] == body, "\(id)") }
        #expect(pair.failures.count == broken)
        #expect(pair.longest <= Self.longestBody + Self.room)
    }

    /// The current revision, and so many leaves beside it that each is longer than the room.
    private static func conflict(_ database: Pair.Database, leaves: Int = 6) throws -> [RevisionID] {
        let ids = (0...leaves).map { id(1, $0) }
        for (number, id) in ids.enumerated() {
            try database.insert([id], body(number, bytes: longestBody - 50))
        }
        return ids
    }

    @Test(arguments: [true, false])
    func `a replica that is sent a document gets the content of all leaves, however long they are`(
        _ isPush: Bool
    ) throws {
        let pair = try Pair()
        let ids = try Self.conflict(isPush ? pair.here : pair.there)
        try pair.replicate(seed: 1, pushes: isPush, pulls: !isPush)
        #expect(try Set(pair.here.leaves().keys) == Set(ids))
        #expect(try pair.here.leaves() == pair.there.leaves())
        #expect(pair.failures.isEmpty)
        #expect(pair.longest <= Self.longestBody + Self.room)
    }

    @Test(arguments: [true, false])
    func `a replica that has the other leaves is sent none of them again`(_ isPush: Bool) throws {
        let pair = try Pair()
        let author = isPush ? pair.here : pair.there
        let ids = try Self.conflict(author)
        try pair.replicate(seed: 1, pushes: isPush, pulls: !isPush)
        let edit = [Self.id(2, 100), try #require(ids.last)]
        try author.insert(edit, Self.body(100, bytes: 10))
        let before = pair.revisionsStored
        try pair.replicate(seed: 2, pushes: isPush, pulls: !isPush)
        #expect(pair.revisionsStored == before + 1)
        #expect(try pair.here.leaves() == pair.there.leaves())
    }

    @Test
    func
        `content that could not be stored is sent again by the next replication, and keeps nothing else back`()
        throws
    {
        let pair = try Pair()
        let ids = try Self.conflict(pair.here)
        pair.refusals = 1
        try pair.replicate(seed: 1, pulls: false)
        #expect(try pair.there.leaves().count == ids.count - 1)
        try pair.replicate(seed: 2, pulls: false)
        #expect(try pair.here.leaves() == pair.there.leaves())
    }

    /// As a replica of an earlier version does, to which nobody sent what did not fit.
    @Test(arguments: [true, false])
    func `a replica that knows leaves only by name gets their content with the next change`(
        _ isPush: Bool
    ) throws {
        let pair = try Pair()
        let (author, other) = isPush ? (pair.here, pair.there) : (pair.there, pair.here)
        let ids = try Self.conflict(author)
        let found = try author.store.readRows { [collection = author.collection] in
            try $0.record("x", in: collection)
        }
        let record = try #require(found)
        var incoming = IncomingRecord(
            documentID: "x",
            history: [record.revision],
            isDeleted: false,
            body: record.body,
            sender: .loveseat
        )
        incoming.knowledge = try record.tree().knowledge.keepingBody(of: nil)
        let known = incoming
        _ = try other.store.write { [collection = other.collection] in
            try $0.insert(known, in: collection)
        }
        #expect(try other.leaves().count == 1)
        try author.insert([Self.id(2, 100), ids[0]], Self.body(100, bytes: 10))
        try pair.replicate(seed: 1, pushes: isPush, pulls: !isPush)
        #expect(try other.leaves() == author.leaves())
        #expect(try other.leaves().count == ids.count)
    }
}
