import LoveseatModel
import Testing

/// Rules of the tree of which a change by one hides from whole histories: each test names the change that it notices.
@Suite struct RevisionTreeEdgeTests {
    private func id(_ generation: Int, _ digest: Int = 0) -> RevisionID {
        RevisionID(generation: UInt32(generation), digest: [UInt8(digest >> 8), UInt8(digest & 255)])
    }

    private func arrival(
        _ history: [RevisionID],
        from sender: RevisionTree.PeerKind = .loveseat,
        asks: Bool = false
    ) -> RevisionArrival {
        var arrival = RevisionArrival(
            history: history,
            flags: [],
            body: JSONText(canonical: ["by": .string(history.first?.text ?? "")]),
            sender: sender
        )
        arrival.asksResolver = asks
        arrival.remote = sender == .client ? nil : 1
        return arrival
    }

    private func tree(_ histories: [[RevisionID]]) throws -> RevisionTree {
        var tree = RevisionTree()
        for history in histories { _ = try tree.insert(arrival(history)) }
        return tree
    }

    // MARK: Bodies

    /// `awaitsBody` without its look at what is superseded.
    @Test func `no body is awaited of a revision that was superseded, here or by what arrives`() throws {
        var tree = try tree([[id(2, 2), id(1)]])
        #expect(tree.node(id(1))?.body == nil)
        #expect(!tree.rule.awaitsBody(of: id(1)))
        #expect(!tree.rule.awaitsBody(of: id(2, 2)))
        #expect(!tree.rule.awaitsBody(of: id(9)))
        // A leaf without a body is awaited, until an edit of it comes.
        var knowledge = TreeKnowledge()
        knowledge.nodes = [
            .init(id: id(2, 3), parent: id(1), flags: [], body: nil),
            .init(id: id(1), parent: nil, flags: [], body: nil),
        ]
        try tree.merge(knowledge)
        #expect(tree.rule.awaitsBody(of: id(2, 3)))
        #expect(try tree.insert(arrival([id(3, 3), id(2, 3), id(1)])) == .inserted)
        #expect(!tree.rule.awaitsBody(of: id(2, 3)))
        // So its late arrival is no news.
        #expect(try tree.insert(arrival([id(2, 3), id(1)])) == .alreadyPresent)
    }

    // MARK: Clients

