import LoveseatModel
import LoveseatReplication
import Synchronization
import Testing

/// What a peer may read and write, by one table for every wire. The peer is bob: content with `"bob": 2` is his to write, with 1 to read.
struct AccessRulingTests {
    /// A document: its revisions, each with its right for bob, and with which one it goes on from.
    struct Stored: RuledDocument {
        let id = "d"
        var nodes: [RevisionTree.Node]
        let revision: RevisionID

        /// `lines`: "revision parent right"; the right is 0 to 2, "-" for content that is not here, "x" for an empty deletion, "x0" to "x2" for
        /// a deletion with content. The first one is current.
        init(_ lines: String...) {
            nodes = lines.map(node)
            revision = nodes[0].id
        }

        var isDeleted: Bool { nodes[0].isDeleted }
        var body: JSONText { nodes[0].body ?? .emptyObject }
        var hasTree: Bool { nodes.count > 1 }
        func tree() -> RevisionTree { RevisionTree(nodes: nodes, remotes: [:]) }
    }

    private static func revision(_ text: Substring) -> RevisionID? { RevisionID(String(text)) }

    private static func body(_ right: Substring) -> JSONText? {
        switch right {
        case "-": nil
        case "x": .emptyObject
        default: JSONText(canonical: ["bob": JSONValue(Int(right.filter(\.isNumber)) ?? 0)])
        }
    }

    private static func node(_ line: String) -> RevisionTree.Node {
        let parts = line.split(separator: " ")
        return RevisionTree.Node(
            id: revision(parts[0]) ?? RevisionID(generation: 1, digest: []),
            parent: revision(parts[1]),
            flags: parts[2].hasPrefix("x") ? .deleted : [],
            body: body(parts[2])
        )
    }

    private static func ruling(_ collection: AccessRight = .write) -> AccessRuling {
        AccessRuling { candidate in
            guard let candidate else { return collection }
            return AccessRight(rawValue: UInt8(JSONElement(candidate.body)["bob"]?.int ?? 0)) ?? .none
        }
    }

    // MARK: Reading

    struct Reading: CustomTestStringConvertible {
        let testDescription: String
        let document: Stored
        var wasSent = false
        var collection = AccessRight.write
        let mayRead: Bool

        init(
            _ name: String,
            _ document: Stored,
            sent wasSent: Bool = false,
            in collection: AccessRight = .write,
            _ mayRead: Bool
        ) {
            (testDescription, self.document) = (name, document)
            (self.wasSent, self.collection, self.mayRead) = (wasSent, collection, mayRead)
        }
    }

    private static let readings: [Reading] = [
        Reading("hidden", Stored("1-a - 0"), false),
        Reading("hidden, though it was sent before", Stored("1-a - 0"), sent: true, false),
        Reading("readable", Stored("1-a - 1"), true),
        Reading("writable", Stored("1-a - 2"), true),
        Reading("readable in a hidden collection", Stored("1-a - 2"), in: .none, false),
        Reading("readable over a hidden one", Stored("2-b 1-a 1", "1-a - 0"), true),
        Reading("hidden over a readable one", Stored("2-b 1-a 0", "1-a - 1"), false),
        Reading("a deletion of a readable one", Stored("2-b 1-a x", "1-a - 1"), true),
        Reading(
            "a deletion with content of its own, of a readable one",
            Stored("2-b 1-a x0", "1-a - 1"),
            true
        ),
        Reading("a deletion of a hidden one", Stored("2-b 1-a x", "1-a - 0"), false),
        Reading("a deletion of one that was sent", Stored("2-b 1-a x", "1-a - 0"), sent: true, true),
        Reading("one that was sent, readable collection", Stored("1-a - x"), sent: true, in: .read, true),
        Reading(
            "a deletion of one that was sent, hidden collection",
            Stored("1-a - x"),
            sent: true,
            in: .none,
            false
        ),
        Reading(
            "a deletion with content, of one that was sent",
            Stored("2-b 1-a x0", "1-a - 0"),
            sent: true,
            false
        ),
        Reading("a deletion of unknown content", Stored("2-b 1-a x", "1-a - -"), false),
        Reading("a readable deletion of unknown content", Stored("2-b 1-a x1", "1-a - -"), true),
        Reading("a deletion of unknown content that was sent", Stored("1-a - x"), sent: true, true),
    ]

