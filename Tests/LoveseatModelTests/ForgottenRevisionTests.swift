import LoveseatModel
import LoveseatTesting
import Testing

/// What pruning removed from the middle of a line may be what a peer still has (docs/decisions/0001).
@Suite struct ForgottenRevisionTests {
    private func revision(_ generation: UInt32, _ digest: UInt8 = 0xAA) -> RevisionID {
        RevisionID(generation: generation, digest: [digest])
    }

    private let policy = TreePolicy(depth: 4)

    /// A line of which four revisions and the first one are kept.
    private func line(to last: UInt32) -> RevisionTree {
        var tree = RevisionTree()
        for generation in 1...last {
            tree.insertLocal(
                revision(generation),
                parent: generation > 1 ? revision(generation - 1) : nil,
                flags: [],
                body: JSONText(canonical: ["n": JSONValue(Int(generation))]),
                by: policy
            )
        }
        return tree
    }

    private func arrival(
        _ history: [RevisionID],
        from sender: RevisionTree.PeerKind = .loveseat
    ) -> RevisionArrival {
        var arrival = RevisionArrival(
            history: history,
            flags: [],
            body: JSONText(canonical: ["text": .string(history.first?.text ?? "")]),
            sender: sender
        )
        arrival.remote = 1
        arrival.asksResolver = sender == .loveseat
        return arrival
    }

    private func stored(_ tree: RevisionTree) throws -> RevisionTree {
        let (bytes, body) = (try #require(RevisionTreeEncoder.encode(tree)), try #require(tree.current?.body))
        let again = try #require(RevisionTreeDecoder.decode(bytes, currentBody: body) { $0 })
        #expect(again == tree)
        return again
    }

    @Test func `no resolver is asked about a forgotten revision that a peer went back to`() throws {
        var tree = try stored(line(to: 10))
        tree.recordMark(of: 1, at: revision(10))
        #expect(!tree.contains(revision(3)))
        #expect(try tree.insert(arrival([revision(3), revision(2), revision(1)]), by: policy) == .inserted)
        #expect(tree.pending.isEmpty)
        #expect(tree.candidates.map(\.node.id) == [revision(10)])
        // What the peer lacks is offered again, and the peer is told where its revision belongs.
        #expect(tree.remotes[1] == revision(3))
        #expect(tree.isTold)
        #expect(tree.problems.isEmpty)
    }

    @Test func `an edit beside a forgotten revision is a conflict`() throws {
        var tree = line(to: 10)
        #expect(
            try tree.insert(arrival([revision(3, 0xBB), revision(2), revision(1)]), by: policy) == .pending
        )
        #expect(tree.commonAncestor(revision(3, 0xBB), revision(10)) == revision(2))
    }

    @Test func `a hub that went back to a forgotten revision does not overrule what came after it`() throws {
        var tree = line(to: 10)
        tree.recordMark(of: 1, at: revision(10))
        _ = try tree.insert(arrival([revision(5), revision(4), revision(3)], from: .hub), by: policy)
        #expect(tree.current?.id == revision(10))
        #expect(tree.closed.isEmpty)
        #expect(tree.remotes[1] == revision(5))
    }

    @Test func `two forgotten revisions that arrive one after the other both find their places`() throws {
        var tree = line(to: 10)
        for (generation, origin) in [(5, 1), (3, 1), (4, 1)] as [(UInt32, UInt32)] {
            var arrival = arrival([revision(generation)])
            arrival.origin = revision(origin)
            #expect(try tree.insert(arrival, by: policy) == .inserted)
        }
        #expect(tree.isLine)
        #expect(Set(tree.line(revision(10))).isSuperset(of: [3, 4, 5].map { revision($0) }))
    }

    @Test func `a long line keeps a limited number of fingerprints`() throws {
        var tree = try stored(line(to: 1_000))
        #expect(try #require(RevisionTreeEncoder.encode(tree)).count < 1_000)
        #expect(
            try tree.insert(arrival([revision(900), revision(899), revision(898)]), by: policy) == .inserted
        )
        tree = line(to: 1_000)
        var old = arrival([revision(800)])
        old.origin = revision(1)
        #expect(try tree.insert(old, by: policy) == .pending)
    }

    @Test func `no broken fingerprints make a tree that traps`() throws {
        let tree = line(to: 20)
        let (bytes, body) = (try #require(RevisionTreeEncoder.encode(tree)), try #require(tree.current?.body))
        for count in 0..<bytes.count {
            #expect(RevisionTreeDecoder.decode(Array(bytes.prefix(count)), currentBody: body) { $0 } == nil)
        }
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20_000 {
            var broken = bytes
            broken[generator.int(0...bytes.count - 1)] = UInt8(generator.int(0...255))
            var read = RevisionTreeDecoder.decode(broken, currentBody: body) { $0 }
            _ = try? read?.insert(arrival([revision(12), revision(11), revision(10)]))
        }
    }
}
