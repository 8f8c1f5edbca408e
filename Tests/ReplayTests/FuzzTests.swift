import LoveseatTesting
import Testing

/// The fuzzers' targets with seeded bytes, as a check that they run; Fuzzing/ has the fuzzers.
struct FuzzTests {
    /// Pieces with lengths before them, of bytes that are likely to mean something.
    private static func pieces(_ generator: inout SeededGenerator) -> [UInt8] {
        let words = [
            "{\"a\":1}", "[]", "[[1,\"d\",\"1-abcd\"]]", "[[\"d\",\"1-abcd\",\"\"]]", "id=d\n",
            "rev=1-abcd\n", "sequence=1\n",
            "collection=0\n", "client=cp-x\n", "history=1-ab,1-cd\n", "deleted=1\n",
            "digest=sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n",
            "since=5\n", "batch=0\n", "{\"collections\":[\"_default\"],\"checkpoint_ids\":[\"x\"]}",
            "noconflicts=x\n", "\u{0}",
        ]
        var bytes: [UInt8] = []
        for _ in 0..<generator.int(1...12) {
            var piece = [UInt8(generator.int(0...255)), UInt8(generator.int(0...255))]
            for _ in 0..<generator.int(0...8) {
                piece +=
                    generator.chance(0.8)
                    ? Array(generator.pick(words).utf8) : generator.bytes(generator.int(0...40))
            }
            bytes += [UInt8(piece.count >> 8), UInt8(piece.count & 255)] + piece
        }
        return bytes
    }

    @Test func `a passive peer survives any messages`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<300 { FuzzTargets.passive(Self.pieces(&generator)) }
    }

    @Test func `a connection survives any frames`() {
        var generator = SeededGenerator(seed: 8)
        for _ in 0..<5_000 { FuzzTargets.blip(Self.pieces(&generator)) }
    }

    @Test func `a pairing code survives any text`() {
        var generator = SeededGenerator(seed: 10)
        let pin = String(repeating: "a", count: 64)
        let words = [
            "loveseat-pair:1?", "u=wss://a:1/b", "&", "p=\(pin)", "s=x", "u=", "%", "wss:", "[", "é",
        ]
        for _ in 0..<3_000 {
            let text = (0..<generator.int(1...8)).map { _ in generator.pick(words) }.joined()
            FuzzTargets.pairing(Array(text.utf8))
        }
        FuzzTargets.pairing(Array("loveseat-pair:1?u=wss://a:1/b&p=\(pin)&s=x".utf8))
    }

    @Test func `the scanner survives any text`() {
        var generator = SeededGenerator(seed: 9)
        let words = [
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\"", "1", "-0.5e3", "true", "null", " ", "\\",
            "\u{1}",
        ]
        for _ in 0..<5_000 {
            let text = (0..<generator.int(1...30)).map { _ in generator.pick(words) }.joined()
            FuzzTargets.json(Array(text.utf8))
        }
    }
}
