import LoveseatModel
import LoveseatTesting
import Testing

/// A document at several peers that exchange states, as with peers of version vectors, and trees, as between Loveseats. Some begin without versions.
struct StateMesh {
    private enum Link {
        case states, trees
    }

    private struct Peer {
        var tree = RevisionTree()
        /// Nil as long as it has no versions.
        var author: VersionAuthor?
        let source: SourceID
        /// How far its clock is ahead, in nanoseconds.
        let lead: Int64
    }

    private var generator: SeededGenerator
    private var peers: [Peer] = []
    private var links: [[Link]] = []
    private let policy: TreePolicy
    private var time: UInt64 = 0x18E9_F1F2_E876_1234
    private var number = 0
    private let resolves: Bool
    /// The content of each version that was ever seen.
    private var contents: [Version: RevisionTree.Node] = [:]
    private(set) var problems: [String] = []
    /// How many rounds it took until nothing changed; nil if that did not happen.
    private(set) var rounds: Int?

    var trees: [RevisionTree] { peers.map(\.tree) }

    /// Runs a history, and then rounds of all links until nothing changes.
    ///
    /// `trees`: whether some links exchange trees. `resolves`: whether apps resolve conflicts, at random.
    init(seed: UInt64, trees: Bool, resolves: Bool, depth: Int = RevisionTree.maximumDepth) throws {
        generator = SeededGenerator(seed: seed)
        policy = TreePolicy(depth: depth)
        self.resolves = resolves
        let count = generator.int(2...5)
        for number in 1...count {
            let lead = Int64(generator.int(-50...50)) * 1_000_000_000
            let source = SourceID(high: generator.next(), low: UInt64(number))
            peers.append(Peer(source: source, lead: lead))
            if generator.chance(0.7) { peers[number - 1].author = try VersionAuthor(source) }
        }
        for _ in 0..<count {
            links.append((0..<count).map { _ in trees && generator.chance(0.4) ? .trees : .states })
        }
        for _ in 0..<generator.int(4...40) { try step() }
        try settle()
    }

    private mutating func step() throws {
        time += generator.pick([0, 70_000, 1_000_000_000, 20_000_000_000])
        let index = generator.int(0...peers.count - 1)
        let other = generator.int(0...peers.count - 1)
        if index == other || generator.chance(0.4) {
            edit(index)
        } else {
            try sync(index, other, resolves: resolves)
        }
    }

    private mutating func settle() throws {
        for round in 0..<12 {
            let before = peers.map(\.tree)
            for index in peers.indices {
                for other in peers.indices where index != other { try sync(index, other, resolves: false) }
            }
            if peers.map(\.tree) == before {
                rounds = round
                return
            }
            time += 1_000_000_000
        }
    }

    private func wall(_ index: Int) -> UInt64 { time.advanced(by: Int(peers[index].lead)) }

    // MARK: Edits

    private mutating func edit(_ index: Int) {
        let parent = peers[index].tree.current
        number += generator.chance(0.2) ? 0 : 1
        let isDeleted = parent != nil && generator.chance(0.25)
        let content = isDeleted ? JSONText.emptyObject : body(number)
        let node = Self.name(RevisionDraft.edit(over: parent?.id, isDeleted, content))
        guard !peers[index].tree.contains(node.id) else { return }
        let base = peers[index].tree.versions.vectorToEdit(parent?.id)
        let wall = wall(index)
        let vector = try? peers[index].author?.edit(base, wall: wall)
        RevisionEdit(id: node.id, parent: node.parent, flags: node.flags, body: content, vector: vector)
            .insert(into: &peers[index].tree, by: policy)
        check(index)
    }

    /// The name of an edit or of a verdict, which its content, its parent and what it gave up decide.
    private static func name(
        _ edit: (parent: RevisionID?, isDeleted: Bool, body: JSONText, givenUp: [RevisionID])
    )
        -> RevisionTree.Node
    {
        let givenUp = edit.givenUp.map(\.text).joined()
        let text = "\(edit.parent?.text ?? "") \(edit.isDeleted) \(edit.body) \(givenUp)"
        let seed = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        var generator = SeededGenerator(seed: seed)
        return RevisionTree.Node(
            id: RevisionID(generation: (edit.parent?.generation ?? 0) + 1, digest: generator.bytes(20)),
            parent: edit.parent,
            flags: edit.isDeleted ? .deleted : [],
            body: edit.body
        )
    }

    // MARK: Syncs

    /// One peer pulls from another one, and pushes to it.
    private mutating func sync(_ active: Int, _ passive: Int, resolves: Bool) throws {
        guard links[active][passive] == .states else {
            for (one, other) in [(active, passive), (passive, active)] {
                try peers[one].tree.merge(peers[other].tree.knowledge, by: policy)
                policy.prune(&peers[one].tree)
                check(one)
            }
            return
        }
        for index in [active, passive] where peers[index].author == nil {
            peers[index].author = try VersionAuthor(peers[index].source)
        }
        try send(from: passive, to: active, resolves: resolves)
        try push(from: active, to: passive)
    }

