import LoveseatModel
import Testing

/// The ends of what is stored of a tree: each test names the change of the decoder that it notices.
@Suite struct StoredTreeTests {
    private func decoded(_ bytes: [UInt8]) -> RevisionTree? {
        RevisionTreeDecoder.decode(bytes, currentBody: .emptyObject) { $0 }
    }

    /// A byte that is expected behind a body.
    @Test func `the body of the last revision may be the end of a tree of version 1`() throws {
        // 2-cc, and beside it 2-bb with a body. No remote has either.
        let start: [UInt8] = [1, 3, 0, 2, 2, 1, 0xCC, 0, 0, 0, 1, 1, 0xAA, 0]
        let bytes = start + [0, 2, 2, 1, 0xBB, 3, 0x7B, 0x7D]
        let tree = try #require(decoded(bytes))
        #expect(tree.node(rev("2-bb"))?.body?.bytes == Array("{}".utf8))
        #expect(tree.current?.id == rev("2-cc"))
        for count in 0..<bytes.count { #expect(decoded(Array(bytes.prefix(count))) == nil, "\(count)") }
    }

    /// A smaller number of revisions with fingerprints.
    @Test func `each revision may have fingerprints of forgotten ones, and no more than there are`() {
        // 3-cc, whose parent is not known, and the fingerprint of one before it.
        let start: [UInt8] = [3, 1, 0, 0, 3, 1, 0xCC, 0, 0, 0, 0]
        let fingerprints: [UInt8] = [0, 1, 1, 2, 3, 4]
        #expect(decoded(start + [0])?.current?.id == rev("3-cc"))
        #expect(decoded(start + [1] + fingerprints)?.current?.id == rev("3-cc"))
        #expect(decoded(start + [2] + fingerprints + fingerprints) == nil)
    }
}
