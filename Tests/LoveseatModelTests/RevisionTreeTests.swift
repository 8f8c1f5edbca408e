import LoveseatModel
import LoveseatTesting
import Testing

@Suite struct RevisionTreeTests {
    private func body(_ text: String) -> JSONText { JSONText(canonical: ["text": .string(text)]) }

    /// A received revision; its content is its own ID, unless said otherwise.
    private func arrival(
        _ history: [String],
        from sender: RevisionTree.PeerKind = .loveseat,
        flags: RevisionTree.Flags = [],
        remote: Int? = nil,
        body: JSONText? = nil
    ) -> RevisionArrival {
        var arrival = RevisionArrival(
            history: history.map(rev),
            flags: flags,
            body: body ?? self.body(history.first ?? ""),
            sender: sender
        )
        arrival.remote = remote
        return arrival
    }

    private func tree(_ histories: [[String]]) throws -> RevisionTree {
        var tree = RevisionTree()
        for history in histories { _ = try tree.insert(arrival(history)) }
        return tree
    }

    @Test func `of one document the higher revision stands, and a deletion before it`() throws {
        var tree = try tree([["2-bb", "1-aa"], ["3-cc", "2-cc", "1-aa"]])
        #expect(tree.current?.id == rev("3-cc"))
        #expect(tree.ancestors(of: rev("3-cc")) == [rev("2-cc"), rev("1-aa")])
        _ = try tree.insert(arrival(["2-dd", "1-aa"], flags: .deleted))
        #expect(tree.current?.id == rev("2-dd"))
    }

    @Test func `a deletion says nothing about a document that its author never saw`() throws {
        var tree = try tree([["1-bb"]])
        _ = try tree.insert(arrival(["9-dd", "8-cc"], flags: .deleted))
        #expect(tree.current?.id == rev("1-bb"))
    }

    @Test func `a local edit decides against every other candidate that was known`() throws {
        var tree = try tree([["2-bb", "1-aa"], ["3-cc", "2-cc", "1-aa"]])
        tree.insertLocal(rev("4-dd"), parent: rev("3-cc"), flags: [], body: body("d"))
        #expect(tree.closed == [rev("2-bb")])
        tree.insertLocal(rev("5-ee"), parent: rev("4-dd"), flags: .deleted, body: .emptyObject)
        #expect(tree.current?.id == rev("5-ee"))
    }

    @Test func `what a hub goes back to stands again, also if it was given up and forgotten here`() throws {
        var tree = RevisionTree()
        let branches = (0..<40).map { "2-\(String($0 + 16, radix: 16))" }
        for branch in branches {
            _ = try tree.insert(arrival([branch, "1-aa"], from: .hub, remote: 1))
            #expect(tree.current?.id == rev(branch))
        }
        tree.insertLocal(rev("3-dd"), parent: rev(branches[39]), flags: [], body: body("d"))
        tree.recordMark(of: 1, at: rev("3-dd"))
        #expect(!tree.contains(rev(branches[0])))
        #expect(tree.closed.contains(rev(branches[0])))
        _ = try tree.insert(arrival([branches[0], "1-aa"], from: .hub, remote: 1))
        #expect(tree.current?.id == rev(branches[0]))
        // One that is remembered.
        tree.follow(1, to: rev(branches[38]))
        #expect(tree.current?.id == rev(branches[38]))
        // What was edited here since, and the hub has not got, is no repetition.
        tree.insertLocal(rev("3-ee"), parent: rev(branches[38]), flags: [], body: body("e"))
        tree.follow(1, to: rev(branches[37]))
        #expect(tree.current?.id == rev("3-ee"))
    }

    @Test(arguments: [true, false])
    func `a resolver is not asked where the sender only pruned what it had sent before`(_ names: Bool) throws
    {
        var tree = RevisionTree()
        _ = try tree.insert(arrival(["3-cc", "2-bb", "1-aa"], from: .loveseat, remote: 1))
        var later = arrival(
            ["7-ff", "6-ff", "5-ff", "4-ff", "3-faded000", "2-bb"],
            from: .loveseat,
            remote: 1
        )
        later.asksResolver = true
        if names {
            // The sender still has it beside its own.
            var known = TreeKnowledge()
            known.nodes = [.init(id: rev("3-cc"), parent: rev("2-bb"), flags: [], body: body("c"))]
            later.knowledge = known
        }
        #expect(try tree.insert(later) == (names ? .pending : .inserted))
        #expect(tree.current?.id == rev(names ? "3-cc" : "7-ff"))
    }

