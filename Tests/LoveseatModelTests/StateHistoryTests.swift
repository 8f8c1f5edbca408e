import LoveseatModel
import LoveseatTesting
import Testing

/// Vectors with revisions of a tree behind them. Numbers in comments are those of version-vectors.md §18.
@Suite struct StateHistoryTests {
    private static func history(_ short: String, _ revisions: String = "") throws -> StateHistory {
        let ids = try revisions.split(separator: " ").map { try #require(RevisionID($0)) }
        return StateHistory(try vector(short), revisions: ids)
    }

    /// The histories of version-vectors.md §13.5.
    private static func histories() throws -> [StateHistory] {
        [
            try history("", "2-bb 1-aa"), try history("T1@a", "2-bb"), try history("T2@a", "2-bb 1-aa"),
            try history("T3@b", "2-cc 1-aa"), try history("2bb00000000@enc"), try history("T3@b; T1@a"),
            try history("", "2-cc 1-aa"), try history("", "1-aa"), try history("T3@b; 2bb00000000@enc"),
        ]
    }

    @Test(arguments: ["1@VVebVXiW0M4XZMR/7WRPmw", "3000-aa"])
    func `of a list of revisions that is too long, the newest are kept`(_ rev: String) throws {
        let list = (1...2_000).reversed().map { "\($0)-bb" }
        let history = try StateHistory(rev: rev, history: list.joined(separator: ", "))
        // A revision that is named itself stands before the list.
        #expect(history.revisions.count == (history.vector.isEmpty ? 1_001 : 1_000))
        #expect(history.revisions.last?.generation == 1_001)
    }

    // 26 (§13.5)
    @Test func `Couchbase Lite relates nine histories as in the specification`() throws {
        let rows = [
            "sooxsxxnx", "nsoxxxxxx", "nnsxxxxnx", "xxxsxxnnx", "sxxxsxxxo", "xxxxxsxxs", "xxxoxxsnx",
            "oxooxxosx",
            "xxxxnsxxs",
        ]
        try expectRelations(rows) { $0.relationOfCouchbaseLite(to: $1) }
    }

    // 26: without the false conflicts. Vectors in order decide (1/9, 2/6, 5/9), and a version that stands for a listed revision is included
    // (2/5, 3/5).
    @Test func `Loveseat relates nine histories by everything that they say`() throws {
        let rows = [
            "sooxsxxno", "nsoxnoxxx", "nnsxnxxnx", "xxxsxsnns", "sooxsxxxo", "xnxsxsxxs", "xxxoxxsnx",
            "oxooxxosx",
            "nxxsnsxxs",
        ]
        try expectRelations(rows) { $0.relation(to: $1) }
    }

    private func expectRelations(
        _ rows: [String],
        _ relation: (StateHistory, StateHistory) -> StateRelation
    ) throws {
        let histories = try Self.histories()
        for (row, (history, letters)) in zip(histories, rows).enumerated() {
            for (column, (other, letter)) in zip(histories, letters).enumerated() {
                #expect(relation(history, other) == StateRelation(letter: letter), "\(row + 1)/\(column + 1)")
                #expect(relation(other, history) == relation(history, other).reversed)
            }
        }
    }

    // 26: the table of §8. Both sides of a cell are made of parts that have this relation.
    @Test func `each cell of the table is as in the specification`() throws {
        let parts: [(Character, vectors: (String, String), lists: (String, String))] = [
            ("e", ("", ""), ("", "")), ("<", ("", "T1@a"), ("", "1-aa")), (">", ("T1@a", ""), ("1-aa", "")),
            ("s", ("T1@a", "T1@a"), ("2-bb 1-aa", "2-bb")), ("o", ("T1@a", "T2@a"), ("1-aa", "2-bb 1-aa")),
            ("n", ("T2@a", "T1@a"), ("2-bb 1-aa", "1-aa")),
            ("x", ("T1@a", "T1@b"), ("2-bb 1-aa", "2-cc 1-aa")),
        ]
        let rows = ["sonsonx", "ooxooxx", "nxnnxnx", "sxxsxxx", "oxxoxxx", "nxxnxxx", "xxxxxxx"]
        for (row, letters) in zip(parts, rows) {
            for (column, letter) in zip(parts, letters) {
                let history = try Self.history(row.vectors.0, column.lists.0)
                let other = try Self.history(row.vectors.1, column.lists.1)
                let relation = history.relationOfCouchbaseLite(to: other)
                #expect(relation == StateRelation(letter: letter), "\(row.0), \(column.0)")
            }
        }
    }

    // 26
    @Test func `lists without a common revision, or with one behind newer ones of both, are in conflict`()
        throws
    {
        let list = try Self.history("", "3-cc 2-bb")
        for other in ["1-aa", "3-dd 2-bb", "4-ee 3-dd 2-bb"] {
            #expect(list.relationOfCouchbaseLite(to: try Self.history("", other)) == .conflict)
            #expect(list.relation(to: try Self.history("", other)) == .conflict)
        }
    }

    @Test func `an encoded version includes no other revision, though it is later`() throws {
        let encoded = try Self.history("T3@b; 3cc00000000@enc")
        #expect(encoded.relation(to: try Self.history("", "2-bb")) == .conflict)
        #expect(encoded.relation(to: try Self.history("2bb00000000@enc")) == .conflict)
        #expect(encoded.relation(to: try Self.history("", "3-cc 2-bb")) == .newer)
    }

    @Test func `an empty history is older than any other`() throws {
        let empty = StateHistory(VersionVector())
        #expect(empty.isEmpty)
        #expect(empty.name == nil)
        #expect(empty.rev == nil)
        #expect(empty.history == nil)
        #expect(empty.relation(to: empty) == .same)
        for other in try Self.histories() {
            #expect(empty.relation(to: other) == .older)
            #expect(other.relation(to: empty) == .newer)
        }
    }

    // 27 (§13.6)
    @Test(arguments: [
        ("1-7b58069baa4e97140f275c7ba4e0f8883c1d42fa", "17b58069baa"),
        ("2-ef1504fdd47b89096281325a9194e9dcee2b04f7", "2ef1504fdd4"), ("3-ab", "3ab00000000"),
        ("300-0011223344556677", "12c0011223344"),
        ("12345-e0c8012361e94df6a1e1c2977169480e", "3039e0c8012361"),
        ("1-00", "10000000000"), ("8388607-ffffffffff", "7fffffffffffffff"),
    ])
    func `a revision is encoded as a version`(revision: String, time: String) throws {
        let version = try #require(RevisionID(revision)?.encodedVersion)
        #expect(version.text == "\(time)@Revision+Tree+Encoding")
        #expect(HybridClock.validTimes.contains(version.time))
    }

    // 27
    @Test(arguments: ["8388608-ffffffffff", "4294967295-aa", "3-a", "3-AB", "3-xyz0", "3-abc"])
    func `a revision that Couchbase's peers cannot have, or whose time would not be valid, is not encoded`(
        revision: String
    ) throws {
        #expect(try #require(RevisionID(revision)).encodedVersion == nil)
    }

    // 28
    @Test(arguments: [
        ("T1@a", "T1@a", true), ("T1@a", "T2@a", false), ("T1@a", "T1@b", false), ("2-bb", "2-bb", true),
        ("2-bb", "2-bb00", false), ("2-bb", "2bb00000000@enc", true), ("2-bbcc", "2bb00000000@enc", false),
        ("2-bbcc", "2bbcc000000@enc", true), ("3-bb", "2bb00000000@enc", false),
        ("2-bb", "2bb00000000@a", false),
        ("T3@b; T1@a", "T3@b", true), ("T3@b; T1@a", "T3@b, T2@c;", true), ("T3@b; T1@a", "T1@a", false),
        ("2bb00000000@enc; T1@a", "2-bb", true), ("8388608-aa", "8000000000000000@enc", false),
    ])
    func `two names mean the same state`(one: String, other: String, isEquivalent: Bool) throws {
        let name = try RevisionName(first: VersionNotation.spelled(one))
        let otherName = try RevisionName(first: VersionNotation.spelled(other))
        #expect(name.isEquivalent(to: otherName) == isEquivalent)
        #expect(otherName.isEquivalent(to: name) == isEquivalent)
    }

    // §13.4
    @Test(
        arguments: [
            ("T1@a", "", "T1@a", nil), ("T3@b; T1@a", "", "T3@b", "T1@a"),
            ("T6@d, T4@c, T3@b; T1@a", "", "T6@d", "T4@c, T3@b; T1@a"),
            ("T6@d, T4@c, T3@b;", "", "T6@d", "T4@c, T3@b;"), ("T1@a", "2-bb 1-aa", "T1@a", "2-bb, 1-aa"),
            ("T3@b; T1@a", "2-bb", "T3@b", "T1@a, 2-bb"),
            ("T6@d, T4@c, T3@b;", "2-bb", "T6@d", "T4@c, T3@b; 2-bb"), ("", "2-bb 1-aa", "2-bb", "1-aa"),
            ("", "2-bb", "2-bb", nil), ("T6@d, T4@c, T3@b; T1@a", "2-bb", "T6@d", "T4@c, T3@b; T1@a, 2-bb"),
        ] as [(String, String, String, String?)]
    )
    func `a message names the state and the rest of its history`(
        short: String,
        revisions: String,
        rev: String,
        rest: String?
    ) throws {
        let history = try Self.history(short, revisions)
        let spelled = rest.map { VersionNotation.spelled($0) }
        #expect(history.rev == VersionNotation.spelled(rev))
        #expect(history.history == spelled)
        #expect(try StateHistory(rev: VersionNotation.spelled(rev), history: spelled) == history)
    }

    // §11.3: Sync Gateway's form for a vector without previous versions, and its blanks.
    @Test func `Sync Gateway's histories are read`() throws {
        let current = try version("T6@d").text
        let merged = VersionNotation.spelled("T4@c,T3@b;,3-abcd,2-bb")
        let expected = try Self.history("T6@d, T4@c, T3@b;", "3-abcd 2-bb")
        #expect(try StateHistory(rev: current, history: merged) == expected)
        let plain = VersionNotation.spelled("T1@a,T4@c,3-abcd")
        #expect(try StateHistory(rev: current, history: plain) == Self.history("T6@d; T4@c, T1@a", "3-abcd"))
        #expect(try StateHistory(rev: current, history: "") == Self.history("T6@d"))
    }

    // 4 (§11.3)
    @Test(arguments: [
        ("T6@d", "2-bb, T1@a", VersionError.Reason.versionAfterRevision),
        ("T6@d", "2-bb; T1@a", .missingSource),
        ("T6@d", "2-bb;", .missingSource), ("T6@d", "T4@c; T3@b; 2-bb", .secondSemicolon),
        ("T6@d", "T4@d", .duplicateSource), ("T6@d", "T7@d;", .mergeVersionNotOlder),
        ("T6@d", "1@*", .ownSource),
        ("T6@d", "2-bb,", .missingVersion), ("T6@d", "T4@c;,", .missingVersion),
        ("T6@d", "T4@c;,,2-bb", .missingVersion),
        ("T6@d", "2-b", .invalidRevision), ("T6@d", "T1@a x", .unexpectedCharacter), ("*", "", .missingTime),
        ("T6@*", "", .ownSource), ("T6@d; T1@a", "", .unexpectedCharacter), ("", "", .missingVersion),
        ("2-bb", "T1@a", .invalidRevision), ("2-bb", "1-aa,", .missingVersion),
        ("2-bb", "1-aa;", .unexpectedCharacter),
        ("2-bb", "1-aa,,1-bb", .invalidRevision),
    ])
    func `a history that no peer should send is refused`(
        rev: String,
        history: String,
        reason: VersionError.Reason
    ) {
        let error = #expect(throws: VersionError.self) {
            try StateHistory(rev: VersionNotation.spelled(rev), history: VersionNotation.spelled(history))
        }
        #expect(error?.reason == reason)
    }

    @Test func `an announcement is a vector, a version, a revision ID or nothing`() throws {
        #expect(try StateHistory(VersionNotation.spelled("T3@b; T1@a")) == Self.history("T3@b; T1@a"))
        #expect(try StateHistory("2-bb") == Self.history("", "2-bb"))
        #expect(try StateHistory("").isEmpty)
        for text in ["2-bb, 1-aa", "T3@b; 2-bb", "2-b", "x"] {
            #expect(throws: VersionError.self) { try StateHistory(VersionNotation.spelled(text)) }
        }
    }
}