    @Test(arguments: readings)
    func `a document is decided on by its current revision, or by what was deleted`(
        _ reading: Reading
    ) throws {
        let ruling = Self.ruling(reading.collection)
        #expect(try ruling.mayRead(reading.document) { reading.wasSent } == reading.mayRead)
    }

    @Test func `of a readable document only readable revisions are a base`() throws {
        let document = Stored("3-c 2-b 1", "2-b 1-a 0", "1-a - 1")
        let ruling = Self.ruling()
        for (index, mayBuild) in [true, false, true].enumerated() {
            let candidate = try #require(FilterCandidate(document.nodes[index], of: "d"))
            #expect(try ruling.mayBuild(on: candidate, of: document) { false } == mayBuild)
        }
        let hidden = Stored("3-c 2-b 0", "2-b - 1")
        let base = try #require(FilterCandidate(hidden.nodes[1], of: "d"))
        #expect(try !ruling.mayBuild(on: base, of: hidden) { true })
    }

    @Test func `a tree goes along without what the peer may not read, and with deletions that say nothing`() {
        let document = Stored("2-b 1-a 1", "1-a - 0", "2-c 1-a x", "2-d 1-a x0", "2-e 1-a -")
        let ruling = Self.ruling()
        #expect(document.nodes.map { ruling.maySend($0, of: "d") } == [true, false, true, false, true])
    }

    @Test func `what was sent is lost and regained once, and a deletion is no loss`() throws {
        let ruling = Self.ruling()
        for (document, wasLost, change) in [
            (Stored("1-a - 0"), false, AccessRuling.AccessChange.lost), (Stored("1-a - 0"), true, nil),
            (Stored("1-a - 1"), false, nil), (Stored("1-a - 1"), true, .regained),
            (Stored("2-b 1-a x", "1-a - 0"), false, nil), (Stored("2-b 1-a x", "1-a - 1"), true, nil),
        ] {
            #expect(try ruling.change(of: document, wasLost: wasLost) == change)
        }
    }

    // MARK: Writing

    struct Writing: CustomTestStringConvertible {
        let testDescription: String
        let document: Stored?
        /// "history right": the history is the revisions with commas between them, or "-".
        let change: String
        var tree: [String] = []
        var collection = AccessRight.write
        let mayWrite: Bool

        init(
            _ name: String,
            _ document: Stored?,
            _ change: String,
            with tree: [String] = [],
            in collection: AccessRight = .write,
            _ mayWrite: Bool
        ) {
            (testDescription, self.document, self.change) = (name, document, change)
            (self.tree, self.collection, self.mayWrite) = (tree, collection, mayWrite)
        }

        var proposed: AccessRuling.Change {
            let parts = change.split(separator: " ")
            var change = AccessRuling.Change(
                id: "d",
                history: parts[0].split(separator: ",").compactMap(revision),
                isDeleted: parts[1].hasPrefix("x"),
                body: body(parts[1]) ?? .emptyObject
            )
            if !tree.isEmpty {
                change.knowledge = TreeKnowledge()
                change.knowledge?.nodes = tree.map(node)
            }
            return change
        }
    }

    private static let twoBranches = Stored("2-b 1-a 2", "1-a - 2", "2-a 1-a 0")

