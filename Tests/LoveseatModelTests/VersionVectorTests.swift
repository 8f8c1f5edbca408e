import LoveseatModel
import LoveseatTesting
import Testing

/// Comparing, editing and merging vectors. Numbers in comments are those of version-vectors.md §18.
@Suite struct VersionVectorTests {
    // 21, 22, 24 (§13.2)
    @Test func `edits and merges make the vectors of the specification`() throws {
        let expected = [
            "A1": "T1@a", "A2": "T2@a", "B3": "T3@b; T1@a", "C4": "T4@c; T1@a", "B5": "T5@b; T4@c, T1@a",
            "M6": "T6@d, T4@c, T3@b; T1@a", "M7": "T7@a, T4@c, T3@b;", "E8": "T8@d; T4@c, T3@b, T1@a",
            "E9": "T9@b; T6@d, T4@c, T1@a", "X": "T3@b; T4@c, T1@a",
        ]
        for (name, vector) in try namedVectors() {
            #expect(vector.text == VersionNotation.spelled(try #require(expected[name])), "\(name)")
        }
    }

    // 18 (§13.3)
    @Test func `the ten states are related as in the specification`() throws {
        let rows = [
            "sooooooooo", "nsxxxxoxxx", "nxsxooooos", "nxxsoooooo", "nxnnsxxxon", "nxnnxsxoon", "nnnnxxsxxn",
            "nxnnxnxsxn", "nxnnnnxxsn", "nxsnooooos",
        ]
        let states = try namedVectors()
        for (state, row) in zip(states, rows) {
            for (other, letter) in zip(states, row) {
                let relation = state.vector.relation(to: other.vector)
                #expect(relation == StateRelation(letter: letter), "\(state.name) to \(other.name)")
                #expect(relation.reversed == other.vector.relation(to: state.vector))
            }
        }
    }

    // 18
    @Test func `an empty vector is older than any other`() throws {
        let (empty, some) = (VersionVector(), try vector("T1@a"))
        #expect(empty.relation(to: empty) == .same)
        #expect(empty.relation(to: some) == .older)
        #expect(some.relation(to: empty) == .newer)
    }

    // 20
    @Test func `a vector is never in conflict with a single version`() throws {
        let state = try vector("T6@d, T4@c, T3@b; T1@a")
        #expect(state.relation(to: try version("T6@d")) == .same)
        #expect(state.relation(to: try version("T3@b")) == .newer)
        #expect(state.relation(to: try version("T2@b")) == .newer)
        #expect(state.relation(to: try version("T5@b")) == .older)
        #expect(state.relation(to: try version("T1@z")) == .older)
        #expect(VersionVector().relation(to: try version("T1@a")) == .older)
    }

    // 20
    @Test func `of two entries of one source the current version counts`() throws {
        let twin = try vector("T6@b, T4@c, T3@b; T1@a")
        #expect(twin.relation(to: try version("T5@b")) == .newer)
        #expect(try twin.time(of: source("b")) == VersionNotation.time(6))
    }

