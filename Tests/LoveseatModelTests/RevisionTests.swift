import Crypto
import LoveseatModel
import LoveseatTesting
import Testing

private func rev(_ text: String) -> RevisionID {
    guard let id = RevisionID(text) else { preconditionFailure("a test's own revision ID: \(text)") }
    return id
}

private func tombstone(_ leaf: RevisionID) -> RevisionID { rev("\(leaf.generation + 1)-dead") }

@Suite struct RevisionIDTests {
    @Test func `digests are those of the specification`() throws {
        var parent: RevisionID?
        for (deleted, body, expected) in [
            (false, #"{"age":7,"name":"Hobbes"}"#, "1-7b58069baa4e97140f275c7ba4e0f8883c1d42fa"),
            (false, #"{"age":8,"name":"Hobbes"}"#, "2-ef1504fdd47b89096281325a9194e9dcee2b04f7"),
            (true, "{}", "3-63840bbc074b80ae44e0f2ac7f6cd734d3ad395d"),
        ] {
            let input = RevisionID.digestInput(
                parent: parent,
                isDeleted: deleted,
                canonicalBody: Array(body.utf8)
            )
            let made = RevisionID(
                generation: (parent?.generation ?? 0) + 1,
                digest: Insecure.SHA1.hash(data: input)
            )
            #expect(made.text == expected)
            parent = made
        }
    }

    @Test(arguments: [
        "", "1", "1-", "-ab", "0-ab", "01-ab", "1-a", "1-AB", "1-ag", "4294967296-ab", "1-ab-cd", "x-ab",
    ])
    func `refuses what is no revision ID`(text: String) { #expect(RevisionID(text) == nil) }

    @Test func `orders by generation, then digest`() {
        #expect(rev("9-ff") < rev("10-00"))
        #expect(rev("2-0a") < rev("2-a0"))
    }
}

@Suite struct RevisionTreeTests {
    private func tree(_ histories: [[String]]) throws -> RevisionTree {
        var tree = RevisionTree()
        for history in histories {
            _ = try tree.insert(
                history: history.map(rev),
                flags: [],
                body: .emptyObject,
                allowConflict: true,
                tombstone: tombstone
            )
        }
        return tree
    }

    @Test func `the winner is live, unconflicted, then highest`() throws {
        var tree = RevisionTree()
        _ = try tree.insert(
            history: [rev("2-bb"), rev("1-aa")],
            flags: [],
            body: .emptyObject,
            allowConflict: true,
            tombstone: tombstone
        )
        let outcome = try tree.insert(
            history: [rev("3-cc"), rev("2-cc"), rev("1-aa")],
            flags: [],
            body: .emptyObject,
            allowConflict: true,
            tombstone: tombstone
        )
        #expect(outcome == .insertedAsConflict)
        #expect(tree.winner?.id == rev("2-bb"))
        #expect(tree.conflicts.map(\.id) == [rev("3-cc")])
        #expect(tree.ancestors(of: rev("3-cc")) == [rev("2-cc"), rev("1-aa")])
    }

    @Test func `a conflict is refused where none is allowed`() throws {
        var tree = try tree([["2-bb", "1-aa"]])
        #expect(throws: RevisionTree.Refusal.conflict) {
            try tree.insert(
                history: [rev("2-cc"), rev("1-aa")],
                flags: [],
                body: .emptyObject,
                allowConflict: false,
                tombstone: tombstone
            )
        }
        #expect(throws: RevisionTree.Refusal.conflict) {
            try tree.insert(
                history: [rev("1-cc")],
                flags: [],
                body: .emptyObject,
                allowConflict: false,
                tombstone: tombstone
            )
        }
        #expect(throws: RevisionTree.Refusal.badHistory) {
            try tree.insert(
                history: [rev("4-cc"), rev("2-bb")],
                flags: [],
                body: .emptyObject,
                allowConflict: true,
                tombstone: tombstone
            )
        }
        #expect(throws: RevisionTree.Refusal.badHistory) {
            try tree.insert(
                history: [],
                flags: [],
                body: .emptyObject,
                allowConflict: true,
                tombstone: tombstone
            )
        }
    }

    @Test func `resolving keeps the remote branch`() throws {
        var tree = try tree([["2-bb", "1-aa"], ["2-cc", "1-aa"]])
        var merged = tree
        tree.resolve(conflict: rev("2-cc"), child: nil, tombstone: tombstone)
        #expect(tree.winner?.id == rev("2-cc"))
        #expect(tree.conflicts.isEmpty && tree.deletedBranch(over: rev("2-bb")) != nil)
        merged.resolve(conflict: rev("2-cc"), child: (rev("3-dd"), [], .emptyObject), tombstone: tombstone)
        #expect(merged.winner?.id == rev("3-dd"))
        #expect(merged.ancestors(of: rev("3-dd")) == [rev("2-cc"), rev("1-aa")])
    }

    @Test func `a remote that switched branches makes no conflict without local edits`() throws {
        var tree = RevisionTree()
        _ = try tree.insert(
            history: [rev("2-bb"), rev("1-aa")],
            flags: [],
            body: .emptyObject,
            allowConflict: true,
            remote: 1,
            tombstone: tombstone
        )
        let outcome = try tree.insert(
            history: [rev("2-cc"), rev("1-aa")],
            flags: [],
            body: .emptyObject,
            allowConflict: true,
            remote: 1,
            tombstone: tombstone
        )
        #expect(outcome == .inserted)
        #expect(tree.winner?.id == rev("2-cc"))
        #expect(tree.remotes[1] == rev("2-cc"))
        // An older revision that arrives late changes nothing.
        _ = try tree.insert(
            history: [rev("1-aa")],
            flags: [],
            body: .emptyObject,
            allowConflict: true,
            remote: 1,
            tombstone: tombstone
        )
        #expect(tree.remotes[1] == rev("2-cc"))
    }

    @Test func `a branch that another remote has is closed, and taken back by its tombstone`() throws {
        var tree = try tree([["2-bb", "1-aa"], ["2-cc", "1-aa"]])
        tree.noteRemote(5, has: rev("2-bb"), tombstone: tombstone)
        tree.resolve(conflict: rev("2-cc"), child: nil, tombstone: tombstone)
        #expect(tree.winner?.id == rev("2-cc"))
        #expect(tree.deletedBranch(over: rev("2-bb")) == [rev("3-dead"), rev("2-bb")])
        #expect(tree.supersedes(rev("2-cc"), rev("2-bb")))

        // The remote that has the losing branch takes both without conflict.
        var remote = try self.tree([["2-bb", "1-aa"]])
        let outcome = try remote.insert(
            history: [rev("2-cc"), rev("1-aa")],
            flags: [],
            body: .emptyObject,
            allowConflict: false,
            deletedBranch: [rev("3-dead"), rev("2-bb")],
            tombstone: tombstone
        )
        #expect(outcome == .inserted && remote.winner?.id == rev("2-cc") && remote.conflicts.isEmpty)

    }

    @Test func `of branches that lost only those stay that a remote has, and a few`() throws {
        var tree = try tree([["1-ff"]])
        for digest in ["aa", "bb", "cc", "dd", "ee", "ef"] {
            _ = try tree.insert(
                history: [rev("1-\(digest)")],
                flags: [],
                body: .emptyObject,
                allowConflict: true,
                remote: digest == "aa" ? 7 : nil,
                tombstone: tombstone
            )
            tree.keepLocal(over: rev("1-\(digest)")) { rev("2-\($0.text.dropFirst(2))") }
        }
        #expect(tree.winner?.id == rev("1-ff") && tree.conflicts.isEmpty)
        #expect(["aa", "cc", "dd", "ee", "ef"].allSatisfy { tree.contains(rev("1-\($0)")) })
        #expect(!tree.contains(rev("1-bb")))
    }

    @Test func `a branch that lost is refused when somebody brings it again`() throws {
        var tree = try tree([["3-cc", "2-bb"]])
        _ = try tree.insert(
            history: [rev("4-dd")],
            flags: [],
            body: .emptyObject,
            allowConflict: false,
            deletedBranch: [rev("4-dead"), rev("3-cc")],
            tombstone: tombstone
        )
        #expect(tree.winner?.id == rev("4-dd"))
        // What 3-cc followed once is no answer to what 3-cc lost against.
        #expect(throws: RevisionTree.Refusal.conflict) {
            try tree.insert(
                history: [rev("2-bb")],
                flags: .deleted,
                body: .emptyObject,
                allowConflict: false,
                deletedBranch: [rev("5-dead"), rev("4-dd")],
                tombstone: tombstone
            )
        }
        // So its sender follows what won.
        var sender = try self.tree([["2-bb"], ["4-dd"]])
        sender.keepLocal(over: rev("4-dd"), tombstone: tombstone)
        #expect(sender.winner?.id == rev("2-bb"))
        let hasFollowed = sender.follow(rev("4-dd"), child: rev("5-ee"), tombstone: tombstone)
        #expect(hasFollowed && sender.winner?.id == rev("5-ee"))
        #expect(sender.ancestors(of: rev("5-ee")) == [rev("4-dd")])
        let followsUnknown = sender.follow(rev("9-99"), child: rev("10-ee"), tombstone: tombstone)
        #expect(!followsUnknown)
    }

    @Test func `long histories are pruned, and what a remote has is kept with its body`() throws {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: try JSONText("{\"n\":1}"))
        tree.noteRemote(7, has: rev("1-aa"), tombstone: tombstone)
        for generation in 2...200 {
            tree.insertLocal(
                rev("\(generation)-aa"),
                parent: rev("\(generation - 1)-aa"),
                flags: [],
                body: try JSONText("{\"n\":\(generation)}")
            )
        }
        #expect(tree.nodes.count == 51)
        #expect(tree.node(rev("1-aa"))?.body?.description == "{\"n\":1}")
        #expect(tree.node(rev("199-aa"))?.body == nil)
        #expect(tree.ancestors(of: rev("200-aa")).last == rev("1-aa"))
    }

    @Test func `encoding and decoding give the same tree`() throws {
        var tree = try tree([
            ["3-cc", "2-bb", "1-aa"], ["3-dd", "2-bb"], ["1-0123456789abcdef0123456789abcdef01234567"],
        ])
        tree.noteRemote(3, has: rev("2-bb"), tombstone: tombstone)
        let bytes = try #require(tree.encoded)
        let winner = try #require(tree.winner)
        let body = try #require(winner.body)
        let again = try #require(RevisionTree(encoded: bytes, winnerBody: body))
        #expect(Set(again.nodes) == Set(tree.nodes))
        #expect(again.remotes == tree.remotes)
        for count in 0..<bytes.count {
            _ = RevisionTree(encoded: Array(bytes.prefix(count)), winnerBody: body)
        }
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20_000 {
            var broken = bytes
            broken[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(
                in: 0...255,
                using: &generator
            )
            _ = RevisionTree(encoded: broken, winnerBody: body)
        }
    }
}

