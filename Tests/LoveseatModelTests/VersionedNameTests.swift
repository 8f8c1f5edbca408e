import Crypto
import LoveseatModel
import LoveseatTesting
import Testing

/// The names that revisions of trees have for peers with versions.
@Suite struct VersionedNameTests {
    private static func name(_ text: String) throws -> RevisionName {
        try RevisionName(VersionNotation.spelled(text))
    }

    private static func history(_ short: String, _ revisions: String = "") throws -> StateHistory {
        StateHistory(try vector(short), revisions: revisions.split(separator: " ").map { rev(String($0)) })
    }

    /// Two revisions without versions, an edit with one, an edit by a peer with trees, and two more with versions.
    private static func tree() throws -> RevisionTree {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: .emptyObject)
        tree.insertLocal(rev("2-bb"), parent: rev("1-aa"), flags: [], body: .emptyObject)
        for (id, parent, time) in [("3-cc", "2-bb", 1), ("5-ee", "4-dd", 2), ("6-ff", "5-ee", 3)] {
            if id == "5-ee" {
                tree.insertLocal(rev("4-dd"), parent: rev("3-cc"), flags: [], body: .emptyObject)
            }
            let edited = try tree.versions.vectorToEdit(rev(parent)).edited(
                by: source("a"),
                at: VersionNotation.time(time)
            )
            RevisionEdit(id: rev(id), parent: rev(parent), flags: [], body: .emptyObject, vector: edited)
                .insert(into: &tree, by: .standard)
        }
        return tree
    }

    @Test(
        arguments: [
            ("1-aa", "", "1-aa"), ("2-bb", "", "2-bb 1-aa"), ("3-cc", "T1@a; 2bb00000000@enc", "2-bb 1-aa"),
            ("4-dd", "4dd00000000@enc; T1@a", "2-bb 1-aa"),
            ("5-ee", "T2@a; 4dd00000000@enc", "2-bb 1-aa"), ("6-ff", "T3@a; 4dd00000000@enc", "2-bb 1-aa"),
        ]
    )
    func `a revision's state is its vector with the older revisions that have none`(
        id: String,
        short: String,
        revisions: String
    ) throws {
        #expect(try Self.tree().versions.state(of: rev(id)) == Self.history(short, revisions))
    }

    @Test func `a revision that is not here has an empty state`() throws {
        #expect(try Self.tree().versions.state(of: rev("7-aa")).isEmpty)
        #expect(try Self.tree().versions.vectorToEdit(nil).isEmpty)
    }

    @Test func `a peer with trees whose IDs no version stands for is named by them`() throws {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T1@a")
        tree.insertLocal(rev("2-x"), parent: rev("1-aa"), flags: [], body: .emptyObject)
        #expect(try tree.versions.state(of: rev("2-x")) == Self.history("", "2-x 1-aa"))
        #expect(tree.versions.vectorToEdit(rev("2-x")).isEmpty)
        #expect(tree.versions.version(of: rev("2-x")) == nil)
    }

    @Test func `every name of a revision finds it`() throws {
        let tree = try Self.tree()
        let names = [
            "1-aa": ["1-aa", "1aa00000000@enc"], "2-bb": ["2-bb", "2bb00000000@enc"],
            "3-cc": ["3-cc", "T1@a", "3cc00000000@enc"], "4-dd": ["4-dd", "4dd00000000@enc"],
            "6-ff": ["6-ff", "T3@a"],
        ]
        for (id, names) in names {
            for name in names {
                #expect(try tree.versions.node(named: Self.name(name)) == rev(id), "\(name)")
            }
        }
        for name in ["T1@b", "T4@a", "2-bb00", "7-aa", "2bb00000001@enc"] {
            #expect(try tree.versions.node(named: Self.name(name)) == nil, "\(name)")
        }
    }

    @Test func `the version that stands for a revision finds the state that was received under it`() throws {
        var tree = RevisionTree()
        try tree.receive("1-ff", "2bb00000000@enc")
        #expect(try tree.versions.node(named: Self.name("2-bb")) == rev("1-ff"))
        try tree.receive("1-ee", "2bb00000000@enc")
        #expect(try tree.versions.node(named: Self.name("2bb00000000@enc")) == rev("1-ff"))
    }

    @Test func `every state of a history is found by its name, and edits include what they were made from`()
        throws
    {
        for seed in PropertySeeds.of("VERSIONED", 300) {
            for tree in try VersionedTrees(seed: seed).trees {
                for node in tree.nodes.values {
                    let state = tree.versions.state(of: node.id)
                    let name = try #require(state.name)
                    let found = try #require(tree.versions.node(named: name), "seed \(seed): \(name)")
                    #expect(
                        found == node.id
                            || tree.versions.version(of: found) == tree.versions.version(of: node.id)
                    )
                    // Of two edits by peers with trees, a vector has the version of the last one only.
                    guard let parent = node.parent,
                        tree.vectors[node.id] ?? tree.vectors[parent] != nil || tree.vectors.isEmpty
                    else { continue }
                    let before = tree.versions.state(of: parent)
                    #expect(state.relation(to: before) == .newer, "seed \(seed): \(state) over \(before)")
                }
            }
        }
    }

    // §19.2
    @Test func `a version has a name in a tree that its text, the document and the parent decide`() throws {
        func id(_ short: String, _ document: String, _ parent: String?) throws -> RevisionID? {
            RevisionID(version: try version(short), documentID: document, parent: parent.map(rev)) {
                Array(SHA256.hash(data: $0))
            }
        }
        let first = try #require(try id("T1@a", "doc", nil))
        #expect(first.text == "1-\(Self.expectedDigest)")
        let second = try #require(try id("T1@a", "doc", "4-aa"))
        #expect(second.generation == 5)
        #expect(second.digest != first.digest)
        for other in [try id("T2@a", "doc", nil), try id("T1@b", "doc", nil), try id("T1@a", "do", nil)] {
            #expect(other != first)
        }
        #expect(try id("T1@a", "doc", "4294967295-aa") == nil)
    }

    /// The first 40 digits of what `printf 'loveseat vv 1\ndoc\n18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw\n' | sha256sum` prints.
    private static let expectedDigest = "5f9e1e64425c67e4cce94854be5537a74dcca937"
}