    private static let writings: [Writing] = [
        Writing("a new document", nil, "1-a 2", true),
        Writing("a new document that it may only read", nil, "1-a 1", false),
        Writing("a new document in a collection that it may read", nil, "1-a 2", in: .read, false),
        Writing("a deletion of nothing", nil, "1-a x", false),
        Writing("an edit", Stored("1-a - 2"), "2-b,1-a 2", true),
        Writing("an edit that names its parent", Stored("1-a - 2"), "1-a 2", true),
        Writing("an edit without a history", Stored("1-a - 2"), "- 2", true),
        Writing("an edit in a collection that it may read", Stored("1-a - 2"), "1-a 2", in: .read, false),
        Writing("an edit of what it may read", Stored("1-a - 1"), "2-b,1-a 2", false),
        Writing("an edit by which it loses the document", Stored("1-a - 2"), "2-b,1-a 1", false),
        Writing("a deletion", Stored("1-a - 2"), "2-b,1-a x", true),
        Writing("a deletion of what it may read", Stored("1-a - 1"), "2-b,1-a x", false),
        Writing("anew over its own deletion", Stored("2-b 1-a x", "1-a - 2"), "3-c,2-b 2", true),
        Writing("anew over another one's deletion", Stored("2-b 1-a x", "1-a - 0"), "3-c,2-b 2", false),
        Writing("anew over a deletion of unknown content", Stored("2-b 1-a x", "1-a - -"), "3-c 2", false),
        // What it goes on from.
        Writing("beside its own revision", Stored("2-b 1-a 2", "1-a - 2"), "2-c,1-a 2", true),
        Writing(
            "on top of an older revision of another one",
            Stored("2-b 1-a 2", "1-a - 0"),
            "2-c,1-a 2",
            false
        ),
        Writing(
            "an edit of an older revision of another one",
            Stored("2-b 1-a 2", "1-a - 0"),
            "1-a 2",
            false
        ),
        Writing(
            "over its own revision of another one's document",
            Stored("2-b 1-a 2", "1-a - 0"),
            "3-c,2-b,1-a 2",
            true
        ),
        Writing("over a revision of unknown content", Stored("2-b 1-a 2", "1-a - -"), "2-c,1-a 2", true),
        Writing(
            "over the deletion of another one's branch",
            Stored("2-b - 2", "2-a 1-a x", "1-a - 0"),
            "3-c,2-a,1-a 2",
            false
        ),
        // Content beside the current revision.
        Writing("the current branch of two", twoBranches, "3-b,2-b,1-a 2", true),
        Writing("the current one of two, once more", twoBranches, "2-b,1-a 2", true),
        Writing("an edit without a history, of two", twoBranches, "- 2", true),
        Writing("another one's branch of two", twoBranches, "3-a,2-a,1-a 2", false),
        Writing("the deletion of another one's branch", twoBranches, "3-a,2-a,1-a x", false),
        Writing("a line through another one's branch", twoBranches, "4-a,3-a,2-a,1-a 2", false),
        Writing(
            "a tree that ends another one's branch",
            twoBranches,
            "3-b,2-b 2",
            with: ["3-a 2-a x"],
            false
        ),
        // The tree that comes along.
        Writing(
            "with a tree of its own",
            nil,
            "2-b,1-a 2",
            with: ["2-b 1-a 2", "1-a - 2", "2-c 1-a x"],
            true
        ),
        Writing(
            "with content of another one in the tree",
            nil,
            "2-b 2",
            with: ["2-b - 2", "2-c - 0"],
            false
        ),
        Writing("with content that is here already", twoBranches, "3-b,2-b 2", with: ["2-a 1-a 0"], true),
        Writing(
            "with content of another one, over its own",
            Stored("1-a - 2"),
            "2-b,1-a 2",
            with: ["2-c - 1"],
            false
        ),
    ]

    @Test(arguments: writings)
    func `a peer may write over what it may write, and nothing of others`(_ writing: Writing) throws {
        let ruling = Self.ruling(writing.collection)
        #expect(try ruling.write(writing.proposed, over: writing.document).mayWrite == writing.mayWrite)
    }

    /// The document, the state that a peer with version vectors sends, as the vector and the revisions behind it, and its right.
    private static let states: [(String, Stored, vector: String, revisions: [String], right: String, Bool)] =
        [
            ("an edit", Stored("1-aa - 2"), Texts.b3, ["1-aa"], "2", true),
            (
                "an edit of the encoded revision", Stored("1-aa - 2"), "\(Texts.b3); 1aa00000000@\(encoding)",
                [], "2", true
            ),
            ("an edit of what it may read", Stored("1-aa - 1"), Texts.b3, ["1-aa"], "2", false),
            ("an edit by which it loses the document", Stored("1-aa - 2"), Texts.b3, ["1-aa"], "1", false),
            ("a deletion", Stored("1-aa - 2"), Texts.b3, ["1-aa"], "x", true),
            ("of a tree", Stored("1-aa - 2"), "", ["2-bb", "1-aa"], "2", true),
            (
                "on top of another one's older revision", Stored("2-bb 1-aa 2", "1-aa - 0"), Texts.b3,
                ["1-aa"], "2", false
            ),
            (
                "over its own of another one's", Stored("2-bb 1-aa 2", "1-aa - 0"), Texts.b3,
                ["2-bb", "1-aa"], "2", true
            ),
            ("the current branch of two", branches, Texts.b3, ["2-bb", "1-aa"], "2", true),
            ("another one's branch of two", branches, Texts.b3, ["2-aa", "1-aa"], "2", false),
            ("both branches of two", branches, "\(Texts.b3); 2aa00000000@\(encoding)", ["2-bb"], "2", false),
        ]
    private static let encoding = "Revision+Tree+Encoding"
    private static let branches = Stored("2-bb 1-aa 2", "1-aa - 2", "2-aa 1-aa 0")