    @Test func `what was made anew over a hub's tombstone stands, also when the hub's answer is lost`() throws
    {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-cc"), parent: nil, flags: [], body: body("new"))
        _ = try tree.insert(arrival(["2-bb", "1-aa"], from: .hub, flags: .deleted, remote: 1))
        #expect(tree.current?.id == rev("1-cc"))
        var lost = tree
        let copy = try tree.putOnHub(over: rev("2-bb"))
        #expect(tree.current?.id == copy)
        try take([copy, rev("2-bb"), rev("1-aa")], body("new"), in: &lost)
        #expect(lost.current?.id == copy)
        #expect(lost.copies == tree.copies)
        // Whoever deletes what the hub shows deletes both.
        tree.insertLocal(rev("4-ee"), parent: copy, flags: .deleted, body: .emptyObject)
        #expect(tree.current?.id == rev("4-ee"))
    }

    @Test
    func `a database that forgot the middle of a line does not forget what another one took for its end`()
        throws
    {
        func line(_ generations: ClosedRange<Int>) -> [String] {
            generations.reversed().map { "\($0)-\($0 + 10)" }
        }
        var short = RevisionTree()
        let policy = TreePolicy(depth: 4)
        // It hears of a tombstone deep in the line from somebody who knows no more, and what came after it from another.
        var pruned = arrival(["12-22"] + line(9...11))
        pruned.origin = rev("1-11")
        _ = try short.insert(pruned, by: policy)
        _ = try short.insert(arrival(line(1...3), flags: .deleted), by: policy)
        #expect(short.current?.id == rev("3-13"))
        _ = try short.insert(arrival(line(1...12)), by: policy)
        #expect(short.current?.id == rev("12-22"))
        #expect(short.isLine)
        #expect(short.isTold)
        // Whoever has it as a leaf hears so.
        var behind = RevisionTree()
        _ = try behind.insert(arrival(line(1...3), flags: .deleted), by: policy)
        try behind.merge(short.knowledge, by: policy)
        #expect(behind.current?.id == rev("12-22"))
        #expect(behind.isLine)
    }

    @Test
    func `a branch that turns out to be a part of the line is told to those who heard of it as a branch`()
        throws
    {
        var tree = try tree([["4-dd", "3-cc"], ["2-bb", "1-aa"]])
        let heard = tree.knowledge
        #expect(tree.leaves.count == 2)
        let before = tree
        _ = try tree.insert(arrival(["4-dd", "3-cc", "2-bb", "1-aa"]))
        #expect(tree.isLine)
        #expect(tree.isTold)
        #expect(tree.hasMoreKnowledge(than: before))
        #expect(!tree.agrees(with: heard))
        var other = RevisionTree()
        try other.merge(heard)
        try other.merge(tree.knowledge)
        #expect(other.isLine)
        #expect(other.current?.id == rev("4-dd"))
    }

    @Test func `two databases that both lack the body of the best candidate show the same`() throws {
        var one = try tree([["3-cc", "2-bb", "1-aa"]])
        var knowledge = TreeKnowledge()
        knowledge.nodes = [
            RevisionTree.Node(id: rev("1-ff"), parent: nil, flags: [], body: nil),
            RevisionTree.Node(id: rev("2-dd"), parent: rev("1-dd"), flags: .deleted, body: .emptyObject),
            RevisionTree.Node(id: rev("1-dd"), parent: nil, flags: [], body: nil),
        ]
        knowledge.closed = [rev("3-cc")]
        let agrees = try one.merge(knowledge, current: rev("2-dd"), remote: 1, by: .standard)
        #expect(agrees)
        #expect(one.current?.id == rev("2-dd"))
        #expect(one.closed == [rev("3-cc")])
    }

