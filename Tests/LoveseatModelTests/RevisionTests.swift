import Crypto
import LoveseatModel
import LoveseatTesting
import Testing

@Suite struct RevisionIDTests {
    @Test func `digests are those of the specification`() throws {
        var parent: RevisionID?
        for (deleted, body, expected) in [
            (false, #"{"age":7,"name":"Hobbes"}"#, "1-7b58069baa4e97140f275c7ba4e0f8883c1d42fa"),
            (false, #"{"age":8,"name":"Hobbes"}"#, "2-ef1504fdd47b89096281325a9194e9dcee2b04f7"),
            (true, "{}", "3-63840bbc074b80ae44e0f2ac7f6cd734d3ad395d"),
        ] {
            let input =
                RevisionID.withDigestPrefix(parent: parent, isDeleted: deleted) { Array($0) } + body.utf8
            let digest = Insecure.SHA1.hash(data: input)
            let made = RevisionID(generation: (parent?.generation ?? 0) + 1, digest: digest)
            #expect(made.text == expected)
            #expect(digest.withUnsafeBytes { made.hasDigest($0) })
            let bytes = Array(digest)
            for other in [
                Array(bytes.dropLast()), Array(bytes.dropFirst()), bytes.dropLast() + [bytes[19] ^ 1], [],
            ] {
                #expect(!other.withUnsafeBytes { made.hasDigest($0) })
            }
            parent = made
        }
    }

    @Test(arguments: [
        "", "1", "1-", "-ab", "0-ab", "01-ab", "4294967296-ab", "x-ab", "1-a b", "1-a,b", "1-a\"b", "1-a\\b",
        "1-ä",
        "1-a\n", "1-" + String(repeating: "a", count: 257),
    ])
    func `refuses what is no revision ID`(text: String) { #expect(RevisionID(text) == nil) }

    /// CouchDB's peers make up digests of any kind.
    @Test(arguments: [
        "1-a", "1-AB", "2-aB0", "3-x", "4-ab-cd", "5-0", "1-" + String(repeating: "f", count: 256),
        "1-" + String(repeating: "f", count: 255), "1-" + String(repeating: "~", count: 256), "4294967295-00",
    ])
    func `digests of any kind are stored as they are`(text: String) throws {
        let id = try #require(RevisionID(text))
        #expect(id.text == text)
        #expect(id.digest == text.drop { $0 != "-" }.dropFirst())
        let node = RevisionTree.Node(id: id, parent: nil, flags: [], body: .emptyObject)
        let tree = RevisionTree(nodes: [node], remotes: [7: id])
        let encoded = try #require(RevisionTreeEncoder.encode(tree))
        let read = RevisionTreeDecoder.decode(encoded, currentBody: .emptyObject, closing: { $0 })
        #expect(read == tree)
        #expect(RevisionTreeDecoder.mark(of: 7, in: encoded) == .some(.some(id)))
        let marked = RevisionTreeEncoder.markCurrent(at: 9, in: encoded)
        #expect(marked.map { RevisionTreeDecoder.mark(of: 9, in: $0) } == .some(.some(.some(id))))
    }

    @Test func `orders by generation, then digest`() {
        #expect(rev("9-ff") < rev("10-00"))
        #expect(rev("2-0a") < rev("2-a0"))
    }
}

@Suite struct SequenceTests {
    @Test func `sets of sequences behave as sets`() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<300 {
            var ours = (SequenceSet(), SequenceSet())
            var plain: (Set<UInt64>, Set<UInt64>) = ([], [])
            for _ in 0..<60 {
                let low = UInt64.random(in: 0..<40, using: &generator)
                let high = low + UInt64.random(in: 0..<4, using: &generator)
                ours.0.insert(low...high)
                plain.0.formUnion(low...high)
                let single = UInt64.random(in: 0..<40, using: &generator)
                ours.1.insert(single)
                plain.1.insert(single)
                let gone = UInt64.random(in: 0..<40, using: &generator)
                ours.0.remove(gone)
                plain.0.remove(gone)
            }
            for value in UInt64(0)..<50 {
                #expect(ours.0.contains(value) == plain.0.contains(value))
                #expect(
                    ours.0.intersection(ours.1).contains(value)
                        == plain.0.intersection(plain.1).contains(value)
                )
            }
            #expect(
                zip(ours.0.ranges, ours.0.ranges.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound }
            )
        }
    }

    @Test(arguments: [
        ("1", "2", true), ("2", "2", false), ("1", "\"2:9\"", true), ("2", "\"2:9\"", false),
        ("2", "\"2::9\"", true),
        ("3", "\"2::9\"", false), ("\"2:9\"", "9", true), ("\"2:9\"", "1", false),
        ("\"2:9\"", "\"3:1\"", true),
        ("\"2:9\"", "\"2:10\"", true), ("\"2:9\"", "\"2:9\"", false), ("\"2:9\"", "\"2:5:6\"", true),
        ("\"3:9\"", "\"2:5:6\"", false), ("\"2::9\"", "3", true), ("\"2::9\"", "2", false),
        ("\"2::9\"", "\"3:1\"", true),
        ("\"2::9\"", "\"3::1\"", true), ("\"2::9\"", "\"2::10\"", true), ("\"2:5:9\"", "\"2:6:1\"", true),
    ])
    func `remote sequences are ordered by the table`(lhs: String, rhs: String, expected: Bool) throws {
        let left = try #require(RemoteSequence(json: lhs))
        let right = try #require(RemoteSequence(json: rhs))
        #expect(left.isBefore(right) == expected)
    }

    @Test func `unknown forms have no order`() throws {
        let odd = try #require(RemoteSequence(json: "{\"a\":1}"))
        #expect(odd.isBefore(RemoteSequence(1)) == nil)
        #expect(RemoteSequence(json: "x") == nil)
    }
}

@Suite struct NameTests {
    @Test(arguments: [
        ("a", true), ("A_b-c%1", true), ("-x", true), ("_x", false), ("%x", false), ("", false),
        ("a b", false), ("é", false),
        ("_default", true), (String(repeating: "a", count: 251), true),
        (String(repeating: "a", count: 252), false),
    ])
    func `collection names keep to the rules`(name: String, isValid: Bool) {
        #expect((CollectionName(name: name) != nil) == isValid)
    }

    @Test func `paths leave the default scope out`() {
        #expect(CollectionName.default.path == "_default")
        #expect(CollectionName(path: "travel.sights")?.fullName == "travel.sights")
        #expect(CollectionName(path: "sights")?.fullName == "_default.sights")
        #expect(CollectionName(path: "a.b.c") == nil)
        #expect(CollectionName(path: "travel._default") == nil)
    }
}