    @Test(arguments: states.indices)
    func `a peer with versions may write over what its state includes, and nothing of others`(
        _ index: Int
    ) throws {
        let (name, document, vector, revisions, right, mayWrite) = Self.states[index]
        let state = StateHistory(
            try VersionVector(vector),
            revisions: revisions.compactMap { RevisionID($0) }
        )
        let revision = IncomingRevision(
            documentID: "d",
            history: .state(state),
            isDeleted: right == "x",
            body: try #require(Self.body(right[...])),
            sender: .versions
        )
        let ruling = try Self.ruling().write(AccessRuling.Change(revision), over: document)
        #expect(ruling.mayWrite == mayWrite, "\(name)")
    }

    @Test func `a peer decides nothing about content that it may not write`() throws {
        let other = try #require(RevisionID("2-a"))
        let own = try #require(RevisionID("2-b"))
        let change = Writing("", nil, "3-b,2-b,1-a 2", true).proposed
        let ruling = try Self.ruling().write(change, over: Self.twoBranches)
        var knowledge = TreeKnowledge()
        knowledge.closed = [other, own]
        // The peer's revision would supersede whatever its vector includes.
        knowledge.vectors = [own: try VersionVector("1800000000000000@ZwCGnI/3SA40pwpwiwKHAA")]
        ruling.foreign.removeDecisions(from: &knowledge)
        #expect(knowledge.closed == [own])
        #expect(knowledge.vectors.isEmpty)
    }

    @Test func `a digest gives content to nobody who may not read it elsewhere in the document`() throws {
        let digest = BlobDigest(sha1: (0..<20).map { UInt8($0) })
        let photo: JSONValue = ["@type": "blob", "digest": .string(digest.text), "length": 5]
        func stored(_ right: Int) -> Stored {
            var stored = Stored("2-b 1-a 2", "1-a - 0")
            stored.nodes[1] = RevisionTree.Node(
                id: stored.nodes[1].id,
                parent: nil,
                flags: [.hasBlobs],
                body: JSONText(canonical: ["bob": JSONValue(right), "photo": photo])
            )
            return stored
        }
        var change = AccessRuling.Change(
            id: "d",
            history: ["3-c", "2-b", "1-a"].compactMap { RevisionID($0) },
            isDeleted: false,
            body: JSONText(canonical: ["bob": 2, "photo": photo])
        )
        #expect(try !Self.ruling().mayRefer(change, over: stored(0)))
        #expect(try Self.ruling().mayRefer(change, over: stored(1)))
        #expect(try !Self.ruling().mayRefer(change, over: Stored?.none))
        change.received = [digest]
        #expect(try Self.ruling().mayRefer(change, over: stored(0)))
        #expect(try Self.ruling().mayRefer(change, over: Stored?.none))
        change.hasStubs = true
        #expect(try !Self.ruling().mayRefer(change, over: stored(0)))
        #expect(try Self.ruling().mayRefer(change, over: stored(1)))
    }

    @Test func `a policy is asked about each revision once`() throws {
        let asked = Mutex<[FilterCandidate?]>([])
        let ruling = AccessRuling { candidate in
            asked.withLock { $0.append(candidate) }
            return .write
        }
        let document = Stored("2-b 1-a 2", "1-a - 2")
        for text in ["2-b 2", "3-c,2-b,1-a 2"] {
            let change = Writing("", nil, text, true).proposed
            #expect(try ruling.write(change, over: document).mayWrite)
            #expect(try ruling.mayRefer(change, over: document))
            #expect(try ruling.mayRead(document) { false })
        }
        // The collection, the current revision, and the new one; the edit that names its parent has the parent's content.
        #expect(asked.withLock { $0.count } == 3)
        #expect(asked.withLock { $0.filter { $0 == nil }.count } == 1)
    }
}