    @Test func `a client's revision must descend from the current one`() throws {
        var tree = try tree([["2-bb", "1-aa"]])
        for history in [["2-cc", "1-aa"], ["1-cc"]] {
            #expect(throws: RevisionTree.InsertRefusal.conflict) {
                var copy = tree
                _ = try copy.insert(arrival(history, from: .client))
            }
        }
        let outcome = try tree.insert(arrival(["3-cc", "2-bb"], from: .client))
        #expect(outcome == .inserted)
        #expect(tree.current?.id == rev("3-cc"))
        let again = try tree.insert(arrival(["2-bb", "1-aa"], from: .client))
        #expect(again == .alreadyPresent)
    }

    @Test func `a client that never had a deleted document may make it anew`() throws {
        var tree = RevisionTree()
        _ = try tree.insert(arrival(["2-bb", "1-aa"], flags: .deleted))
        // An edit of what was deleted is beside the deletion (simulator with a hub, seed 50711).
        #expect(throws: RevisionTree.InsertRefusal.conflict) {
            var copy = tree
            _ = try copy.insert(arrival(["2-cc", "1-aa"], from: .client))
        }
        let outcome = try tree.insert(arrival(["1-cc"], from: .client))
        #expect(outcome == .inserted)
        #expect(tree.current?.id == rev("1-cc"))
    }

    @Test(arguments: [
        ["4-cc", "2-bb"], [], ["2-bb", "3-cc"], ["2-bb", "2-cc"], ["4294967295-aa", "1-bb"],
    ])
    func `a history that skips or goes up is refused`(history: [String]) throws {
        var tree = try tree([["1-aa"]])
        #expect(throws: RevisionTree.InsertRefusal.badHistory) { try tree.insert(arrival(history)) }
    }

    @Test func `a line that names two parents of a revision is refused`() throws {
        let tree = try tree([["3-cc", "2-bb", "1-aa"]])
        #expect(throws: RevisionTree.InsertRefusal.badHistory) {
            var copy = tree
            _ = try copy.insert(arrival(["4-dd", "3-cc", "2-ee"]))
        }
    }

    @Test func `invented ancestors that fill a gap are not taken for revisions`() throws {
        let tree = try tree([["3-cc", "2-faded00012345678", "1-aa"]])
        #expect(tree.line(rev("3-cc")) == [rev("3-cc"), rev("1-aa")])
    }

    // MARK: Hubs

    @Test func `a copy on a hub's line supersedes nothing, and ranks as its original`() throws {
        var tree = try tree([["1-aa"]])
        tree.insertLocal(rev("2-bb"), parent: rev("1-aa"), flags: [], body: body("mine"))
        let copy = copyID(rev("2-bb"), rev("1-aa"), over: rev("2-cc"))
        try take([copy, rev("2-cc"), rev("1-aa")], body("mine"), in: &tree)
        #expect(tree.original(copy) == rev("2-bb"))
        #expect(tree.current?.id == copy)
        _ = try tree.insert(arrival(["2-ff", "1-aa"]))
        #expect(tree.current?.id == rev("2-ff"))
    }

    @Test func `what merely repeats what a hub said before has no say`() throws {
        var tree = RevisionTree()
        _ = try tree.insert(arrival(["2-bb", "1-aa"], from: .hub, flags: .deleted, remote: 1))
        _ = try tree.insert(arrival(["60-cc", "59-cc"], from: .hub, remote: 1))
        #expect(tree.current?.id == rev("60-cc"))
        // Also where the hub purged a live document and it was made anew.
        _ = try tree.insert(arrival(["1-dd"], from: .hub, remote: 1))
        #expect(tree.current?.id == rev("1-dd"))
    }

    @Test func `an edit that the hub never had is no repetition`() throws {
        var tree = RevisionTree()
        _ = try tree.insert(arrival(["1-aa"], from: .hub, remote: 1))
        tree.insertLocal(rev("2-bb"), parent: rev("1-aa"), flags: [], body: body("mine"))
        _ = try tree.insert(arrival(["1-cc"], from: .hub, remote: 1))
        #expect(tree.current?.id == rev("2-bb"))
    }

    @Test func `what a hub announced before it took ours closes nothing`() throws {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-bb"), parent: nil, flags: [], body: body("mine"))
        tree.recordMark(of: 1, at: rev("1-bb"))
        var old = arrival(["2-aa", "1-aa"], from: .hub, flags: .deleted, remote: 1)
        old.isOutdated = true
        _ = try tree.insert(old)
        // The hub is asked again what it has: it may have accepted a revision of a deleted line.
        #expect(tree.current?.id == rev("1-bb"))
        #expect(tree.isContradicted(by: 1))
    }

    @Test func `a copy that a hub took stands for its original`() throws {
        var tree = try tree([["3-aa", "2-aa", "1-aa"]])
        _ = try tree.insert(arrival(["2-bb", "1-aa"], from: .hub, remote: 1))
        #expect(tree.current?.id == rev("3-aa"))
        let copy = try tree.putOnHub(over: rev("2-bb"))
        #expect(tree.remotes[1] == copy)
        #expect(tree.original(copy) == rev("3-aa"))
        #expect(tree.current?.body == body("3-aa"))
    }

    // MARK: Resolvers

    private func pending() throws -> RevisionTree {
        var tree = try tree([["2-bb", "1-aa"]])
        var theirs = arrival(["2-cc", "1-aa"], remote: 1)
        theirs.asksResolver = true
        let outcome = try tree.insert(theirs)
        #expect(outcome == .pending)
        #expect(tree.current?.id == rev("2-bb"))
        #expect(tree.pending.map(\.id) == [rev("2-cc")])
        return tree
    }

    private func make(_ draft: RevisionDraft) -> RevisionTree.Node {
        let id = rev("\(draft.parent.generation + 1)-ee")
        return RevisionTree.Node(id: id, parent: draft.parent, flags: [], body: draft.body)
    }

    @Test func `a resolver's verdict closes the loser, a merge both, and leaves a new revision`() throws {
        let merge = ConflictVerdict.merged(body: body("m"), isDeleted: false, parent: rev("2-cc"))
        let cases: [(ConflictVerdict, String, [String])] = [
            (.local, "3-ee", ["2-cc"]), (.remote, "3-ee", ["2-bb"]), (.byRule, "2-cc", []),
            (merge, "3-ee", ["2-bb", "2-cc"]),
        ]
        for (verdict, current, closed) in cases {
            var tree = try pending()
            try VerdictWriter(policy: .standard, make: make)
                .resolve(rev("2-cc"), verdict, from: .loveseat, in: &tree)
            #expect(tree.current?.id == rev(current))
            #expect(tree.pending.isEmpty)
            #expect(tree.closed == Set(closed.map(rev)))
            if verdict == .local { #expect(tree.current?.parent == rev("2-bb")) }
            if verdict == .remote { #expect(tree.current?.parent == rev("2-cc")) }
        }
    }

    @Test func `nobody is asked about two deletions, equal content, or a deletion of another document`()
        throws
    {
        let cases: [(RevisionTree.Flags, [String], JSONText?)] = [
            (.deleted, ["2-cc", "1-aa"], nil), ([], ["2-cc", "1-aa"], body("2-bb")),
            ([], ["2-cc", "1-cc"], nil),
        ]
        for (flags, theirs, content) in cases {
            var tree = RevisionTree()
            _ = try tree.insert(arrival(["2-bb", "1-aa"], flags: content == nil ? .deleted : []))
            var arrival = arrival(theirs, flags: flags, remote: 1, body: content)
            arrival.asksResolver = true
            let outcome = try tree.insert(arrival)
            #expect(outcome == .inserted)
            #expect(tree.pending.isEmpty)
        }
    }

    // MARK: Storing

    @Test func `what a remote is known to have never goes back`() throws {
        var tree = try tree([["3-cc", "2-bb", "1-aa"]])
        tree.recordMark(of: 5, at: rev("3-cc"))
        tree.recordMark(of: 5, at: rev("2-bb"))
        #expect(tree.remotes[5] == rev("3-cc"))
    }

    @Test func `long histories are pruned; marks stay with their bodies, and origins`() throws {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: try JSONText("{\"n\":1}"))
        for generation in 2...200 {
            if generation == 11 { tree.recordMark(of: 7, at: rev("10-aa")) }
            tree.insertLocal(
                rev("\(generation)-aa"),
                parent: rev("\(generation - 1)-aa"),
                flags: [],
                body: try JSONText("{\"n\":\(generation)}")
            )
        }
        #expect(tree.nodes.count == 52)
        #expect(tree.node(rev("10-aa"))?.body?.description == "{\"n\":10}")
        #expect(tree.node(rev("199-aa"))?.body == nil)
        #expect(tree.ancestors(of: rev("200-aa")).suffix(2) == [rev("10-aa"), rev("1-aa")])
    }

    @Test func `a history of a hundred thousand ancestors is cut as it comes`() throws {
        var tree = RevisionTree()
        let history = (1...100_000).reversed().map { RevisionID(generation: $0, digest: [0xAB]) }
        _ = try tree.insert(
            RevisionArrival(history: history, flags: [], body: .emptyObject, sender: .hub)
        )
        #expect(tree.nodes.count <= RevisionTree.maximumDepth + 2)
        #expect(tree.line(history[0]).last == history.last)
    }

    @Test func `a tree of format 1 shows what it showed, and its closed branches stay closed`() throws {
        // 3-cc is current; 2-bb lost, closed by the tombstone 3-dead; 2-ee waits for a resolver.
        func node(_ flags: UInt8, _ parent: UInt8, _ generation: UInt8, _ digest: [UInt8], _ body: String?)
            -> [UInt8]
        {
            [flags, parent, generation, UInt8(digest.count)] + digest
                + (body.map { [UInt8($0.utf8.count + 1)] + Array($0.utf8) } ?? [0])
        }
        var bytes: [UInt8] = [1, 6]
        bytes += node(0, 6, 3, [0xCC], nil) + node(5, 3, 3, [0xDE, 0xAD], "{}") + node(0, 5, 2, [0xBB], "{}")
        bytes += node(2, 5, 2, [0xEE], "{\"x\":1}") + node(0, 0, 1, [0xAA], nil)
        bytes += node(0, 5, 2, [0xCC], nil) + [7, 2]
        let tree = try #require(
            RevisionTreeDecoder.decode(bytes, currentBody: .emptyObject) { leaf in
                RevisionID(generation: leaf.generation + 1, digest: [0xDE, 0xAD])
            }
        )
        #expect(tree.current?.id == rev("3-cc"))
        #expect(!tree.contains(rev("3-dead")))
        #expect(tree.closed == [rev("2-bb")])
        #expect(tree.pending.map(\.id) == [rev("2-ee")])
        #expect(tree.remotes == [7: rev("2-bb")])
        #expect(tree.problems.isEmpty)
    }

    /// Version 0.2.0 took for a copy what had the same content.
    @Test
    func `a tree of version 3 with recognised copies keeps its current revision, and takes them for edits`()
        throws
    {
        func id(_ generation: UInt8, _ digest: UInt8) -> [UInt8] { [generation, 1, digest] }
        // 3-0c on the hub's 2-bb has the content of 2-aa, which was edited since: 3-aa is current.
        var bytes: [UInt8] = [3, 5, 0, 3] + id(3, 0xAA) + [0]
        bytes += [0, 4] + id(3, 0x0C) + [3, 0x7B, 0x7D]
        bytes += [0, 5] + id(2, 0xAA) + [0]
        bytes += [0, 5] + id(2, 0xBB) + [0]
        bytes += [0, 0] + id(1, 0xAA) + [0]
        bytes += [1, 7, 1] + [0] + [1] + id(3, 0x0C) + [1] + id(2, 0xAA) + id(1, 0xAA) + [0]
        var tree = try #require(RevisionTreeDecoder.decode(bytes, currentBody: body("x"), closing: { $0 }))
        #expect(tree.current?.id == rev("3-aa"))
        #expect(tree.copies.isEmpty)
        #expect(tree.closed == [rev("3-0c")])
        #expect(tree.remotes == [7: rev("3-0c")])
        // An edit at the hub is one.
        _ = try tree.insert(arrival(["4-ee", "3-0c"], from: .hub, remote: 7))
        #expect(tree.current?.id == rev("4-ee"))
    }

    @Test func `no bytes, however broken, make a tree that traps`() throws {
        var tree = try tree([
            ["3-cc", "2-bb", "1-aa"], ["3-dd", "2-bb"], ["1-0123456789abcdef0123456789abcdef01234567"],
        ])
        tree.recordMark(of: 3, at: rev("2-bb"))
        try tree.putOnHub(over: rev("1-0123456789abcdef0123456789abcdef01234567"))
        let bytes = try #require(RevisionTreeEncoder.encode(tree))
        let body = try #require(tree.current?.body)
        for count in 0..<bytes.count {
            _ = RevisionTreeDecoder.decode(Array(bytes.prefix(count)), currentBody: body) { $0 }
        }
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20_000 {
            var broken = bytes
            broken[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(
                in: 0...255,
                using: &generator
            )
            _ = RevisionTreeDecoder.decode(broken, currentBody: body) { $0 }?.current
        }
    }
}
