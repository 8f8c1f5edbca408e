import Foundation
import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatTesting
import Testing

/// Recorded conversations of peers of Couchbase Lite 4, changed at random, with a session of ours: no input does any harm.
struct VersionFuzzTests {
    /// What one side said over one recorded connection, in pieces for a fuzzer.
    private struct Script {
        let isActive: Bool
        let pieces: [[UInt8]]
    }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/wire-v4")

    private static func scripts(_ name: String) throws -> [Script] {
        let file = folder.appending(path: "\(name).trace.jsonl")
        let conversations = try RecordedConversation.all(
            inTrace: String(contentsOf: file, encoding: .utf8)
        )
        return conversations.flatMap { conversation in
            [true, false].map { isActive in
                let said = conversation.entries.filter { $0.isActive == isActive }
                return Script(
                    isActive: isActive,
                    pieces: said.compactMap { HostileConversation.piece($0.message, $0.type) }
                )
            }
        }
    }

    /// Texts that are somewhere between valid and not.
    private static let words = [
        "18e9f1f030000000@ZwCGnI/3SA40pwpwiwKHAA", "18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw",
        "2bb00000000@Revision+Tree+Encoding", "7fffffffffffffff@y90Q1yAAs6QGig6myZrsaw",
        "ffffffffffffffff@adsxl26tN7hcxCpJyV/Qbg", "1@AQIDBAUGBwgJCgsMDQ4PEA", "0@y90Q1yAAs6QGig6myZrsaw",
        "1@AAAAAAAAAAAAAAAAAAAAAA", "@*", "*", "; ", ", ", ";", ",", " ", "2-bb", "1-aa", "4294967295-aa",
        "9000000-ab", "history=", "rev=", "deltaSrc=", "replacedRev=", "noconflicts=1\n", "deleted=1\n",
        "409", "{\"status\":409,\"rev\":\"\"}", "[]", "[[]]", "0", "\"d\"", "-1",
        "18446744073709551615",
    ]

    private static func change(_ pieces: inout [[UInt8]], _ generator: inout SeededGenerator) {
        guard !pieces.isEmpty else { return }
        let index = generator.int(0...pieces.count - 1)
        var piece = pieces[index]
        let place = generator.int(0...piece.count)
        switch generator.int(0...9) {
        case 0 where !piece.isEmpty: piece[min(place, piece.count - 1)] = UInt8(generator.int(0...255))
        case 1: piece.insert(contentsOf: Array(generator.pick(words).utf8), at: place)
        case 2: piece.removeSubrange(place..<min(piece.count, place + generator.int(1...30)))
        case 3: return pieces.insert(piece, at: generator.int(0...pieces.count))
        case 4: return pieces.swapAt(index, generator.int(0...pieces.count - 1))
        case 5 where pieces.count > 1:
            pieces.remove(at: index)
            return
        default: piece = replacingName(in: piece, &generator)
        }
        pieces[index] = piece
    }

    /// Puts another text in the place of a version.
    private static func replacingName(in piece: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        let places = piece.indices.filter { piece[$0] == UInt8(ascii: "@") }
        guard !places.isEmpty else { return piece }
        let place = generator.pick(places)
        let digits = piece[..<place].suffix(16).reversed().prefix { isDigit($0) }.count
        let end = min(piece.count, place + 23)
        return piece[..<(place - digits)] + Array(generator.pick(words).utf8) + piece[end...]
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
    }

    @Test(arguments: LiteReplayTests.names)
    func `a changed conversation with a peer with versions does no harm`(_ name: String) throws {
        let scripts = try Self.scripts(name)
        let salt = name.utf8.reduce(UInt64(17)) { $0 &* 31 &+ UInt64($1) }
        for seed in PropertySeeds.of("CONVERSATION", 1) {
            var generator = SeededGenerator(seed: salt &+ seed)
            for script in scripts {
                // Where nothing was negotiated, the same messages may come.
                let isOpen = generator.chance(0.25)
                let side: HostileConversation.Side =
                    script.isActive
                    ? isOpen ? .passiveOpen : .passiveWithVersions
                    : isOpen ? .activeOpen : .activeWithVersions
                var pieces = script.pieces
                for _ in 0..<generator.int(1...6) { Self.change(&pieces, &generator) }
                FuzzTargets.converse(side, FuzzTargets.bytes(of: pieces))
            }
        }
    }

    @Test(arguments: [HostileConversation.Side.passiveWithVersions, .passiveOpen])
    func `a conversation that was not changed brings its documents`(_ side: HostileConversation.Side) throws {
        let script = try #require(try Self.scripts("first-push").first)
        #expect(script.isActive)
        let without = FuzzTargets.converse(side, [])
        #expect(FuzzTargets.converse(side, FuzzTargets.bytes(of: script.pieces)) > without)
    }

