import LoveseatModel
import Testing

/// The results of resolutions between a tree and a state of a peer with versions. Numbers in comments are those of version-vectors.md §18.
@Suite struct StateResolutionTests {
    /// What a document is named by, here or at a peer.
    enum Form: String, CaseIterable, Sendable {
        case vector, legacy, encoded
    }

    /// A document with an edit here, and another state of it that came from a peer and waits for a resolver.
    private static func conflict(_ mine: Form, _ theirs: Form) throws -> (
        tree: RevisionTree, remote: RevisionID
    ) {
        var tree = RevisionTree()
        switch mine {
        case .legacy:
            tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: body(0))
            tree.insertLocal(rev("2-bb"), parent: rev("1-aa"), flags: [], body: body(1))
        case .vector: try tree.insert("2-bb", over: nil, "T3@b; T1@a", body: body(1))
        case .encoded: try tree.insert("2-bb", over: nil, "2dd00000000@enc; T1@c", body: body(1))
        }
        let (short, revisions) =
            switch theirs {
            case .legacy: ("", "2-cc 1-aa")
            case .vector: ("T4@c; T1@a", "")
            case .encoded: ("2ee00000000@enc; T1@d", "")
            }
        let outcome = try tree.take(short, revisions, 2) { arrival in
            arrival.asksResolver = true
            arrival.remote = 1
        }
        #expect(outcome == .pending)
        let pending = try #require(tree.pending.first)
        #expect(tree.current?.id == rev("2-bb"))
        #expect(tree.remotes[1] == pending.id)
        return (tree, pending.id)
    }

    // 60: the table of §12. An empty vector: the revision has none.
    @Test(
        arguments: [
            (
                .vector, .vector, "T3@b; T4@c, T1@a", "T4@c; T3@b, T1@a",
                "18e9f1f060000001@d, T4@c, T3@b; T1@a"
            ),
            (.legacy, .legacy, "2bb00000000@enc", "", "T6@d"),
            (
                .legacy, .vector, "2bb00000000@enc; T4@c, T1@a", "T4@c; T1@a",
                "18e9f1f060000001@d, T4@c, 2bb00000000@enc; T1@a"
            ),
            (.legacy, .encoded, "T6@d; 2ee00000000@enc", "2ee00000000@enc; T1@d", "T6@d"),
            (
                .vector, .legacy, "T3@b; T1@a, 2cc00000000@enc", "2cc00000000@enc",
                "18e9f1f060000001@d, T3@b, 2cc00000000@enc; T1@a"
            ),
            (.encoded, .legacy, "T6@d; 2cc00000000@enc", "2cc00000000@enc", "T6@d"),
        ] as [(Form, Form, String, String, String)]
    )
    func `a resolution makes the vector of the specification's table`(
        mine: Form,
        theirs: Form,
        local: String,
        remote: String,
        merged: String
    ) throws {
        let verdicts: [(ConflictVerdict, String, JSONText)] = [
            (.local, local, body(1)), (.remote, remote, body(2)),
            (.merged(body: body(3), isDeleted: false, parent: rev("2-bb")), merged, body(3)),
            (.merged(body: .emptyObject, isDeleted: true, parent: rev("2-bb")), merged, .emptyObject),
        ]
        for (verdict, expected, content) in verdicts {
            var (tree, pending) = try Self.conflict(mine, theirs)
            let theirNames = [tree.versions.state(of: pending).name].compactMap(\.self)
            var resolution = try States.resolution()
            try resolution.resolve(pending, verdict, in: &tree)
            #expect(tree.problems.isEmpty)
            #expect(tree.pending.isEmpty)
            #expect(tree.current?.body == content)
            #expect(
                try tree.currentVector ?? VersionVector() == vector(expected),
                "\(mine), \(theirs), \(verdict)"
            )
            #expect(tree.candidates.filter { !tree.closed.contains($0.original) }.count == 1)
            // What a peer with a revision ID is told of begins with that ID.
            let told = tree.versions.state(of: try #require(tree.current?.id), toPeerWith: theirNames)
            if theirs == .legacy { #expect(told.revisions.first == rev("2-cc")) }
        }
    }

    @Test func `nothing that the peer does not know is kept from it by a resolution in its favour`() throws {
        for mine in Form.allCases {
            for theirs in Form.allCases where mine != .encoded || theirs == .legacy {
                var (tree, pending) = try Self.conflict(mine, theirs)
                var resolution = try States.resolution()
                try resolution.resolve(pending, .remote, in: &tree)
                #expect(tree.current?.id == pending)
                #expect(tree.closed.contains(rev("2-bb")))
            }
        }
    }

    // 78, R3 (§12.1, cause 3): T7@c is the version of another content.
    @Test func `a winner whose author has a later version in the loser gets a new version`() throws {
        let (one, other) = ("T5@c; T3@b", "T3@b; T7@c")
        for (mine, theirs, winner) in [(one, other, 1), (other, one, 2)] {
            var tree = RevisionTree()
            try tree.insert("2-bb", over: nil, mine, body: body(1))
            #expect(try tree.take(theirs, "", 2) { $0.refusesConflicts = true } == .inserted)
            #expect(tree.current?.body == body(winner))
            #expect(
                try tree.versions.state(of: try #require(tree.current?.id)).vector
                    == vector("18e9f1f060000001@d; T7@c, T3@b")
            )
            #expect(tree.open(among: tree.candidates).count == 1)
        }
    }

    // 23: the author's versions follow each other, unless its database was restored from a backup.
    @Test func `two states by one author are resolved by a new version over both`() throws {
        var tree = RevisionTree()
        try tree.insert("1-bb", over: nil, "2dd00000000@enc; T1@a", body: body(1))
        try tree.take("2ee00000000@enc; T2@b", "", 2) { $0.asksResolver = true }
        var merged = tree
        var resolution = try States.resolution()
        let pending = try #require(tree.pending.first)
        let verdict = ConflictVerdict.merged(body: body(3), isDeleted: false, parent: pending.id)
        try resolution.resolve(pending.id, verdict, in: &merged)
        #expect(try merged.currentVector == vector("T6@d; T2@b, T1@a, 2ee00000000@enc"))
        try resolution.resolve(pending.id, .local, in: &tree)
        #expect(tree.current?.body == body(1))
        #expect(try tree.currentVector?.previous == vector("T6@d; T2@b, T1@a, 2ee00000000@enc").previous)
    }

    @Test func `a revision whose ID no version stands for wins by a new version`() throws {
        var tree = RevisionTree()
        tree.insertLocal(rev("2-x"), parent: nil, flags: [], body: body(1))
        try tree.take("T4@c; T1@a", "", 2) { $0.asksResolver = true }
        var resolution = try States.resolution()
        try resolution.resolve(try #require(tree.pending.first).id, .local, in: &tree)
        #expect(tree.current?.body == body(1))
        #expect(try tree.currentVector == vector("T6@d; T4@c, T1@a"))
    }

    // 61, R1
    @Test(
        arguments: [
            ("T3@b; T1@a", "T4@c; T1@a", 2), ("T5@b; T1@a", "T4@c; T1@a", 1), ("T4@b", "T4@c", 2),
            ("T4@c", "T4@b", 1),
        ]
    )
    func `by default the greater version wins`(mine: String, theirs: String, winner: Int) throws {
        var tree = RevisionTree()
        try tree.insert("9-bb", over: nil, mine, body: body(1))
        #expect(try tree.take(theirs, "", 2) == .inserted)
        #expect(tree.current?.body == body(winner))
        #expect(try tree.currentVector?.current == max(vector(mine), vector(theirs), by: \.current))
    }

    // 61
    @Test func `by default a deletion wins, and a version over a revision without one`() throws {
        for isMine in [true, false] {
            var tree = RevisionTree()
            try tree.insert("2-bb", over: nil, "T3@b; T1@a", flags: isMine ? .deleted : [], body: body(1))
            try tree.take("T4@c; T1@a", "", isMine ? 2 : nil)
            #expect(tree.current?.isDeleted == true)
            #expect(try tree.currentVector?.current == version(isMine ? "T3@b" : "T4@c"))
        }
        var tree = RevisionTree()
        tree.insertLocal(rev("7-bb"), parent: nil, flags: [], body: body(1))
        try tree.take("T4@c", "", 2)
        #expect(tree.current?.body == body(2))
        try tree.take("", "9-dd", 3)
        #expect(tree.current?.body == body(2))
        #expect(try tree.currentVector == vector("T4@c; 9dd00000000@enc"))
        var legacy = RevisionTree()
        legacy.insertLocal(rev("3-bb"), parent: nil, flags: [], body: body(1))
        try legacy.take("", "4-aa", 2)
        #expect(legacy.current?.body == body(2))
        try legacy.take("", "2-ff", 3)
        #expect(legacy.current?.body == body(2))
    }

    // 25, R2 and R6
    @Test(arguments: [true, false])
    func `two states with the same content need no resolver, on the passive side neither`(isPassive: Bool)
        throws
    {
        for (mine, theirs) in [
            ("T3@b; T1@a", "T4@c; T1@a"), ("T4@c; T1@a", "T3@b; T1@a"),
            ("T4@a, T3@b, T2@c;", "T5@d, T3@b, T2@c;"),
        ] {
            for isDeleted in [false, true] {
                var tree = RevisionTree()
                let content: JSONText = isDeleted ? .emptyObject : body(1)
                try tree.insert("2-bb", over: nil, mine, flags: isDeleted ? .deleted : [], body: content)
                let outcome = try tree.take(theirs, "", isDeleted ? nil : 1) { arrival in
                    arrival.refusesConflicts = isPassive
                    arrival.asksResolver = true
                }
                #expect(outcome == .inserted)
                let (one, other) = (try vector(mine), try vector(theirs))
                #expect(tree.currentVector?.current == max(one, other, by: \.current))
                for version in one.versions + other.versions {
                    #expect(tree.currentVector?.covers(version) == true)
                }
                #expect(tree.candidates.count == 1)
            }
        }
    }

    // 77 (§13.10)
    @Test func `states that include each other settle without a resolver, and one winner everywhere`() throws
    {
        let (one, other) = (
            "18e9f1f010000001@b; 18e9f1f010000001@a", "18e9f1f010000001@a; 18e9f1f010000001@b"
        )
        for (mine, theirs, winner) in [(one, other, 1), (other, one, 2)] {
            var tree = RevisionTree()
            try tree.insert("2-bb", over: nil, mine, body: body(1))
            try tree.take(theirs, "", 2) { arrival in
                arrival.refusesConflicts = true
                arrival.asksResolver = true
            }
            #expect(tree.current?.body == body(winner))
            #expect(try tree.currentVector == vector(one))
        }
    }

    /// One of them made it without a version. A peer names it by its ID, or by the version that stands for that.
    @Test(arguments: [("1aa00000000@enc", ""), ("", "1-aa")])
    func `an edit of a revision that two people made includes both of its names`(
        _ short: String,
        _ revisions: String
    ) throws {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T3@b", body: body(1))
        try tree.insert("2-bb", over: "1-aa", "T4@b", body: body(2))
        var resolution = try States.resolution()
        try StateAnnouncement(try States.state(short, revisions), remote: 1).record(
            in: &tree,
            by: &resolution
        )
        #expect(try tree.versions.state(of: rev("2-bb")).vector == vector("T4@b; 1aa00000000@enc"))
        #expect(
            tree.versions.state(of: rev("2-bb")).relation(to: try States.state(short, revisions)) == .newer
        )
    }
}

/// The vector with the greater current version.
private func max(_ one: VersionVector, _ other: VersionVector, by current: KeyPath<VersionVector, Version?>)
    -> Version?
{
    [one, other].compactMap { $0[keyPath: current] }.max()
}
