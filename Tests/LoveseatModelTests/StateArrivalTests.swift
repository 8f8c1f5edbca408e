import LoveseatModel
import Testing

/// States of peers with versions, as trees take them in. Numbers in comments are those of version-vectors.md §18.
@Suite struct StateArrivalTests {
    @Test func `a first state gets a name of the tree, and keeps its vector as received`() throws {
        var tree = RevisionTree()
        #expect(try tree.take("T3@b; T1@a") { $0.remote = 1 } == .inserted)
        let id = try States.id("T3@b")
        #expect(tree.current?.id == id)
        #expect(id.generation == 1)
        #expect(try tree.versions.state(of: id) == States.state("T3@b; T1@a"))
        #expect(tree.remotes[1] == id)
        // 36
        #expect(try tree.take("T3@b; T1@a") { $0.remote = 2 } == .alreadyPresent)
        #expect(tree.remotes[2] == id)
        #expect(tree.nodes.count == 1)
    }

    @Test func `the revisions behind a vector become its ancestors, also with gaps`() throws {
        var tree = RevisionTree()
        try tree.take("T1@b", "5-cc 3-bb 1-aa")
        let id = try States.id("T1@b", over: "5-cc")
        #expect(tree.line(id) == [id, rev("5-cc"), rev("3-bb"), rev("1-aa")])
        #expect(try tree.versions.state(of: id) == States.state("T1@b", "5-cc 3-bb 1-aa"))
    }

