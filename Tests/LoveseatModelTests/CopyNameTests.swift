import Crypto
import LoveseatModel
import LoveseatTesting
import Testing

/// The names of copies (docs/decisions/0001).
@Suite struct CopyNameTests {
    private static func sha1(_ bytes: [UInt8]) -> [UInt8] { Array(Insecure.SHA1.hash(data: bytes)) }

    private func id(_ text: String) throws -> RevisionID { try #require(RevisionID(text)) }

    @Test func `a name has the original's generation and digest, the origin's digest, and a check`() throws {
        let original = try id("258-0123456789abcdef0123456789abcdef01234567")
        let origin = try id("1-fedcba9876543210fedcba9876543210fedcba98")
        let parent = try id("7-00ff")
        let copy = CopyName(original: original, origin: origin).id(over: parent, of: "döc", sha1: Self.sha1)
        let claim: [UInt8] = [0, 0, 1, 2, 0x01, 0x23, 0x45, 0x67, 0x89, 0xFE, 0xDC, 0xBA]
        let check = Self.sha1(Array("loveseat copy 1döc".utf8) + claim + Array("7-00ff".utf8)).prefix(8)
        #expect(copy == RevisionID(generation: 8, digest: claim + check))
        let name = try #require(CopyName(copy))
        #expect(try name.original == id("258-0123456789"))
        #expect(try name.origin == id("1-fedcba"))
    }

    @Test func `only the very document, parent and digest make a copy`() throws {
        var generator = SeededGenerator(seed: 44)
        for _ in 0..<500 {
            let (original, origin, parent) = (
                RevisionID(generation: UInt32(generator.int(1...1 << 31 - 1)), digest: generator.bytes(20)),
                RevisionID(generation: 1, digest: generator.bytes(generator.pick([1, 2, 16, 20]))),
                RevisionID(generation: UInt32(generator.int(1...100_000)), digest: generator.bytes(20))
            )
            let copy = CopyName(original: original, origin: origin).id(over: parent, of: "a", sha1: Self.sha1)
            func isCopy(_ id: RevisionID, _ parent: RevisionID, _ document: String) -> Bool {
                CopyName.isCopy(id, over: parent, of: document, sha1: Self.sha1)
            }
            #expect(isCopy(copy, parent, "a"))
            #expect(!isCopy(copy, parent, "b"))
            #expect(!isCopy(copy, original, "a"))
            var text = Array(copy.text)
            let place = generator.int(text.count - 40...text.count - 1)
            text[place] = text[place] == "0" ? "1" : "0"
            #expect(try !isCopy(id(String(text)), parent, "a"))
            #expect(
                !isCopy(
                    RevisionID(generation: parent.generation + 1, digest: generator.bytes(20)),
                    parent,
                    "a"
                )
            )
        }
    }

    @Test func `originals whose digests are short, or not hexadecimal, are named too`() throws {
        for text in ["1-a", "3-ab", "2-foo", "4-ABCDEF0123456789", "9-967a00dff5e02add41819138abb3284d"] {
            let original = try id(text)
            let parent = try id("3-aa")
            let copy = CopyName(original: original, origin: original).id(
                over: parent,
                of: "a",
                sha1: Self.sha1
            )
            let name = try #require(CopyName(copy))
            #expect(name.isOf(original))
            #expect(name.isOfLine(original))
        }
    }

    @Test func `nothing with another length or an impossible generation is the name of a copy`() throws {
        for text in [
            "2-00", "2-" + String(repeating: "0", count: 40), "2-ff" + String(repeating: "0", count: 38),
        ] {
            #expect(try CopyName(id(text)) == nil)
        }
    }
}