@Suite struct SequenceTests {
    @Test func `sets of sequences behave as sets`() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<300 {
            var ours = (SequenceSet(), SequenceSet())
            var plain: (Set<UInt64>, Set<UInt64>) = ([], [])
            for _ in 0..<60 {
                let low = UInt64.random(in: 0..<40, using: &generator)
                let high = low + UInt64.random(in: 0..<4, using: &generator)
                ours.0.insert(low...high)
                plain.0.formUnion(low...high)
                let single = UInt64.random(in: 0..<40, using: &generator)
                ours.1.insert(single)
                plain.1.insert(single)
                let gone = UInt64.random(in: 0..<40, using: &generator)
                ours.0.remove(gone)
                plain.0.remove(gone)
            }
            for value in UInt64(0)..<50 {
                #expect(ours.0.contains(value) == plain.0.contains(value))
                #expect(
                    ours.0.intersection(ours.1).contains(value)
                        == plain.0.intersection(plain.1).contains(value)
                )
            }
            #expect(
                zip(ours.0.ranges, ours.0.ranges.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound }
            )
        }
    }

    @Test(arguments: [
        ("1", "2", true), ("2", "2", false), ("1", "\"2:9\"", true), ("2", "\"2:9\"", false),
        ("2", "\"2::9\"", true),
        ("3", "\"2::9\"", false), ("\"2:9\"", "9", true), ("\"2:9\"", "1", false),
        ("\"2:9\"", "\"3:1\"", true),
        ("\"2:9\"", "\"2:10\"", true), ("\"2:9\"", "\"2:9\"", false), ("\"2:9\"", "\"2:5:6\"", true),
        ("\"3:9\"", "\"2:5:6\"", false), ("\"2::9\"", "3", true), ("\"2::9\"", "2", false),
        ("\"2::9\"", "\"3:1\"", true),
        ("\"2::9\"", "\"3::1\"", true), ("\"2::9\"", "\"2::10\"", true), ("\"2:5:9\"", "\"2:6:1\"", true),
    ])
    func `remote sequences are ordered by the table`(lhs: String, rhs: String, expected: Bool) throws {
        let left = try #require(RemoteSequence(json: lhs))
        let right = try #require(RemoteSequence(json: rhs))
        #expect(left.isBefore(right) == expected)
    }

    @Test func `unknown forms have no order`() throws {
        let odd = try #require(RemoteSequence(json: "{\"a\":1}"))
        #expect(odd.isBefore(RemoteSequence(1)) == nil)
        #expect(RemoteSequence(json: "x") == nil)
    }
}

@Suite struct NameTests {
    @Test(arguments: [
        ("a", true), ("A_b-c%1", true), ("-x", true), ("_x", false), ("%x", false), ("", false),
        ("a b", false), ("é", false),
        ("_default", true), (String(repeating: "a", count: 251), true),
        (String(repeating: "a", count: 252), false),
    ])
    func `collection names keep to the rules`(name: String, isValid: Bool) {
        #expect((CollectionName(name: name) != nil) == isValid)
    }

    @Test func `paths leave the default scope out`() {
        #expect(CollectionName.default.path == "_default")
        #expect(CollectionName(path: "travel.sights")?.fullName == "travel.sights")
        #expect(CollectionName(path: "sights")?.fullName == "_default.sights")
        #expect(CollectionName(path: "a.b.c") == nil && CollectionName(path: "travel._default") == nil)
    }
}