/// The union of two vectors of one state.
@Suite struct VersionUnionTests {
    @Test(
        arguments: [
            ("", "T1@a", "T1@a"), ("T1@a", "T1@a", "T1@a"), ("T5@b; T1@a", "T5@b; T4@c", "T5@b; T4@c, T1@a"),
            ("T6@d, T4@c, T3@b;", "T6@d, T4@c, T3@b; T1@a", "T6@d, T4@c, T3@b; T1@a"),
            ("T6@d, T4@c, T3@b;", "T6@d; T8@c, T3@b", "T6@d; T8@c, T3@b"),
            ("T6@d, T4@c, T3@d;", "T6@d; T1@a", "T6@d, T4@c, T3@d; T1@a"),
            ("T2@a", "T3@b; T1@c", "T3@b; T2@a, T1@c"), ("T3@b; T9@a", "T2@a", "T3@b; T9@a"),
            ("T6@d, T4@c, T3@b;", "T6@d; T4@c, T3@b", "T6@d, T4@c, T3@b;"),
            // One of these is forged: a state was merged from two versions only.
            ("T6@d, T4@c; T3@b", "T6@d, T3@b;", "T6@d, T4@c, T3@b;"),
        ]
    )
    func `a union names all that either vector includes`(one: String, other: String, union: String) throws {
        #expect(try vector(one).united(with: vector(other)) == vector(union))
        #expect(try vector(other).united(with: vector(one)) == vector(union))
    }

    @Test func `unions of vectors with one current version do not depend on their order`() throws {
        for seed in PropertySeeds.of("UNION", 2_000) {
            var generator = SeededGenerator(seed: seed)
            let state = try generator.versionVector()
            guard let current = state.current else { continue }
            // What the state grew by at several peers.
            let grown = try (0..<3).map { _ in
                var loser = try generator.versionVector()
                if !state.canWinUnchanged(over: loser) { loser = VersionVector() }
                return try state.winning(over: loser)
            }
            let all = grown[0].united(with: grown[1]).united(with: grown[2])
            #expect(grown[2].united(with: grown[0]).united(with: grown[1]) == all, "seed \(seed)")
            #expect(grown[0].united(with: grown[1].united(with: grown[2])) == all, "seed \(seed)")
            #expect(all.united(with: grown[1]) == all, "seed \(seed)")
            #expect(all.current == current, "seed \(seed)")
            for version in grown.flatMap(\.versions) { #expect(all.covers(version), "seed \(seed)") }
        }
    }
}
