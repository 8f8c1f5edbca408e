package import LoveseatModel

/// The two sides of a conflict, and what they grew from.
package struct ConflictCase: Hashable, Sendable {
    package struct Side: Hashable, Sendable {
        package let revision: RevisionID
        package let isDeleted: Bool
        package let body: JSONText

        package init(revision: RevisionID, isDeleted: Bool, body: JSONText) {
            self.revision = revision
            self.isDeleted = isDeleted
            self.body = body
        }
    }

    package let documentID: String
    package let local: Side
    package let remote: Side
    /// The common ancestor, where its body is still here.
    package let base: Side?

    /// How the conflict ends without asking anybody: both sides deleted the document, or say the same.
    ///
    /// The higher revision stands, as everywhere. Taking the remote one always would do with one server in the middle;
    /// among peers two equal revisions would follow each other in a ring for ever.
    package var agreement: Resolution? {
        guard local.isDeleted == remote.isDeleted, local.isDeleted || local.body == remote.body else {
            return nil
        }
        return remote.revision > local.revision ? .remote : .local
    }

    package init(documentID: String, local: Side, remote: Side, base: Side?) {
        self.documentID = documentID
        self.local = local
        self.remote = remote
        self.base = base
    }
}

/// How a conflict ends.
package enum Resolution: Hashable, Sendable {
    case local
    case remote
    case merged(JSONText)
    case deleted

    /// What that means for the revision tree (replication.md §13.3).
    ///
    /// `closesBranches`: whether the peer takes a `deleted_branch` (docs/extensions.md). If not, the remote
    ///   branch must win, and a local winner becomes a child of the remote revision.
    package func settlement(of conflict: ConflictCase, closesBranches: Bool) -> RevisionTree.Settlement {
        switch self {
        case .remote: return .remoteStands
        case .local where closesBranches: return .localStands
        case .local: return .child(body: conflict.local.body, isDeleted: conflict.local.isDeleted)
        case .merged(let body): return .child(body: body, isDeleted: false)
        case .deleted:
            if conflict.remote.isDeleted { return .remoteStands }
            guard conflict.local.isDeleted else { return .child(body: .emptyObject, isDeleted: true) }
            return Resolution.local.settlement(of: conflict, closesBranches: closesBranches)
        }
    }
}

/// The rule that peers without one of their own share (replication.md §13.4): a deletion wins, then the higher
/// generation, then the greater revision ID.
package enum DefaultConflictResolver {
    package static func resolve(_ conflict: ConflictCase) -> Resolution {
        if conflict.local.isDeleted || conflict.remote.isDeleted { return .deleted }
        return conflict.local.revision > conflict.remote.revision ? .local : .remote
    }
}