    private mutating func send(from sender: Int, to receiver: Int, resolves: Bool) throws {
        guard let current = peers[sender].tree.current, current.body != nil else { return }
        let state = peers[sender].tree.versions.state(of: current.id)
        var tree = peers[receiver].tree
        switch tree.versions.relation(ofAnnounced: generator.chance(0.5) ? state : state.alone) {
        case .same, .older:
            try with(receiver) { resolution in
                try StateAnnouncement(state, remote: sender).record(in: &tree, by: &resolution)
            }
        case .newer, .conflict:
            let asks = resolves && generator.chance(0.6)
            try receive(state, current, at: receiver, in: &tree) { arrival in
                (arrival.remote, arrival.asksResolver) = (sender, asks)
            }
            if asks { try resolve(receiver, &tree) }
        }
        peers[receiver].tree = tree
        // Whatever waits for a resolver waits until the next sync.
        if !resolves { try resolveByRule(receiver) }
        check(receiver)
    }

    private mutating func push(from sender: Int, to receiver: Int) throws {
        var tree = peers[receiver].tree
        guard let current = peers[sender].tree.current, current.body != nil else { return }
        let state = peers[sender].tree.versions.state(of: current.id)
        let mark = peers[sender].tree.remotes[receiver]
        let parent = mark.flatMap { peers[sender].tree.versions.state(of: $0).name }
        switch tree.versions.relation(ofProposed: state, on: parent) {
        case .conflict:
            // The peer answers with its whole vector.
            return
        case .same, .older:
            peers[sender].tree.recordMark(of: receiver, at: current.id)
            return
        case .newer: break
        }
        do {
            try receive(state, current, at: receiver, in: &tree) { $0.refusesConflicts = true }
            peers[sender].tree.recordMark(of: receiver, at: current.id)
        } catch RevisionTree.InsertRefusal.conflict { return }
        peers[receiver].tree = tree
        check(receiver)
    }

    private mutating func receive(
        _ state: StateHistory,
        _ node: RevisionTree.Node,
        at index: Int,
        in tree: inout RevisionTree,
        _ change: (inout StateArrival) -> Void
    ) throws {
        var arrival = StateArrival(
            documentID: "x",
            state: state,
            flags: node.isDeleted ? .deleted : [],
            body: node.body ?? .emptyObject,
            sha256: Self.digest
        )
        change(&arrival)
        let wall = wall(index)
        try peers[index].author?.see(state.vector, wall: wall)
        try with(index) { _ = try arrival.insert(into: &tree, by: &$0) }
    }

    @Sendable private static func digest(_ bytes: [UInt8]) -> [UInt8] {
        var generator = SeededGenerator(
            seed: bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        )
        return generator.bytes(32)
    }

    // MARK: Resolutions

    private mutating func with(_ index: Int, _ body: (inout StateResolution) throws -> Void) throws {
        guard let author = peers[index].author else { return }
        var resolution = StateResolution(
            author: author,
            wall: wall(index),
            policy: policy,
            documentID: "doc",
            sha1: { Array(States.sha256($0).prefix(20)) }
        ) { draft in
            Self.name((draft.parent, draft.isDeleted, draft.body, draft.givenUp))
        }
        try body(&resolution)
        peers[index].author = resolution.author
    }

    private mutating func resolve(_ index: Int, _ tree: inout RevisionTree) throws {
        guard let pending = tree.pending.first else { return }
        number += 1
        let verdicts: [ConflictVerdict] = [
            .local, .remote, .merged(body: body(number), isDeleted: false, parent: pending.id),
            .merged(body: .emptyObject, isDeleted: true, parent: pending.id),
        ]
        let verdict = generator.pick(verdicts)
        try with(index) { try $0.resolve(pending.id, verdict, in: &tree) }
    }

    private mutating func resolveByRule(_ index: Int) throws {
        while let pending = peers[index].tree.pending.first {
            var tree = peers[index].tree
            try with(index) { try $0.resolve(pending.id, .byRule, in: &tree) }
            peers[index].tree = tree
        }
    }

    // MARK: The oracle

    /// One version names one content.
    private mutating func check(_ index: Int) {
        let tree = peers[index].tree
        problems += tree.problems
        for (id, vector) in tree.vectors {
            guard let version = vector.current, let node = tree.node(id), node.body != nil else { continue }
            guard let known = contents[version] else {
                contents[version] = node
                continue
            }
            if !known.saysTheSame(as: node) { problems.append("\(version) names \(known) and \(node)") }
        }
    }
}

extension RevisionDraft {
    fileprivate static func edit(over parent: RevisionID?, _ isDeleted: Bool, _ body: JSONText)
        -> (parent: RevisionID?, isDeleted: Bool, body: JSONText, givenUp: [RevisionID])
    {
        (parent, isDeleted, body, [])
    }
}

extension StateHistory {
    /// What is announced if only the name is.
    fileprivate var alone: StateHistory {
        vector.current.map { StateHistory(VersionVector($0)) }
            ?? StateHistory(vector, revisions: Array(revisions.prefix(1)))
    }
}