    @Test func `a revision behind a vector that is not here is added, above the current one or beside it`()
        throws
    {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: body(0))
        tree.insertLocal(rev("2-bb"), parent: rev("1-aa"), flags: [], body: body(1))
        var newer = tree
        #expect(try newer.take("T1@b", "3-cc 2-bb 1-aa", 2) == .inserted)
        let id = try States.id("T1@b", over: "3-cc")
        #expect(newer.line(id) == [id, rev("3-cc"), rev("2-bb"), rev("1-aa")])
        // In conflict with it: the two parted at the first revision.
        #expect(try tree.take("T1@b", "2-dd 1-aa", 2) { $0.asksResolver = true } == .pending)
        let rival = try States.id("T1@b", over: "2-dd")
        #expect(tree.line(rival) == [rival, rev("2-dd"), rev("1-aa")])
        #expect(tree.commonAncestor(rival, rev("2-bb")) == rev("1-aa"))
    }

    @Test func `a list that contradicts the tree is ignored`() throws {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: body(0))
        tree.insertLocal(rev("2-bb"), parent: rev("1-aa"), flags: [], body: body(1))
        try tree.take("T1@b", "2-bb 1-dd", 2)
        #expect(tree.current?.body == body(2))
        #expect(tree.current?.parent == rev("2-bb"))
        #expect(!tree.contains(rev("1-dd")))
    }

    // 39
    @Test func `a newer state becomes a child of what it was made from`() throws {
        var tree = RevisionTree()
        try tree.insert("4-aa", over: nil, "T1@a", body: body(0))
        #expect(try tree.take("T3@b; T1@a", "", 1) == .inserted)
        let id = try States.id("T3@b", over: "4-aa")
        #expect(tree.current?.id == id)
        #expect(tree.line(id) == [id, rev("4-aa")])
        #expect(tree.closed.isEmpty)
        // Through a revision without a version: by its list, and by the version that stands for it.
        for (short, revisions) in [("T1@b", "4-bb 3-aa"), ("T1@b; 4bb00000000@enc", "")] {
            var tree = RevisionTree()
            tree.insertLocal(rev("4-bb"), parent: nil, flags: [], body: body(0))
            try tree.take(short, revisions, 1)
            #expect(tree.current?.body == body(1))
            #expect(tree.current?.parent == rev("4-bb"))
        }
    }

    // 38
    @Test func `a state that is part of the current one changes nothing but the mark`() throws {
        var tree = RevisionTree()
        try tree.insert("2-aa", over: nil, "T5@a; T3@b")
        tree.recordMark(of: 1, at: rev("2-aa"))
        for (short, revisions) in [("T3@b", ""), ("T2@b; T1@c", ""), ("T2@a", "")] {
            var after = tree
            #expect(try after.take(short, revisions) { $0.remote = 1 } == .alreadyPresent)
            #expect(after.nodes == tree.nodes)
            // The peer is offered the current state once more.
            #expect(after.remotes.isEmpty)
            #expect(try after.take(short, revisions) { $0.remote = 1 } == .alreadyPresent)
        }
        #expect(try tree.take("T2@b") { ($0.remote, $0.isOutdated) = (1, true) } == .alreadyPresent)
        #expect(tree.remotes[1] == rev("2-aa"))
    }

    // R4
    @Test func `a state that is here brings what its vector has grown by`() throws {
        var tree = RevisionTree()
        try tree.insert("2-aa", over: nil, "T5@a; T3@b")
        #expect(try tree.take("T5@a; T4@c") == .alreadyPresent)
        #expect(try tree.currentVector == vector("T5@a; T4@c, T3@b"))
        // The version that stands for a revision says nothing more.
        var legacy = RevisionTree()
        legacy.insertLocal(rev("2-bb"), parent: nil, flags: [], body: body(0))
        #expect(try legacy.take("2bb00000000@enc") == .alreadyPresent)
        #expect(legacy.vectors.isEmpty)
        #expect(try legacy.take("2bb00000000@enc; T1@a") == .alreadyPresent)
        #expect(try legacy.versions.state(of: rev("2-bb")) == States.state("2bb00000000@enc; T1@a"))
    }

    // 59
    @Test func `a passive peer refuses a conflict, and nothing changes`() throws {
        var tree = RevisionTree()
        try tree.insert("2-aa", over: nil, "T5@a; T3@b", body: body(0))
        let before = tree
        for (short, revisions) in [("T4@c; T3@b", ""), ("T4@b", ""), ("", "9-cc 8-bb"), ("T9@c", "2-ab")] {
            #expect(throws: RevisionTree.InsertRefusal.conflict) {
                try tree.take(short, revisions) { $0.refusesConflicts = true }
            }
            #expect(tree == before)
        }
    }

    @Test func `a state that nobody may have is refused`() throws {
        var tree = RevisionTree()
        for short in ["", "ffffffffff@a", "T1@a; 8000000000000000@b"] {
            #expect(throws: RevisionTree.InsertRefusal.badHistory) { try tree.take(short) }
        }
        tree.insertLocal(rev("4294967295-aa"), parent: nil, flags: [], body: body(0))
        #expect(throws: RevisionTree.InsertRefusal.badHistory) { try tree.take("T1@a", "4294967295-aa") }
        #expect(throws: RevisionTree.InsertRefusal.badHistory) { try tree.take("", "1-aa 2-bb") }
    }

    // 40
    @Test func `a conflict waits for the resolver, and a newer state of the peer takes its place`() throws {
        var tree = RevisionTree()
        try tree.insert("2-aa", over: nil, "T5@a; T3@b", body: body(0))
        func ask(_ arrival: inout StateArrival) { (arrival.asksResolver, arrival.remote) = (true, 1) }
        #expect(try tree.take("T4@c; T3@b", "", 1, ask) == .pending)
        #expect(try tree.take("T4@c; T3@b", "", 1, ask) == .alreadyPresent)
        #expect(try tree.take("T7@c; T3@b", "", 2, ask) == .pending)
        #expect(tree.pending.map(\.body) == [body(2)])
        #expect(tree.current?.id == rev("2-aa"))
        #expect(tree.remotes[1] == tree.pending.first?.id)
        // One that includes both ends the conflict.
        #expect(try tree.take("T8@b; T7@c, T5@a", "", 3, ask) == .inserted)
        #expect(tree.pending.isEmpty)
        #expect(tree.current?.body == body(3))
        #expect(tree.candidates.filter { !tree.closed.contains($0.original) }.count == 1)
    }

    @Test func `a state closes the candidates that it includes, and no other`() throws {
        var open = RevisionTree()
        for (id, short) in [("5-aa", "T5@a"), ("4-bb", "T4@b"), ("3-cc", "T3@c")] {
            try open.receive(id, short)
        }
        try open.take("T6@d; T5@a, T4@b", "", 7)
        #expect(open.current?.body == body(7))
        #expect(open.closed == [rev("4-bb")])
        #expect(Set(open.open(among: open.candidates).map(\.original)) == [rev("3-cc"), open.current?.id])
    }

    // 42, correction 13
    @Test func `a later revision without a history continues the one that the peer had`() throws {
        var tree = RevisionTree()
        tree.insertLocal(rev("2-bb"), parent: nil, flags: [], body: body(0))
        tree.recordMark(of: 1, at: rev("2-bb"))
        func from(_ remote: Int?, _ known: String?) -> (inout StateArrival) -> Void {
            { ($0.remote, $0.knownRevision, $0.asksResolver) = (remote, known.map(rev), true) }
        }
        var after = tree
        #expect(try after.take("", "4-dd", 1, from(1, "2-bb")) == .inserted)
        #expect(after.line(rev("4-dd")) == [rev("4-dd"), rev("2-bb")])
        #expect(after.current?.id == rev("4-dd"))
        // Of a lower generation; from another peer; without that it was told.
        for (revision, remote, known) in [("2-dd", 1, "2-bb"), ("4-dd", 2, "2-bb"), ("4-dd", 1, nil)]
            as [(String, Int, String?)]
        {
            var after = tree
            #expect(try after.take("", revision, 1, from(remote, known)) == .pending)
            #expect(after.current?.id == rev("2-bb"))
        }
        // With a history it needs nothing else. An edit here is in conflict with it, on top of the same revision.
        #expect(try tree.take("", "3-ee 2-bb", 1) == .inserted)
        tree.recordMark(of: 1, at: rev("3-ee"))
        tree.insertLocal(rev("4-ff"), parent: rev("3-ee"), flags: [], body: body(2))
        #expect(try tree.take("", "5-dd", 3, from(1, "3-ee")) == .pending)
        #expect(tree.commonAncestor(rev("5-dd"), rev("4-ff")) == rev("3-ee"))
    }

    // 41: all conditions of §11.5 step 4, each negated.
    @Test func `a document that was created anew behind a deletion is taken`() throws {
        func deleted(_ short: String, isDeleted: Bool = true, mark: String? = nil) throws -> RevisionTree {
            var tree = RevisionTree()
            tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: body(0))
            try tree.insert("2-bb", over: "1-aa", short, flags: isDeleted ? .deleted : [], body: body(9))
            tree.recordMark(of: 1, at: rev(mark ?? "2-bb"))
            return tree
        }
        func ask(_ arrival: inout StateArrival) { (arrival.asksResolver, arrival.remote) = (true, 1) }
        var tree = try deleted("T3@b")
        #expect(try tree.take("T2@c", "", 1, ask) == .inserted)
        #expect(tree.current?.body == body(1))
        #expect(tree.open(among: tree.candidates).count == 1)
        var alive = try deleted("T3@b", isDeleted: false)
        #expect(try alive.take("T2@c", "", 1, ask) == .pending)
        var elsewhere = try deleted("T3@b", mark: "1-aa")
        #expect(try elsewhere.take("T2@c", "", 1, ask) == .pending)
        var related = try deleted("T3@b; T1@c")
        #expect(try related.take("T2@c", "", 1, ask) == .pending)
        for revisions in ["2-bb", "1-aa"] {
            var listed = try deleted("T3@b")
            let outcome = try listed.take("T2@c", revisions, 1, ask)
            #expect(outcome == (revisions == "2-bb" ? .inserted : .pending))
        }
        var other = try deleted("T3@b")
        #expect(try other.take("T2@c", "", 1) { ($0.asksResolver, $0.remote) = (true, 2) } == .pending)
        // 5.: on the passive side, whatever it has been told.
        var passive = try deleted("T3@b")
        #expect(try passive.take("T2@c", "", 1) { $0.refusesConflicts = true } == .inserted)
        #expect(passive.current?.body == body(1))
    }

    /// `simulate --versions`, seeds 60 and 77: Couchbase Lite 4 refuses a list that it has not.
    @Test func `a peer whose vector has a version for a revision is sent no list of revisions`() throws {
        var tree = RevisionTree()
        try tree.take("T1@a; 3cc00000000@enc", "3-cc 2-bb")
        try tree.take("T2@b; T1@a, 3cc00000000@enc")
        let id = try #require(tree.current?.id)
        #expect(!tree.versions.state(of: id).revisions.isEmpty)
        #expect(try tree.versions.state(of: id, toPeerWith: [States.name("T1@a")]).revisions.isEmpty)
    }

    @Test func `the tail for a peer begins with what it has`() throws {
        var tree = RevisionTree()
        try tree.take("T1@a", "3-cc 2-bb")
        try tree.take("T2@b; T1@a")
        let id = try #require(tree.current?.id)
        let full = try States.state("T2@b; T1@a", "3-cc 2-bb")
        #expect(tree.versions.state(of: id) == full)
        // A peer that has nothing drops it, and a tombstone, which is not named, may have it.
        #expect(tree.versions.state(of: id, toPeerWith: []) == full)
        #expect(
            try tree.versions.state(of: id, toPeerWith: [States.name("2-bb")])
                == States.state("T2@b; T1@a", "2-bb")
        )
        #expect(try tree.versions.state(of: id, toPeerWith: [States.name("T1@a")]) == full)
        #expect(
            try tree.versions.state(of: id, toPeerWith: [States.name("3cc00000000@enc")])
                == States.state("T2@b; T1@a")
        )
        // Without a vector, it ends there.
        let legacy = rev("3-cc")
        #expect(
            try tree.versions.state(of: legacy, toPeerWith: [States.name("2-bb")])
                == States.state("", "3-cc 2-bb")
        )
        #expect(
            try tree.versions.state(of: legacy, toPeerWith: [States.name("3-cc")]) == States.state("", "3-cc")
        )
        #expect(try tree.versions.state(of: legacy, toPeerWith: []) == States.state("", "3-cc 2-bb"))
    }
}