    // 21
    @Test
    func `an edit drops the merge version by the current version's author, and the editor's own entries`()
        throws
    {
        let twin = try vector("T6@b, T4@c, T3@b; T2@d, T1@a")
        #expect(
            try twin.edited(by: source("d"), at: VersionNotation.time(7)) == vector("T7@d; T6@b, T4@c, T1@a")
        )
        #expect(
            try twin.edited(by: source("b"), at: VersionNotation.time(7)) == vector("T7@b; T4@c, T2@d, T1@a")
        )
        #expect(
            try twin.edited(by: source("c"), at: VersionNotation.time(7)) == vector("T7@c; T6@b, T2@d, T1@a")
        )
        #expect(try VersionVector().edited(by: source("a"), at: VersionNotation.time(1)) == vector("T1@a"))
        // By a slow clock.
        let late = try vector("T9@b; T1@a").edited(by: source("a"), at: VersionNotation.time(2))
        #expect(late == (try vector("T2@a; T9@b")))
        #expect(late.relation(to: try vector("T9@b; T1@a")) == .newer)
    }

    // 21
    @Test func `an author's new version has to be later than the last one`() throws {
        let state = try vector("T3@b; T2@a")
        for time in [0, VersionNotation.time(1), VersionNotation.time(2)] {
            #expect(throws: VersionError(.timeNotLater)) { try state.edited(by: source("a"), at: time) }
            let other = try vector("T4@c; T2@a")
            #expect(throws: VersionError(.timeNotLater)) {
                try VersionVector.merge(state, other, by: source("a"), at: time)
            }
        }
        #expect(throws: VersionError(.timeNotLater)) { try state.edited(by: source("d"), at: 0) }
    }

    // 22
    @Test func `a merge is the same from either side, but for the new version`() throws {
        let (b3, c4) = try (vector("T3@b; T1@a"), vector("T4@c; T2@z, T1@d"))
        let one = try VersionVector.merge(b3, c4, by: source("d"), at: VersionNotation.time(6))
        let other = try VersionVector.merge(c4, b3, by: source("d"), at: VersionNotation.time(6))
        #expect(one == other)
        #expect(one == (try vector("T6@d, T4@c, T3@b; T2@z, T1@a")))
        let elsewhere = try VersionVector.merge(c4, b3, by: source("z"), at: VersionNotation.time(7))
        #expect(elsewhere.mergeVersions == one.mergeVersions)
        #expect(elsewhere == (try vector("T7@z, T4@c, T3@b; T1@a, T1@d")))
    }

    // 22
    @Test func `an author who merges an own version keeps it as merge version`() throws {
        let merged = try VersionVector.merge(
            vector("T3@b; T1@a"),
            vector("T4@c; T1@a"),
            by: source("b"),
            at: VersionNotation.time(5)
        )
        #expect(merged == (try vector("T5@b, T4@c, T3@b; T1@a")))
        #expect(try VersionVector(merged.text) == merged)
    }

    // 23
    @Test func `versions by one author cannot be merged`() throws {
        let (one, other) = try (vector("T3@b; T1@a"), vector("T4@b; T2@c"))
        #expect(throws: VersionError(.sameAuthor)) {
            try VersionVector.merge(one, other, by: source("d"), at: VersionNotation.time(5))
        }
        #expect(throws: VersionError(.emptyVector)) {
            try VersionVector.merge(one, VersionVector(), by: source("d"), at: VersionNotation.time(5))
        }
        #expect(throws: VersionError(.emptyVector)) { try VersionVector().winning(over: one) }
    }

    // 24 (§13.2)
    @Test(arguments: [
        ("T3@b; T1@a", "T4@c; T1@a", "T3@b; T4@c, T1@a"),
        ("T6@d, T4@c, T3@b; T1@a", "T8@c", "T6@d; T8@c, T3@b, T1@a"),
        (
            "T6@d, T4@c, T3@b; T1@a", "T10@z; T1@a",
            "T6@d, T4@c, T3@b; T10@z, T1@a"
        ),
        ("T5@b, T4@c, T3@b; T1@a", "T7@d", "T5@b, T4@c, T3@b; T7@d, T1@a"),
    ])
    func `a winner includes the loser, and stays the same state`(
        winner: String,
        loser: String,
        result: String
    ) throws {
        let (winner, loser) = try (vector(winner), vector(loser))
        #expect(winner.relation(to: loser) == .conflict)
        #expect(winner.canWinUnchanged(over: loser))
        let stored = try winner.winning(over: loser)
        #expect(stored == (try vector(result)))
        #expect(stored.relation(to: winner) == .same)
        #expect(winner.relation(to: stored) == .same)
        #expect(stored.relation(to: loser) == .newer)
        #expect(loser.relation(to: stored) == .older)
    }

    // 24 (§12.1, R4)
    @Test func `two vectors of one version are united from either side`() throws {
        let (one, other) = try (vector("T3@b; T4@c, T1@a"), vector("T3@b; T5@d, T1@a"))
        #expect(try one.winning(over: other) == vector("T3@b; T5@d, T4@c, T1@a"))
        #expect(try other.winning(over: one) == one.winning(over: other))
    }

    // 25 (§7.4)
    @Test func `two merges of the same versions are the same state if their content is`() throws {
        let m6 = try vector("T6@d, T4@c, T3@b; T1@a")
        let m7 = try vector("T7@a, T4@c, T3@b;")
        #expect(m6.relation(to: m7, hasEqualContent: true) == .same)
        #expect(m6.relation(to: m7, hasEqualContent: false) == .conflict)
        let others = try vector("T7@a, T4@c, T2@b;")
        #expect(m6.relation(to: others, hasEqualContent: true) == .conflict)
        let edits = try (vector("T3@b; T1@a"), vector("T4@c; T1@a"))
        #expect(edits.0.relation(to: edits.1, hasEqualContent: true) == .conflict)
    }

    // 24 (§13.10)
    @Test func `opposite resolutions cover each other, and the greater version wins`() throws {
        let (anna, ben) = try (vector("18e9f1f010000001@a"), vector("18e9f1f010000001@b"))
        #expect(anna.relation(to: ben) == .conflict)
        let bens = try ben.winning(over: anna)
        let annas = try anna.winning(over: ben)
        #expect(bens == (try vector("18e9f1f010000001@b; 18e9f1f010000001@a")))
        #expect(annas == (try vector("18e9f1f010000001@a; 18e9f1f010000001@b")))
        #expect(bens.relation(to: annas) == .conflict)
        #expect(annas.relation(to: bens) == .conflict)
        #expect(try #require(bens.current) > #require(annas.current))
    }

    // 24 (§13.10)
    @Test func `a winner cannot include a later version by its own author as it is`() throws {
        let x = try vector("T5@c").winning(over: vector("T7@d"))
        let y = try vector("T1@d").winning(over: vector("T5@c"))
        #expect(x == (try vector("T5@c; T7@d")))
        #expect(y == (try vector("T1@d; T5@c")))
        #expect(x.relation(to: y) == .conflict)
        #expect(!y.canWinUnchanged(over: x))
        #expect(x.canWinUnchanged(over: y))
        // One version with two contents: this is what a winner must not do.
        #expect(try y.winning(over: x) == vector("T7@d; T5@c"))
        #expect(try x.winning(over: y) == x)
        #expect(try #require(x.current) > #require(y.current))
    }

    @Test func `an edit that does not know of a resolution replaces it, and forgets the loser`() throws {
        let (winner, loser) = try (vector("T3@b; T1@a"), vector("T4@c; T1@a"))
        let resolved = try winner.winning(over: loser)
        let edited = try winner.edited(by: source("d"), at: VersionNotation.time(5))
        // So the relation is not transitive.
        #expect(edited.relation(to: resolved) == .newer)
        #expect(resolved.relation(to: loser) == .newer)
        #expect(edited.relation(to: loser) == .conflict)
    }

    // 22, 24
    @Test func `recorded edits, merges and resolutions make the same vectors here`() throws {
        let edits = try recordedVersions("edit")
        #expect(edits.count == 291)
        for edit in edits {
            let (before, after) = try (VersionVector(edit[0]), VersionVector(edit[1]))
            let version = try #require(after.current)
            #expect(try before.edited(by: version.source, at: version.time) == after)
            #expect(after.relation(to: before) == .newer)
        }
        let merges = try recordedVersions("merge")
        #expect(merges.count == 14)
        for merge in merges {
            let (one, other) = try (VersionVector(merge[0]), VersionVector(merge[1]))
            let (merged, version) = try (VersionVector(merge[2]), #require(VersionVector(merge[2]).current))
            #expect(one.relation(to: other) == .conflict)
            #expect(try VersionVector.merge(one, other, by: version.source, at: version.time) == merged)
        }
        let resolutions = try recordedVersions("win")
        #expect(resolutions.count == 17)
        for resolution in resolutions {
            let (winner, loser) = try (VersionVector(resolution[0]), VersionVector(resolution[1]))
            #expect(try winner.winning(over: loser) == VersionVector(resolution[2]))
        }
    }
}