    @Test func `a stored tree with vectors is read as it was written, or refused`() throws {
        let text =
            #"{"bodies":{"2-dd":{"a":1}},"closed":["2-ee"],"current":"3-bb","deleted":["2-ee"],"lines":[["3-bb","2-cc","1-aa"],["2-dd","1-aa"],["2-ee","1-ab"]],"vectors":{"3-bb":"18e9f1f030000000@ZwCGnI/3SA40pwpwiwKHAA; 18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw","2-dd":"18e9f1f020000000@y90Q1yAAs6QGig6myZrsaw"}}"#
        let knowledge = try TreeMessage.parse(Array(text.utf8)).knowledge
        let id = try #require(RevisionID("1-aa"))
        let node = RevisionTree.Node(id: id, parent: nil, flags: [], body: JSONText(canonical: ["a": 1]))
        var tree = RevisionTree(nodes: [node], remotes: [1: id])
        try tree.merge(knowledge, by: TreePolicy(depth: 8))
        let current = try #require(tree.current)
        let stored = try #require(RevisionTreeEncoder.encode(tree, current: current))
        #expect(stored.first == 5)
        FuzzTargets.tree(stored)
        var generator = SeededGenerator(seed: 19)
        for _ in 0..<6_000 {
            var bytes = stored
            for _ in 0..<generator.int(1...4) {
                let index = generator.int(0...bytes.count - 1)
                switch generator.int(0...2) {
                case 0: bytes[index] = UInt8(generator.int(0...255))
                case 1: bytes.remove(at: index)
                default: bytes.insert(contentsOf: bytes[index...].prefix(generator.int(1...20)), at: index)
                }
            }
            FuzzTargets.tree(bytes)
        }
    }

    @Test func `two histories are related in one way, whatever is in them`() {
        var generator = SeededGenerator(seed: 23)
        let sources = ["VVebVXiW0M4XZMR/7WRPmw", "ZwCGnI/3SA40pwpwiwKHAA", "Revision+Tree+Encoding"]
        func version() -> String {
            let time = generator.chance(0.3) ? "2bb00000000" : "\(generator.int(1...4))"
            return "\(time)@\(generator.pick(sources))"
        }
        func history() -> String {
            let parts = (0..<generator.int(0...3)).map { _ in
                generator.chance(0.7) ? version() : generator.pick(["2-bb", "1-aa", "3-cc"])
            }
            return parts.enumerated().map { $0 == 0 ? $1 : generator.pick([", ", "; ", ","]) + $1 }.joined()
        }
        for _ in 0..<20_000 {
            let (rev, rest) = (Array(version().utf8), Array(history().utf8))
            FuzzTargets.version(FuzzTargets.bytes(of: [rev, rest]))
        }
    }

    @Test func `a document stays whole, whatever states arrive and whatever is decided`() throws {
        let target = try #require(FuzzTargets.named["arrivals"])
        for seed in PropertySeeds.of("ARRIVAL", 1_500) {
            var generator = SeededGenerator(seed: seed)
            target(FuzzTargets.bytes(of: Self.arrivals(&generator)))
        }
    }

    /// Steps of few authors, who say anything.
    private static func arrivals(_ generator: inout SeededGenerator) -> [[UInt8]] {
        let sources = [
            "VVebVXiW0M4XZMR/7WRPmw", "ZwCGnI/3SA40pwpwiwKHAA", "Revision+Tree+Encoding",
            "AAAAAAAAAAEAAAAAAAAAAQ",
        ]
        let revisions = ["1-aa", "2-bb", "2-cc", "3-bb", "3-dd", "5-ee", "2147483648-aa"]
        func name() -> String {
            let source = generator.pick(sources)
            guard source == sources[2] else { return "18e9f1f0\(generator.int(1...6))0000000@\(source)" }
            return generator.pick(["1aa00000000", "2bb00000000", "3bb00000000"]) + "@" + source
        }
        return (0..<generator.int(2...14)).map { _ in
            let isLegacy = generator.chance(0.25)
            let rev = isLegacy ? generator.pick(revisions) : name()
            var items = isLegacy ? [] : (0..<generator.int(0...2)).map { _ in name() }
            items += (0..<generator.int(0...2)).map { _ in generator.pick(revisions) }
            let merge = generator.chance(0.2) ? "; " : ", "
            let history = items.enumerated().map { $0 == 0 ? $1 : ($0 == 1 ? merge : ", ") + $1 }.joined()
            return [UInt8(generator.int(0...255))] + Array("\(rev)\n\(history)".utf8)
        }
    }
}
