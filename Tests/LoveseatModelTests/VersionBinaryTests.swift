import LoveseatModel
import LoveseatTesting
import Testing

/// The binary form of vectors (version-vectors.md §5.2).
@Suite struct VersionBinaryTests {
    private static let anna = "55579b557896d0ce1764c47fed644f9b"
    private static let ben = "6700869c8ff7480e34a70a708b028700"
    private static let cleo = "cbdd10d72000b3a4068a0ea6c99aec6b"
    private static let dora = "69db31976ead37b85cc42a49c95fd06e"

    private static func bytes(_ text: String) throws -> [UInt8] {
        let digits = Array(text)
        return try stride(from: 0, to: digits.count, by: 2).map {
            try #require(UInt8(String(digits[$0..<$0 + 2]), radix: 16))
        }
    }

    // §13.7
    @Test(
        arguments: [
            ("T1@a", "0080c0809fbeba0c90\(anna)", nil), ("T1@a", "0080c0809fbeba0c80", "a"),
            ("18e9f1f010000001@a", "008380808082fcf8e93180", "a"),
            ("T3@b; T1@a", "0080c0819fbeba0c90\(ben)80800110\(anna)", nil),
            (
                "T6@d, T4@c, T3@b; T1@a",
                "008080839fbeba0c90\(dora)80800190\(cleo)804090\(ben)80800110\(anna)", nil
            ),
            ("176cee53c5680000@a", "00d0959ee59ddb0b80", "a"), ("", "00", nil),
            (
                "3@a, 2@c, 1@d; 2@b",
                "00" + "0780" + "0390" + cleo + "0390" + dora + "ffffffffffffffffff0110" + ben, "a"
            ),
        ] as [(String, String, String?)]
    )
    func `a vector has the bytes of the specification`(short: String, bytes: String, own: String?) throws {
        let (vector, own) = try (vector(short), own.map { try source($0) })
        #expect(vector.encoded(own: own).hexadecimalText == bytes)
        #expect(try VersionVector(encoded: Self.bytes(bytes), own: own) == vector)
    }

    // §5.2
    @Test func `a version that no byte marks as current is current`() throws {
        let bytes = try Self.bytes("00d0959ee59ddb0b00")
        #expect(try VersionVector(encoded: bytes, own: source("a")) == vector("176cee53c5680000@a"))
    }

    @Test func `a reader without an own source refuses "me"`() throws {
        let bytes = try vector("T1@a").encoded(own: source("a"))
        #expect(throws: VersionError(.ownSource)) { try VersionVector(encoded: bytes) }
    }

    @Test func `10,000 random vectors are read as they were written`() throws {
        var generator = SeededGenerator(seed: 57)
        for _ in 0..<10_000 {
            let vector = try generator.versionVector()
            // The form has 63 bits for a time.
            guard vector.versions.allSatisfy({ $0.time <= HybridClock.validTimes.upperBound }) else {
                continue
            }
            let own = generator.chance(0.5) ? vector.versions.randomElement(using: &generator)?.source : nil
            #expect(try VersionVector(encoded: vector.encoded(own: own), own: own) == vector)
        }
    }

    @Test func `bytes that are not a vector are refused, whatever they are`() throws {
        var generator = SeededGenerator(seed: 58)
        var read = 0
        for _ in 0..<20_000 {
            var bytes = try generator.versionVector().encoded()
            for _ in 0..<generator.int(1...3) {
                let index = generator.int(0...bytes.count - 1)
                switch generator.int(0...2) {
                case 0: bytes[index] = UInt8(generator.int(0...255))
                case 1: bytes = Array(bytes[...index])
                default: bytes.insert(UInt8(generator.int(0...255)), at: index)
                }
            }
            // Most are refused. What is read is a vector, with another form perhaps.
            guard let vector = try? VersionVector(encoded: bytes) else { continue }
            read += 1
            #expect(try VersionVector(encoded: vector.encoded()) == vector)
            #expect(try VersionVector(vector.text) == vector)
        }
        #expect(read > 0)
        #expect(throws: VersionError(.invalidBytes)) { try VersionVector(encoded: []) }
        #expect(throws: VersionError(.invalidBytes)) { try VersionVector(encoded: [1]) }
    }

    @Test func `a form of more than 1,000 versions is refused`() throws {
        let versions = try (UInt64(1)...1_000).map {
            try Version(time: 1 << 40 + $0, source: SourceID(high: $0, low: 1))
        }
        let bytes = try VersionVector(versions, currentCount: 1).encoded()
        #expect(try VersionVector(encoded: bytes).versions.count == 1_000)
        let more = bytes + [3, 16] + SourceID.revisionTree.bytes
        #expect(throws: VersionError(.tooManyVersions)) { try VersionVector(encoded: more) }
    }
}
