import LoveseatAssertions

/// Settles conflicts with states of peers that have versions (version-vectors.md §12). One side wins as it is, or new content replaces both.
///
/// A winner keeps its version, and its vector grows by the loser. So every peer that has the loser takes the winner for newer. In a document
/// with kept branches the rule chooses as it does for trees, and gives up nothing.
package struct StateResolution {
    /// This database. Its clock is to be stored together with the tree.
    package private(set) var author: VersionAuthor
    private let wall: UInt64
    let policy: TreePolicy
    private let documentID: String
    private let sha1: ([UInt8]) -> [UInt8]
    /// Names a new revision.
    private let make: (RevisionDraft) throws -> RevisionTree.Node

    /// Creates a resolution by an author.
    ///
    /// `wall`: the system's clock, in nanoseconds since 1970. `sha1`: the digest for names of copies. `make`: names a new revision, as for
    /// ``VerdictWriter``.
    package init(
        author: VersionAuthor,
        wall: UInt64,
        policy: TreePolicy,
        documentID: String,
        sha1: @escaping ([UInt8]) -> [UInt8],
        make: @escaping (RevisionDraft) throws -> RevisionTree.Node
    ) {
        (self.author, self.wall, self.policy, self.make) = (author, wall, policy, make)
        (self.documentID, self.sha1) = (documentID, sha1)
    }

    /// Settles the conflict between the current revision and a pending one.
    package mutating func resolve(
        _ pending: RevisionID,
        _ verdict: ConflictVerdict,
        in tree: inout RevisionTree
    ) throws {
        guard let current = tree.current, tree.nodes[pending]?.flags.contains(.pending) == true else {
            return impossible("revision \(pending) waits for no verdict")
        }
        tree.nodes[pending]?.flags.remove(.pending)
        try decide(between: current.id, and: pending, verdict, in: &tree)
        tree.releasePending()
        policy.prune(&tree)
    }

    /// Decides between two revisions, of which one came from a peer. Does not prune.
    mutating func decide(
        between local: RevisionID,
        and remote: RevisionID,
        _ verdict: ConflictVerdict,
        in tree: inout RevisionTree
    ) throws {
        let (mine, theirs) = (tree.versions.state(of: local), tree.versions.state(of: remote))
        let side: Side
        switch verdict {
        case .local: side = .local
        case .remote: side = .remote
        case .byRule where tree.keepsBranches:
            side = tree.current.map { tree.versions.isSame(remote, $0) } == true ? .remote : .local
        case .byRule: side = Self.prefersRemote(local, remote, in: tree) ? .remote : .local
        case .merged(let body, let isDeleted, _):
            let vector = try merged(mine, theirs)
            return try add(body, isDeleted, vector, between: local, and: remote, in: &tree)
        }
        let (winner, loser) = side == .local ? (local, remote) : (remote, local)
        switch try outcome(mine, theirs, side) {
        case .unchanged(let vector):
            if let vector { tree.addVector(vector, of: winner) }
            // CouchDB's rule has chosen the winner, and all leaves stay.
            if tree.keepsBranches, verdict == .byRule { return }
            try keep(winner, over: loser, in: &tree)
        case .edit(let vector):
            // If content is lost, the rule for the current revision decides.
            guard let node = tree.nodes[winner], let body = node.body else { return }
            try add(body, node.isDeleted, vector, between: local, and: remote, in: &tree)
        }
    }

    /// Makes the current revision newer than the states that have lost to it here and include it in turn. Does not prune.
    package mutating func outdoKnown(in tree: inout RevisionTree) throws {
        let over = tree.versions.vectorsOverCurrent
        if let first = over.first {
            try outdo(over.dropFirst().reduce(first) { $0.including($1) }, in: &tree)
        }
    }

    /// Makes the current revision newer than a state that has lost to it here, for a peer that compares vectors only: its vector grows, or if the state
    /// includes the current one in turn, a copy of that on top of itself gets a new version. Does not prune.
    ///
    /// A copy is not an edit: an edit of its original replaces both.
    mutating func outdo(_ loser: VersionVector, in tree: inout RevisionTree) throws {
        // Without content, and above the highest generation, there can be no copy. A vector with a wrong time is never sent.
        guard let current = tree.current, current.body != nil, current.id.generation < .max,
            loser.hasValidTimes
        else { return }
        let own = tree.versions.announcedState(of: current.id).vector
        if let name = own.current {
            guard let time = loser.time(of: name.source), time >= name.time else {
                return tree.addVector(try own.winning(over: loser), of: current.id)
            }
            // Its author has gone on from the current revision: a new version would bring old content back.
            if time > name.time, name.source != .revisionTree { return }
        }
        try copy(current, own.united(with: loser), in: &tree)
    }

    /// Puts a copy of the current revision on top of itself, with a new version.
    ///
    /// A peer that refuses the current revision over the very state that it has, in every form, has decided for that state before, and does not tell. So
    /// each database does this once for a revision: what the peer refuses after that, it refuses for another reason. Does not prune.
    package mutating func renew(in tree: inout RevisionTree) throws {
        // Without content, and above the highest generation, there can be no copy.
        guard let current = tree.current, current.body != nil, current.id.generation < .max else { return }
        let original = tree.original(current.id)
        let isRenewed = tree.copies.keys.contains { id in
            tree.original(id) == original && tree.vectors[id]?.current?.source == author.source
        }
        if isRenewed || !tree.pending.isEmpty { return }
        try copy(current, tree.versions.announcedState(of: current.id).vector, in: &tree)
    }

    private mutating func copy(
        _ current: RevisionTree.Node,
        _ base: VersionVector,
        in tree: inout RevisionTree
    ) throws {
        let name = CopyName(original: tree.original(current.id), origin: tree.origin(of: current.id))
        let id = name.id(over: current.id, of: documentID, sha1: sha1)
        let vector = try author.edit(base, wall: wall)
        let flags = current.flags.intersection([.deleted, .hasBlobs])
        tree.nodes[id] = RevisionTree.Node(id: id, parent: current.id, flags: flags, body: current.body)
        tree.addCopies([id])
        tree.addVector(vector, of: id)
    }

    /// Adds a new revision on top of the peer's, which is what the peer accepts it on.
    private func add(
        _ body: JSONText,
        _ isDeleted: Bool,
        _ vector: VersionVector,
        between local: RevisionID,
        and remote: RevisionID,
        in tree: inout RevisionTree
    ) throws {
        let node = try make(
            RevisionDraft(parent: remote, givenUp: [local], isDeleted: isDeleted, body: body)
        )
        try writer.giveUp([local], in: &tree)
        tree.nodes[node.id] = node
        tree.addVector(vector, of: node.id)
    }

    /// Gives up a loser. In a document with kept branches it gets a tombstone, so the winner gets a revision on top, under its own version:
    /// opposite verdicts would delete both otherwise (docs/decisions/0009).
    private func keep(
        _ winner: RevisionID,
        over loser: RevisionID,
        in tree: inout RevisionTree
    ) throws {
        guard tree.keepsBranches, let node = tree.nodes[winner], !node.isDeleted, let body = node.body,
            winner.generation < .max
        else { return try writer.giveUp([loser], in: &tree) }
        let vector = tree.versions.state(of: winner).vector
        let kept = try make(
            RevisionDraft(parent: winner, givenUp: [loser], isDeleted: false, body: body)
        )
        try writer.giveUp([loser], in: &tree)
        tree.nodes[kept.id] = kept
        if !vector.isEmpty { tree.addVector(vector, of: kept.id) }
    }

    private var writer: VerdictWriter { VerdictWriter(policy: policy, make: make) }

    // MARK: The rule

    /// Whether the peer's side wins where no resolver decides: a deletion wins, then a version over a revision ID, then the greater version or
    /// ID (version-vectors.md §12, and R1 in §12.1). Both peers of a conflict decide alike.
    private static func prefersRemote(_ local: RevisionID, _ remote: RevisionID, in tree: RevisionTree)
        -> Bool
    {
        let isDeleted = (tree.nodes[local]?.isDeleted == true, tree.nodes[remote]?.isDeleted == true)
        if isDeleted.0 != isDeleted.1 { return isDeleted.1 }
        return isGreater(remote, than: local, in: tree)
    }

    /// Whether a revision wins over another one with the same content.
    static func isGreater(_ id: RevisionID, than other: RevisionID, in tree: RevisionTree) -> Bool {
        tree.versions.rank(of: id) > tree.versions.rank(of: other)
    }

    // MARK: Vectors

    private enum Side {
        case local, remote
    }

    private enum Outcome {
        /// The winner's revision stays, with this vector; nil if it stays as it is.
        case unchanged(VersionVector?)
        /// The winner's content gets a new version, because its own cannot include the loser.
        case edit(VersionVector)
    }

    /// Something that has a name in one of two worlds, or in both.
    private enum Form {
        /// A revision of a tree, and the version that stands for it, if there is one.
        case revision(Version?)
        /// A version that stands for a revision of a tree, in a vector.
        case encoded(VersionVector)
        case version(VersionVector)

        init(_ state: StateHistory) {
            switch state.vector.current?.source {
            case nil: self = .revision(state.revisions.first?.encodedVersion)
            case .revisionTree?: self = .encoded(state.vector)
            case _?: self = .version(state.vector)
            }
        }
    }

    /// The result of saving a resolution in favour of one side, by the table in version-vectors.md §12.
    private mutating func outcome(_ mine: StateHistory, _ theirs: StateHistory, _ side: Side) throws
        -> Outcome
    {
        switch (Form(mine), Form(theirs), side) {
        case (.version(let own), .version(let other), .local),
            (.version(let own), .encoded(let other), .local),
            (.encoded(let own), .version(let other), .local),
            (.encoded(let own), .encoded(let other), .local):
            return try trivial(own, over: other)
        case (.version(let own), .version(let other), .remote),
            (.version(let own), .encoded(let other), .remote),
            (.encoded(let own), .version(let other), .remote),
            (.encoded(let own), .encoded(let other), .remote):
            return try trivial(other, over: own)
        case (.revision(let own), .revision, .local):
            guard let own else { return .edit(try edit(mine, theirs, keeping: [])) }
            return .unchanged(VersionVector(own))
        case (.revision(let own), .version(let other), .local):
            guard let own else { return .edit(try author.edit(other, wall: wall)) }
            return try trivial(VersionVector(own), over: other)
        case (.version(let own), .revision(let other), .local):
            return try other.map { try trivial(own, over: VersionVector($0)) } ?? .unchanged(nil)
        case (.revision, .encoded(let other), .local):
            return .edit(try edit(mine, theirs, keeping: other.versions.prefix(1)))
        case (.encoded, .revision(let other), .local):
            return .edit(try edit(mine, theirs, keeping: [other].compactMap { $0 }[...]))
        case (.revision, _, .remote):
            return .unchanged(nil)
        case (.version, .revision(let other), .remote), (.encoded, .revision(let other), .remote):
            return .unchanged(other.map { VersionVector($0) })
        }
    }

    /// The vector of new content, by the table in version-vectors.md §12.
    private mutating func merged(_ mine: StateHistory, _ theirs: StateHistory) throws -> VersionVector {
        switch (Form(mine), Form(theirs)) {
        case (.version(let own), .version(let other)), (.version(let own), .encoded(let other)),
            (.encoded(let own), .version(let other)), (.encoded(let own), .encoded(let other)):
            return try merge(own, other)
        case (.revision(let own), .version(let other)):
            return try own.map { try merge(VersionVector($0), other) } ?? author.edit(other, wall: wall)
        case (.version(let own), .revision(let other)):
            return try other.map { try merge(own, VersionVector($0)) } ?? author.edit(own, wall: wall)
        case (.revision, .revision), (.revision, .encoded), (.encoded, .revision):
            return try edit(mine, theirs, keeping: [])
        }
    }

    /// The winner as it is, or a new version with its content, if the loser has a later version by its author (R3 in §12.1).
    private mutating func trivial(_ winner: VersionVector, over loser: VersionVector) throws -> Outcome {
        winner.canWinUnchanged(over: loser)
            ? .unchanged(try winner.winning(over: loser)) : .edit(try merge(winner, loser))
    }

    private mutating func merge(_ one: VersionVector, _ other: VersionVector) throws -> VersionVector {
        do throws(VersionError) {
            // A later version by the author of one of the two has no place in a merge, which then is an edit of both.
            return try author.merge(one, other, wall: wall).including(one).including(other)
        } catch {
            // One author made both, in a database that was restored from a backup.
            guard error.reason == .sameAuthor else { throw error }
            return try author.edit(one.united(with: other), wall: wall)
        }
    }

    /// A new version that includes only these, and is later than all of the author's.
    private mutating func edit(
        _ mine: StateHistory,
        _ theirs: StateHistory,
        keeping versions: ArraySlice<Version>
    ) throws -> VersionVector {
        let edited = try author.edit(mine.vector.united(with: theirs.vector), wall: wall)
        return VersionVector(unchecked: Array(edited.versions.prefix(1)), previous: Array(versions))
    }
}
