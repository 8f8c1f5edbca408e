package import LoveseatModel

/// Which changes to read.
package struct ChangeQuery: Hashable, Sendable {
    package var since: UInt64
    package var limit: Int
    /// Leaves out tombstones up to this sequence.
    package var tombstonesSkipped: UInt64 = 0
    /// Only these documents.
    package var documentIDs: ListedIDs?
    /// Leaves out revisions that the active side's remote is known to have, and documents in conflict.
    package var isForPush = false
    /// Whether the peer is told what is known besides the current revision.
    package var tellsTrees = false
    /// Whether the peer has version vectors, and is told the ``LocalChange/state``.
    package var tellsVersions = false
    /// Whether a revision of a document without vectors is named by its ID. It is named by the version that stands for the ID otherwise.
    package var tellsIDs = false
    /// Whether the peer is told of documents that it may not have any more.
    package var tellsLosses = false

    package init(since: UInt64, limit: Int) {
        self.since = since
        self.limit = limit
    }
}

/// A part of the feed.
package struct ChangePage: Sendable {
    package var changes: [LocalChange]
    /// The last sequence that was looked at.
    package var through: UInt64
    package var hasMore: Bool

    package init(_ changes: [LocalChange], through: UInt64, hasMore: Bool) {
        (self.changes, self.through, self.hasMore) = (changes, through, hasMore)
    }
}

/// Documents in conflict.
package struct ConflictPage: Sendable {
    package let ids: [String]
    /// The sequence after which there may be more; nil if there are none.
    package let next: UInt64?

    package init(ids: [String], next: UInt64?) { (self.ids, self.next) = (ids, next) }
}

package struct LocalChange: Hashable, Sendable {
    package let sequence: UInt64
    package let documentID: String
    /// The current revision here.
    package let revision: RevisionID
    /// The same revision as a peer with version vectors is told of it; nil for peers with trees.
    package var state: StateHistory?
    package let isDeleted: Bool
    package let bodySize: Int
    /// The bytes that have to be read to send it, with those of the document's tree.
    package var storedBytes: Int
    /// The revision that the remote is known to have.
    package var remoteAncestor: RevisionName?
    /// The remote is marked as having a revision, but that may not be so any more.
    package var hasDoubtedMark = false
    /// The digest of the document's tree; nil for a single line, or where the peer is not told.
    package var knowledge: String?
    /// The peer was sent the document, and may not have it any more.
    package var takesAway = false

    package init(
        sequence: UInt64,
        documentID: String,
        revision: RevisionID,
        isDeleted: Bool,
        bodySize: Int,
        remoteAncestor: RevisionName?
    ) {
        self.sequence = sequence
        self.documentID = documentID
        self.revision = revision
        self.isDeleted = isDeleted
        self.bodySize = bodySize
        storedBytes = bodySize
        self.remoteAncestor = remoteAncestor
    }

    /// The name by which the peer is told of the revision.
    package var name: RevisionName { RevisionName(of: revision, state) }
}

package struct DocumentRevision: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionName

    package init(documentID: String, revision: RevisionName) {
        self.documentID = documentID
        self.revision = revision
    }
}

package enum ChangeVerdict: Hashable, Sendable {
    /// With the revisions that are here and may be ancestors, the highest first.
    case wanted(ancestors: [RevisionName])
    case alreadyHere
    case conflict
}

package enum ProposalVerdict: Hashable, Sendable {
    case wanted
    case alreadyHere
    /// With the current state here.
    case conflict(StateHistory)
}

/// A document that the peer takes away.
package struct AccessRemoval: Hashable, Sendable {
    package let documentID: String
    /// The revision that is current there; nil if the peer did not say.
    package let revision: RevisionName?

    package init(documentID: String, revision: RevisionName?) {
        self.documentID = documentID
        self.revision = revision
    }
}

/// The outcome for a document that the peer takes away.
package enum RemovalVerdict: Hashable, Sendable {
    /// It is not here any more.
    case removed
    /// It is not here any more, and neither is an edit that the peer does not have.
    case removedWithEdit
    /// The app's filter keeps it.
    case filtered
    /// It stays, since the peer never had it.
    case neverThere
    /// It stays, since the peer does not have its last edit.
    case edited
}

/// A revision that the peer is known to have since this session.
package struct SyncedRevision: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID
    /// The sequence of the local change that made this revision the current one; nil for another revision of that document.
    package let sequence: UInt64?

    package init(documentID: String, revision: RevisionID, sequence: UInt64?) {
        (self.documentID, self.revision, self.sequence) = (documentID, revision, sequence)
    }
}

extension LoveseatError {
    /// Creates the reason why a document stays although the peer takes it away; nil if it does not stay.
    package init?(keeping id: String, _ verdict: RemovalVerdict) {
        switch verdict {
        case .removed, .removedWithEdit: return nil
        case .filtered: self = .rejectedByPullFilter
        case .neverThere:
            self.init(
                .remoteError,
                "the peer takes \"\(id)\" away, which it is not known to have had: it is kept"
            )
        case .edited:
            self.init(
                .conflict,
                "the peer takes \"\(id)\" away, which was edited here since: it is kept; push the edit if you may, or purge the document"
            )
        }
    }
}
