import LoveseatModel
import LoveseatTesting
import Testing

/// Rules that hold for the vectors of every history, tried on random ones. Numbers in comments are those of version-vectors.md §18.
@Suite struct VersionPropertyTests {
    private static let count: UInt64 = 400
    /// The most recent states of a history, of which each is compared with each.
    private static let compared = 30

    private static func worlds(adopts: Bool) throws -> [(seed: UInt64, world: VersionWorld)] {
        try PropertySeeds.of("VERSIONS", count).map { ($0, try VersionWorld(seed: $0, adopts: adopts)) }
    }

    // 18, 19
    @Test(arguments: [false, true])
    func `vectors relate states as the edits do that went into them`(adopts: Bool) throws {
        var seen: Set<StateRelation> = []
        for (seed, world) in try Self.worlds(adopts: adopts) {
            let states = world.states.suffix(Self.compared)
            for state in states {
                for other in states {
                    let relation = state.vector.relation(to: other.vector)
                    seen.insert(relation)
                    if relation != VersionWorld.relation(state, to: other)
                        || other.vector.relation(to: state.vector) != relation.reversed
                    {
                        Issue.record("seed \(seed): \(state.vector) to \(other.vector) is \(relation)")
                    }
                }
            }
        }
        #expect(seen.count == 4)
    }

    // 20
    @Test func `a state and a version are never in conflict`() throws {
        for (seed, world) in try Self.worlds(adopts: true) {
            let states = world.states.suffix(Self.compared)
            for state in states {
                for version in states.compactMap(\.vector.current) {
                    let relation = state.vector.relation(to: version)
                    let expected: StateRelation =
                        state.vector.current == version
                        ? .same : state.vector.covers(version) ? .newer : .older
                    #expect(relation == expected, "seed \(seed): \(state.vector) to \(version)")
                }
            }
        }
    }

    // 19: without trivial merges, after which later edits by others do not know of the loser.
    @Test func `where all conflicts are merged, the relation is a partial order`() throws {
        for (seed, world) in try Self.worlds(adopts: false) {
            let vectors = world.states.suffix(Self.compared).map(\.vector)
            let isNewer = vectors.map { vector in vectors.map { vector.relation(to: $0) == .newer } }
            for index in vectors.indices {
                #expect(vectors[index].relation(to: vectors[index]) == .same)
                for older in vectors.indices where isNewer[index][older] {
                    for oldest in vectors.indices where isNewer[older][oldest] && !isNewer[index][oldest] {
                        Issue.record("seed \(seed): \(vectors[index]), \(vectors[older]), \(vectors[oldest])")
                    }
                }
            }
        }
    }

    // 22, 24
    @Test func `a merge covers both sides, and a winner covers the loser`() throws {
        var (merges, resolutions) = (0, 0)
        for (seed, world) in try Self.worlds(adopts: true) {
            for resolution in world.resolutions {
                let (winner, loser) = (resolution.winner.vector, resolution.loser.vector)
                let outcome = resolution.outcome.vector
                if resolution.isMerge {
                    merges += 1
                    #expect(outcome.relation(to: winner) == .newer, "seed \(seed)")
                    #expect(outcome.relation(to: loser) == .newer, "seed \(seed)")
                } else {
                    resolutions += 1
                    let current = try #require(winner.current)
                    #expect(outcome.relation(to: winner) == .same, "seed \(seed)")
                    // Those that cover each other stay apart until the loser's peers follow.
                    let relation: StateRelation = loser.covers(current) ? .conflict : .newer
                    #expect(outcome.relation(to: loser) == relation, "seed \(seed)")
                }
            }
        }
        #expect(merges > 0)
        #expect(resolutions > 0)
    }

    // 12, 14 and §12.1, R3
    @Test func `no version is issued twice, and none names two contents`() throws {
        for (seed, world) in try Self.worlds(adopts: true) {
            #expect(world.duplicates.isEmpty, "seed \(seed)")
            var contents: [Version: Int] = [:]
            for state in world.states {
                let version = try #require(state.vector.current)
                #expect(contents[version] ?? state.content == state.content, "seed \(seed)")
                contents[version] = state.content
            }
        }
    }

    // 5, 8, and 72: a vector has a version of each peer at most, and a merge version by the author of the current one.
    @Test func `the vectors of histories are read as they were written, in any order and with any blanks`()
        throws
    {
        var generator = SeededGenerator(seed: 8)
        for (seed, world) in try Self.worlds(adopts: true) {
            for vector in world.states.map(\.vector) {
                #expect(try VersionVector(vector.text) == vector, "seed \(seed)")
                #expect(try VersionVector(Self.untidy(vector, &generator)) == vector, "seed \(seed)")
                #expect(try VersionVector(encoded: vector.encoded()) == vector, "seed \(seed)")
                let history = StateHistory(vector)
                #expect(
                    try StateHistory(rev: #require(history.rev), history: history.history) == history,
                    "seed \(seed)"
                )
                #expect(Set(vector.versions.map(\.source)).count <= world.peerCount, "seed \(seed)")
                #expect(vector.versions.count <= world.peerCount + 1, "seed \(seed)")
            }
        }
    }

    /// The text as Sync Gateway may write it: without blanks or with several, in any order, with zeros and in upper case.
    private static func untidy(_ vector: VersionVector, _ generator: inout SeededGenerator) -> String {
        func texts(_ versions: [Version]) -> [String] {
            versions.shuffled(using: &generator).map { version in
                let time = String(version.time, radix: 16, uppercase: generator.chance(0.3))
                return "\(generator.chance(0.3) && time.utf8.count < 16 ? "0" : "")\(time)@\(version.source)"
            }
        }
        let blanks = generator.pick(["", " ", "   "])
        let currents = texts(Array(vector.versions.prefix(1))) + texts(Array(vector.mergeVersions))
        let text = currents.joined(separator: ",\(blanks)")
        if vector.previous.isEmpty {
            return vector.isMerge || generator.chance(0.5) ? "\(text);\(blanks)" : text
        }
        return "\(text);\(blanks)\(texts(Array(vector.previous)).joined(separator: ",\(blanks)"))"
    }

    // 10, 19
    @Test func `text that was changed is a vector or refused, and what is read is written in one form`()
        throws
    {
        var generator = SeededGenerator(seed: 10)
        let characters = Array("0123456789abcdefAQgw+/@,;- *=\u{0}é".utf8)
        var (read, refused) = (0, 0)
        for _ in 0..<30_000 {
            var bytes = Array(try generator.versionVector().text.utf8)
            for _ in 0..<generator.int(1...3) {
                let index = generator.int(0...bytes.count)
                switch generator.int(0...3) {
                case 0: bytes.insert(generator.pick(characters), at: index)
                case 1 where index < bytes.count: bytes[index] = generator.pick(characters)
                case 2 where index < bytes.count: bytes.remove(at: index)
                default:
                    bytes.insert(contentsOf: bytes[index...].prefix(generator.int(0...60)), at: index)
                }
            }
            do throws(VersionError) {
                let vector = try VersionVector(utf8: bytes)
                read += 1
                #expect(try VersionVector(vector.text) == vector)
                #expect(try VersionVector(vector.text).text == vector.text)
            } catch {
                refused += 1
                #expect(error.offset ?? 0 <= bytes.count)
            }
        }
        #expect(read > 1_000)
        #expect(refused > 1_000)
    }
}
