package import LoveseatModel

/// The two sides of a conflict, and their common ancestor.
package struct ConflictCase: Hashable, Sendable {
    package struct Side: Hashable, Sendable {
        package let revision: RevisionID
        /// The version that names the revision; nil if it has none.
        package let version: Version?
        package let isDeleted: Bool
        package let body: JSONText

        package init(revision: RevisionID, version: Version? = nil, isDeleted: Bool, body: JSONText) {
            self.revision = revision
            self.version = version
            self.isDeleted = isDeleted
            self.body = body
        }
    }

    package let documentID: String
    /// How often verdicts about these two versions contradicted each other already.
    package let rounds: Int
    package let local: Side
    package let remote: Side
    /// The common ancestor, where its body is still here.
    package let base: Side?
    /// Whether versions decide, as between peers that have them. Peers with trees decide by revision IDs, although revisions may have versions.
    package let comparesVersions: Bool

    package init(
        documentID: String,
        rounds: Int = 0,
        local: Side,
        remote: Side,
        base: Side?,
        comparesVersions: Bool = false
    ) {
        self.documentID = documentID
        self.rounds = rounds
        self.comparesVersions = comparesVersions
        self.local = local
        self.remote = remote
        self.base = base
    }
}

extension ConflictCase {
    /// The maximum number of contradicting verdicts about the same two versions, over all connections.
    private static let maximumRounds = 4

    /// Whether the resolvers of the peers contradict each other, so that none is asked again.
    package var isGivenUp: Bool { rounds >= Self.maximumRounds }
}

/// How a conflict ends.
package enum Resolution: Hashable, Sendable {
    case local
    case remote
    case merged(JSONText)
    case deleted

    /// Returns the verdict for the revision tree (docs/decisions/0001).
    ///
    /// A new revision goes on top of the peer's: a hub takes it only there. Between two Loveseats it goes on top of the
    /// higher one, so that peers that merge alike make the same revision.
    package func verdict(on conflict: ConflictCase, with peer: RevisionTree.PeerKind) -> ConflictVerdict {
        let (local, remote) = (conflict.local, conflict.remote)
        let parent = peer == .loveseat ? max(local.revision, remote.revision) : remote.revision
        switch self {
        case .local: return .local
        case .remote: return .remote
        case .merged(let body): return .merged(body: body, isDeleted: false, parent: parent)
        case .deleted:
            if remote.isDeleted { return .remote }
            return local.isDeleted
                ? .local : .merged(body: .emptyObject, isDeleted: true, parent: parent)
        }
    }
}

/// The rule that peers without a resolver share: a deletion wins, then the higher generation, then the greater revision ID (replication.md
/// §13.4). In a conflict with a peer that has versions, ``StateRank`` decides between two that are alive.
package enum DefaultConflictResolver {
    package static func resolve(_ conflict: ConflictCase) -> Resolution {
        if conflict.local.isDeleted || conflict.remote.isDeleted { return .deleted }
        return conflict.rank(of: conflict.local) > conflict.rank(of: conflict.remote) ? .local : .remote
    }
}

extension ConflictCase {
    fileprivate func rank(of side: Side) -> StateRank {
        StateRank(comparesVersions ? side.version : nil, side.revision)
    }
}
