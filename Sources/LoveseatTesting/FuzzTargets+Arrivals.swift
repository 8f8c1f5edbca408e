import LoveseatModel
import LoveseatStorage

extension FuzzTargets {
    /// States that arrive at one document, with and without their content, and verdicts about those that are in conflict. After each step the tree has a
    /// current revision, and is read from the disk as it was written.
    static func arrivals(_ bytes: [UInt8]) {
        // A name cannot be reserved that is not `revisionTree`.
        guard let author = try? VersionAuthor(SourceID(high: 1, low: 1)) else { return }
        var document = HostileDocument(author)
        for piece in pieces(of: bytes) { document.receive(piece) }
    }
}

/// A document, and a peer that says anything of it.
private struct HostileDocument {
    private static let wall: UInt64 = 0x18F0_0000_0000_0000
    private static let id = "d"

    private var tree = RevisionTree()
    private var author: VersionAuthor
    private let policy = TreePolicy(depth: 8)

    init(_ author: VersionAuthor) { self.author = author }

    /// The first byte says what to do; `rev` and, behind a line feed, `history` follow.
    mutating func receive(_ piece: [UInt8]) {
        // A piece may be empty.
        guard let head = piece.first else { return }
        let parts = piece.dropFirst().split(
            separator: 0x0A,
            maxSplits: 1,
            omittingEmptySubsequences: false
        ).map { String(decoding: $0, as: UTF8.self) }
        // A state that is refused leaves the tree as it was.
        let before = tree
        do { try apply(head, parts) } catch {
            precondition(tree.summary == before.summary, "what is refused changes the tree")
        }
        if tree.isEmpty { return }
        precondition(tree.problems.isEmpty, "a tree contradicts itself")
        FuzzTargets.examine(tree)
        for name in tree.nodes.keys.compactMap({ tree.versions.state(of: $0).name }) {
            _ = tree.versions.node(named: name)
        }
    }

    private mutating func apply(_ head: UInt8, _ parts: [String]) throws {
        let kind = head & 7
        if kind == 7 { return try resolve(head) }
        let state = try StateHistory(rev: parts.first ?? "", history: parts.count > 1 ? parts[1] : nil)
        let currentName = tree.current.flatMap { tree.versions.state(of: $0.id).name }
        _ = tree.versions.relation(ofAnnounced: state)
        _ = tree.versions.relation(ofProposed: state, on: currentName)
        var grown = tree
        var seen = author
        try seen.see(state.vector, wall: Self.wall)
        var resolution = resolution(by: seen)
        if kind == 6 {
            try StateAnnouncement(state, remote: 1).record(in: &grown, by: &resolution)
        } else {
            var arrival = StateArrival(
                documentID: Self.id,
                state: state,
                flags: head & 8 == 0 ? [] : .deleted,
                body: head & 8 == 0 ? JSONText(canonical: ["n": JSONValue(Int(head >> 6))]) : .emptyObject,
                sha256: Hashing.sha256
            )
            arrival.refusesConflicts = kind < 2
            arrival.asksResolver = kind == 2
            arrival.remote = kind < 2 ? nil : 1
            arrival.isOutdated = kind == 3
            if head & 16 != 0 { arrival.parent = currentName }
            if head & 32 != 0 { arrival.knownRevision = tree.remotes[1] }
            _ = try arrival.insert(into: &grown, by: &resolution)
        }
        (tree, author) = (grown, resolution.author)
    }

    private mutating func resolve(_ head: UInt8) throws {
        // Nothing may be in conflict.
        guard let pending = tree.pending.first else { return }
        let verdict: ConflictVerdict =
            switch head >> 3 & 3 {
            case 0: .local
            case 1: .remote
            case 2: .byRule
            default:
                .merged(body: JSONText(canonical: ["m": 1]), isDeleted: head >> 5 == 0, parent: pending.id)
            }
        var grown = tree
        var resolution = resolution(by: author)
        try resolution.resolve(pending.id, verdict, in: &grown)
        (tree, author) = (grown, resolution.author)
    }

    private func resolution(by author: VersionAuthor) -> StateResolution {
        StateResolution(
            author: author,
            wall: Self.wall,
            policy: policy,
            documentID: Self.id,
            sha1: Hashing.sha1
        ) { draft in
            let text = "\(draft.parent) \(draft.isDeleted) \(draft.body.description)"
            let (generation, isLast) = draft.parent.generation.addingReportingOverflow(1)
            if isLast { throw RevisionTree.InsertRefusal.badHistory }
            let edit = RevisionID(generation: generation, digest: Hashing.sha1(Array(text.utf8)))
            return RevisionTree.Node(
                id: VerdictName.id(
                    ofEdit: edit,
                    over: draft.parent,
                    givingUp: draft.givenUp,
                    sha1: Hashing.sha1
                ),
                parent: draft.parent,
                flags: draft.isDeleted ? .deleted : [],
                body: draft.body
            )
        }
    }
}