    /// `isKnown` without its look at forgotten revisions.
    @Test func `a client's revision that was pruned here is known, and no conflict`() throws {
        var tree = RevisionTree()
        let policy = TreePolicy(depth: 4)
        for generation in 1...10 {
            tree.insertLocal(
                id(generation),
                parent: generation > 1 ? id(generation - 1) : nil,
                flags: [],
                body: JSONText(canonical: ["n": JSONValue(generation)]),
                by: policy
            )
        }
        #expect(!tree.contains(id(4)))
        let before = tree
        let outcome = try tree.insert(arrival([id(4), id(3), id(2)], from: .client), by: policy)
        #expect(outcome == .alreadyPresent)
        #expect(tree == before)
        // Another revision of that generation is a conflict.
        #expect(throws: RevisionTree.InsertRefusal.conflict) {
            try tree.insert(arrival([id(4, 4), id(3), id(2)], from: .client), by: policy)
        }
    }

    // MARK: Pending revisions

    private func pending(_ theirs: [RevisionID]) throws -> RevisionTree {
        var tree = try tree([[id(2, 2), id(1)]])
        #expect(try tree.insert(arrival(theirs, asks: true)) == .pending)
        return tree
    }

    /// `pruneLines` without the pending revisions among those that are kept.
    @Test func `however little is kept of a line, what waits for a resolver is kept with its body`() throws {
        var tree = try pending([id(4, 4), id(3, 4), id(2, 4), id(1)])
        // Its mark would keep it, too.
        tree.forgetRemote(1)
        TreePolicy(depth: 0).prune(&tree)
        #expect(tree.pending.map(\.id) == [id(4, 4)])
        #expect(tree.pending.first?.body != nil)
        #expect(tree.current?.id == id(2, 2))
        #expect(!tree.contains(id(3, 4)))
        #expect(tree.problems.isEmpty)
    }

    /// `releasePending` without its look at children.
    @Test func `what waited for a resolver waits no more when an edit of it arrives`() throws {
        var tree = try pending([id(2, 4), id(1)])
        var edit = arrival([id(3, 4), id(2, 4), id(1)])
        edit.knowledge = TreeKnowledge()
        #expect(try tree.insert(edit) == .inserted)
        #expect(tree.pending.isEmpty)
        #expect(tree.node(id(2, 4))?.flags.contains(.pending) == false)
        #expect(tree.problems.isEmpty)
        #expect(Set(tree.candidates.map(\.node.id)) == [id(2, 2), id(3, 4)])
        // The resolver is asked about the edit instead.
        tree = try pending([id(2, 4), id(1)])
        #expect(try tree.insert(arrival([id(3, 4), id(2, 4), id(1)], asks: true)) == .pending)
        #expect(tree.pending.map(\.id) == [id(3, 4)])
        #expect(tree.problems.isEmpty)
    }

    // MARK: Histories

    /// `check` with a smaller number of revisions before a gap, or a gap that goes up.
    @Test func `a gap is allowed only below as many revisions as every peer keeps`() throws {
        let depth = RevisionTree.maximumDepth
        func history(_ count: Int, _ rest: [Int]) -> [RevisionID] {
            (0..<count).map { id(500 - $0) } + rest.map { id($0) }
        }
        for count in [1, 2, depth - 11, depth - 10, depth - 2] {
            #expect(throws: RevisionTree.InsertRefusal.badHistory, "\(count)") {
                _ = try tree([history(count, [1])])
            }
        }
        for count in [depth - 1, depth, depth + 1] {
            #expect(try tree([history(count, [1])]).line(id(500)).last == id(1))
            for rest in [[500], [501 - count], [600, 1]] {
                #expect(throws: RevisionTree.InsertRefusal.badHistory, "\(count) \(rest)") {
                    _ = try tree([history(count, rest)])
                }
            }
        }
        // A second gap is one, too.
        #expect(try tree([history(depth, [300, 20, 1])]).line(id(500)).last == id(1))
    }

    // MARK: Leaves

    private func branch(_ number: Int) -> RevisionBranch {
        RevisionBranch(
            history: [id(2, number), id(1)],
            flags: [],
            body: JSONText(canonical: ["n": JSONValue(number)])
        )
    }

    /// The bound of `insertBranch`, one more or less.
    @Test func `one after the other as many leaves are kept as allowed, and not one more`() throws {
        var tree = RevisionTree()
        let policy = TreePolicy(depth: 1_000)
        let branches = (0..<RevisionTree.keptLeaves - 1).map(branch)
        #expect(RevisionBranch.insert(branches, into: &tree, by: policy).allSatisfy { $0 == .success(true) })
        func insert(_ number: Int) throws -> Bool {
            try branch(number).insert(into: &tree, by: policy)
        }
        #expect(try insert(5_000))
        #expect(tree.leaves.count == RevisionTree.keptLeaves)
        let full = tree
        #expect(throws: RevisionTree.InsertRefusal.conflict) { try insert(5_001) }
        #expect(tree == full)
        // What is here already, and an edit of a leaf, add none.
        #expect(try !insert(5_000))
        let edit = RevisionBranch(history: [id(3), id(2, 7), id(1)], flags: [], body: branch(3).body)
        #expect(try edit.insert(into: &tree, by: policy))
        #expect(tree.leaves.count == RevisionTree.keptLeaves)
    }

    /// `insertAtOnce` without its bound.
    @Test(arguments: [0, 1]) func `at once as many leaves are kept as allowed, and not one more`(_ more: Int)
    {
        var tree = RevisionTree()
        let policy = TreePolicy(depth: 1_000)
        // The first two make it a document with branches.
        _ = RevisionBranch.insert([branch(0), branch(1)], into: &tree, by: policy)
        let rest = (2..<RevisionTree.keptLeaves + more).map(branch)
        let results = RevisionBranch.insert(rest, into: &tree, by: policy)
        #expect(results.count { $0 == .success(true) } == RevisionTree.keptLeaves - 2)
        #expect(results.count { $0 == .failure(.conflict) } == more)
        #expect(tree.leaves.count == RevisionTree.keptLeaves)
    }

    /// The bound of open candidates, one more or less: the lowest is closed.
    @Test(arguments: [0, 1, 2]) func `of more open candidates than are kept the lowest are closed`(
        _ more: Int
    )
        throws
    {
        let kept = 64
        let tree = try tree((1...kept + more).map { [id(2, $0), id(1)] })
        #expect(tree.closed == Set((0..<more).map { id(2, $0 + 1) }))
        #expect(tree.open(among: tree.candidates).count == kept)
        #expect(tree.current?.id == id(2, kept + more))
    }

    /// `closeLoser` that says of another revision that it was one.
    @Test func `only an open leaf that lost by the rule alone is closed as a loser`() throws {
        let tree = try tree([[id(2, 2), id(1)], [id(3, 3), id(2, 3), id(1)]])
        func isLoser(_ id: RevisionID, in tree: RevisionTree) -> Bool {
            var after = tree
            let isLoser = after.closeLoser(id, by: .standard)
            #expect(after.closed == (isLoser ? tree.closed.union([id]) : tree.closed))
            return isLoser
        }
        #expect(isLoser(id(2, 2), in: tree))
        // The current revision, its ancestors, and one that is not here.
        for other in [id(3, 3), id(2, 3), id(1), id(9)] { #expect(!isLoser(other, in: tree), "\(other)") }
        var closed = tree
        closed.giveUp(id(2, 2))
        var kept = tree
        kept.keepBranches()
        for tree in [closed, kept, try self.tree([[id(2, 2), id(1)]])] {
            #expect(!isLoser(id(2, 2), in: tree))
        }
        var beside = arrival([id(2, 4), id(1)])
        beside.flags = .deleted
        var deleted = tree
        _ = try deleted.insert(beside)
        #expect(!isLoser(id(2, 4), in: deleted))
        beside.flags = []
        beside.asksResolver = true
        var pending = tree
        _ = try pending.insert(beside)
        #expect(pending.pending.map(\.id) == [id(2, 4)])
        #expect(!isLoser(id(2, 4), in: pending))
    }

    // MARK: Knowledge

    /// `agrees` that looks at equal knowledge and denies it.
    @Test func `a tree agrees with its own knowledge, and not with less`() throws {
        let (one, both) = (
            try tree([[id(2, 2), id(1)]]), try tree([[id(2, 2), id(1)], [id(2, 3), id(1)]])
        )
        #expect(both.agrees(with: both.knowledge))
        #expect(!both.agrees(with: one.knowledge))
        #expect(!both.agrees(with: nil))
        var closed = both
        closed.giveUp(id(2, 2))
        #expect(closed.agrees(with: closed.knowledge))
        #expect(!closed.agrees(with: both.knowledge))
    }

    /// `merge` with the peer's current revision that does not keep former leaves.
    @Test func `a leaf that a peer's tree places within a line is told to others that may have it as a leaf`()
        throws
    {
        var tree = try tree([[id(4), id(3)], [id(2), id(1)]])
        #expect(tree.leaves.count == 2)
        let before = tree
        var knowledge = TreeKnowledge()
        for generation in 1...4 {
            let parent = generation > 1 ? id(generation - 1) : nil
            knowledge.nodes.append(.init(id: id(generation), parent: parent, flags: [], body: nil))
        }
        let agrees = try tree.merge(knowledge, current: id(4), remote: 1, by: .standard)
        #expect(agrees)
        #expect(tree.isLine)
        #expect(tree.isTold)
        #expect(tree.hasMoreKnowledge(than: before))
        #expect(tree.remotes[1] == id(4))
    }

    /// `link` that does not count its steps.
    @Test(arguments: [(300, true), (1_000, false)])
    func `a forged tree that takes too many steps to read is refused`(_ count: Int, _ isRead: Bool) throws {
        var knowledge = TreeKnowledge()
        func add(_ child: Int, _ parent: Int) {
            knowledge.nodes.append(.init(id: id(child), parent: id(parent), flags: [], body: nil))
        }
        knowledge.nodes.append(.init(id: id(1), parent: nil, flags: [], body: nil))
        for generation in 2...count { add(generation, generation - 1) }
        // All true, and a long way each.
        for generation in 1..<count { add(count, generation) }
        var tree = RevisionTree()
        if isRead {
            try tree.merge(knowledge)
            #expect(tree.line(id(count)).count == count)
        } else {
            #expect(throws: RevisionTree.InsertRefusal.badHistory) { try tree.merge(knowledge) }
        }
    }

    /// `isOnMarkedLine` that takes a hub without a mark for one that has the revision.
    @Test func `what an unknown hub announced before it took ours is what it may have`() throws {
        var tree = RevisionTree()
        tree.insertLocal(id(1, 2), parent: nil, flags: [], body: .emptyObject)
        var old = arrival([id(2, 3), id(1, 3)], from: .hub)
        old.flags = .deleted
        old.isOutdated = true
        _ = try tree.insert(old)
        #expect(tree.current?.id == id(1, 2))
        #expect(tree.remotes[1] == id(2, 3))
    }

    /// `replaceContent` that takes the content without its flags.
    @Test func `content that replaces damaged content brings its flags, and keeps the others`() throws {
        var tree = RevisionTree(
            nodes: [
                .init(id: id(2), parent: id(1), flags: [.hasBlobs, .verified], body: .emptyObject),
                .init(id: id(1), parent: nil, flags: [], body: nil),
            ],
            remotes: [:]
        )
        let intact = RevisionTree.Node(
            id: id(2),
            parent: nil,
            flags: [.deleted, .joint],
            body: JSONText(canonical: ["n": 1])
        )
        tree.replaceContent(of: id(2), with: intact)
        let node = try #require(tree.node(id(2)))
        #expect(node.flags == [.deleted, .verified])
        #expect(node.body == intact.body)
        #expect(node.parent == id(1))
    }

    /// `problems` with `>` for `>=`.
    @Test func `a parent that is not older, or not here, is a problem`() {
        for (parent, isProblem) in [(id(1), false), (id(2, 9), true), (id(3, 9), true), (id(1, 9), true)] {
            let others = parent == id(1, 9) ? [] : [parent]
            let tree = RevisionTree(
                nodes: [.init(id: id(2), parent: parent, flags: [], body: .emptyObject)]
                    + others.map { .init(id: $0, parent: nil, flags: [], body: nil) },
                remotes: [:]
            )
            #expect(tree.problems.isEmpty != isProblem, "\(parent)")
        }
    }
}
