import LoveseatBLIP
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Meshes of modelled Couchbase Lite peers, which edit at random and sync pair by pair.
struct LiteMeshTests {
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `peers become quiet`(_ seed: UInt64) {
        var mesh = LiteMesh(seed: seed, deletions: 0.3, hasSkew: true)
        mesh.edit(40)
        #expect(mesh.settle() != nil, "still busy after 30 rounds")
        #expect(mesh.problems.isEmpty, "\(mesh.problems.prefix(3))")
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `peers with good clocks and without deletions become equal`(_ seed: UInt64) {
        var mesh = LiteMesh(seed: seed, deletions: 0, hasSkew: false)
        mesh.edit(40)
        #expect(mesh.settle() != nil)
        #expect(mesh.contents.count == 1, "\(mesh.contents)")
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `two peers become equal over continuous connections that are cut`(_ seed: UInt64) {
        var mesh = LiteMesh(seed: seed, deletions: 0.2, hasSkew: false)
        for _ in 1...3 { mesh.connect(0, 1, edits: 20) }
        mesh.connect(0, 1, edits: 0)
        let contents = mesh.peers.prefix(2).map { peer in
            peer.documents().mapValues { $0.current.isDeleted ? nil : $0.current.body }
        }
        #expect(contents[0] == contents[1])
        #expect(mesh.problems.isEmpty, "\(mesh.problems)")
    }

    @Test
    func `a connection in frames carries documents and blobs both ways`() throws {
        let content = Array(repeating: UInt8(7), count: 100_000)
        let digest = BlobDigest(sha1: Hashing.sha1(content)).text
        let pair = [1, 2].map { LiteDatabase(SourceID(high: 1, low: $0)) { 1_795_740_000_000_000_000 } }
        pair[0].blobs[digest] = content
        let blob: JSONValue = ["@type": "blob", "digest": .string(digest), "content_type": "text/plain"]
        try pair[0].edit("picture", ["blob": blob])
        try pair[1].edit("note", ["n": 1])
        try pair[1].edit("gone", ["n": 2])
        try pair[1].delete("gone")
        let plan = LitePlan([LitePlan.Binding(checkpointID: "cp")])
        let active = LiteSession(active: pair[0], plan, server: "server")
        active.start()
        let lines = [LiteLine(active), LiteLine(LiteSession(passive: pair[1], client: "client"))]
        var isBusy = true
        while isBusy {
            isBusy = false
            for (side, line) in lines.enumerated() {
                try line.work(time: 1_795_740_000)
                while let frame = try line.nextFrame() {
                    isBusy = true
                    try lines[1 - side].receive(frame)
                }
            }
        }
        #expect(active.isFinished)
        #expect(pair[1].blobs[digest] == content)
        #expect(pair[0].documents().keys.sorted() == ["gone", "note", "picture"])
        #expect(pair[0].documents().mapValues(\.current) == pair[1].documents().mapValues(\.current))
    }

    @Test
    func `500 documents are pushed`() throws {
        var mesh = LiteMesh(seed: 1, deletions: 0, hasSkew: false)
        for number in 0..<500 { try mesh.peers[0].edit("doc-\(number)", ["n": JSONValue(number)]) }
        mesh.sync(0, 1)
        #expect(mesh.peers[1].documents().count == 500)
        #expect(mesh.problems.isEmpty)
    }
}

/// Some peers, each with a clock of its own.
private struct LiteMesh {
    private(set) var peers: [LiteDatabase] = []
    private(set) var problems: [String] = []
    private var generator: SeededGenerator
    private let deletions: Double
    private let clock = Clock()
    private var edits = 0

    private final class Clock { var seconds: UInt64 = 1_795_740_000 }

    init(seed: UInt64, deletions: Double, hasSkew: Bool) {
        generator = SeededGenerator(seed: seed)
        self.deletions = deletions
        for index in 0..<generator.int(3...5) {
            // No two clocks show the same, to the microsecond.
            let skew = (hasSkew ? generator.int(-55...55) * 1_000_000 : 0) + generator.int(0...500_000)
            let source = SourceID(high: generator.next(), low: UInt64(index) + 1)
            let release = generator.pick([LiteRelease.release40, .release41])
            peers.append(
                LiteDatabase(source, release) { [clock] in
                    UInt64(Int(clock.seconds) * 1_000_000 + skew) * 1_000
                }
            )
        }
    }

    /// Edits and syncs at random.
    mutating func edit(_ count: Int) {
        for _ in 0..<count {
            clock.seconds += 1
            let peer = generator.int(0...peers.count - 1)
            if generator.chance(0.5) {
                sync(peer, (peer + generator.int(1...peers.count - 1)) % peers.count)
            } else {
                edit(at: peer)
            }
        }
    }

    private mutating func edit(at peer: Int) {
        let id = "doc-\(generator.int(1...2))"
        let isLive = peers[peer].documents()[id]?.current.isDeleted == false
        edits += 1
        // A clock that is behind may refuse the edit.
        if isLive, generator.chance(deletions) {
            _ = try? peers[peer].delete(id)
        } else {
            _ = try? peers[peer].edit(id, ["n": JSONValue(edits)])
        }
    }

    /// Syncs all with all until nothing changes but tombstones. Of two tombstones that cover each other, each peer takes the other's, for ever.
    ///
    /// - Returns: The number of rounds; nil if there is no end.
    mutating func settle() -> Int? {
        for round in 1...30 {
            let before = live
            for one in peers.indices {
                for other in peers.indices where one != other { sync(one, other) }
            }
            if live == before { return round }
        }
        return nil
    }

    private var live: [[String: LiteRevision]] {
        peers.map { peer in peer.documents().mapValues(\.current).filter { !$0.value.isDeleted } }
    }

    /// What peers have, each once.
    var contents: Set<[String: JSONObject]> {
        Set(
            peers.map { peer in
                peer.documents().mapValues { $0.current.isDeleted ? [:] : $0.current.body ?? [:] }
            }
        )
    }

    /// Connects for some edits on both sides; without any, until nothing is on its way. Then the connection is cut.
    mutating func connect(_ active: Int, _ passive: Int, edits count: Int) {
        var plan = LitePlan([LitePlan.Binding(checkpointID: "\(active)-\(passive)")])
        plan.isContinuous = true
        var exchange = LiteExchange(
            active: LiteSession(active: peers[active], plan, server: "\(passive)"),
            passive: LiteSession(passive: peers[passive], client: "\(active)-\(edits)")
        )
        for _ in 0..<count {
            clock.seconds += 1
            edit(at: generator.pick([active, passive]))
            for _ in 0..<generator.int(0...15) {
                exchange.step(time: Int(clock.seconds), using: &generator)
            }
        }
        if count > 0 { return }
        for _ in 0..<2_000 { exchange.step(time: Int(clock.seconds), using: &generator) }
        if !exchange.active.isQuiet { problems.append("a continuous connection stays busy") }
    }

    /// Replicates both ways, and ends.
    mutating func sync(_ active: Int, _ passive: Int) {
        clock.seconds += 1
        let plan = LitePlan([LitePlan.Binding(checkpointID: "\(active)-\(passive)")])
        var exchange = LiteExchange(
            active: LiteSession(active: peers[active], plan, server: "\(passive)"),
            passive: LiteSession(passive: peers[passive], client: "\(active)")
        )
        var steps = 0
        repeat {
            exchange.step(time: Int(clock.seconds), using: &generator)
            steps += 1
        } while !exchange.isIdle && steps < 20_000
        if let failure = exchange.active.failure { problems.append("\(failure)") }
        if !exchange.active.isFinished { problems.append("\(active) and \(passive) do not end") }
    }
}
