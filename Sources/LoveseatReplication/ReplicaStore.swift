package import LoveseatModel

/// What replication needs from a database. One object serves one connection and is called from its driver only.
///
/// Each request is one transaction at most; what was answered is committed.
package protocol ReplicaStore: AnyObject {
    func perform(_ request: StoreRequest) -> StoreAnswer
}

/// A question to the database. Collections are named by their position in the session.
package enum StoreRequest: Hashable, Sendable {
    case loadCheckpoint(collection: Int)
    /// `coversMarks`: whether the peer has what it was marked to have when the checkpoint went to it.
    case saveCheckpoint(collection: Int, JSONText, coversMarks: Bool)
    /// A checkpoint is about to go to the peer: it covers the marks made before, and none that come later.
    case beginCheckpoint(collection: Int)
    /// From now on, which marks of what the remote has count.
    case believeMarks(collection: Int, MarkTrust)
    /// A checkpoint that the peer keeps here.
    case getPeerCheckpoint(id: String)
    case savePeerCheckpoint(id: String, replacing: Int, JSONText)
    /// Opens the collections that a passive peer was asked for.
    case bindCollections([CollectionName], checkpoints: [String])
    case readChanges(collection: Int, ChangeQuery)
    /// Which of a peer's announced changes are wanted (replication.md §7.2).
    case judgeChanges(collection: Int, [AnnouncedChange], from: RevisionTree.PeerKind)
    /// Which of a peer's proposed changes would conflict (replication.md §8).
    case judgeProposals(collection: Int, [ProposedChange], from: RevisionTree.PeerKind)
    /// How to go on with a revision that a hub did not take.
    case meet(collection: Int, LocalChange, HubState)
    /// A hub has taken a copy on top of what it had.
    case adoptCopy(collection: Int, documentID: String, copy: RevisionID, parent: RevisionID)
    /// Takes in what the peer answered to a pushed revision: another one is current there.
    case hear(collection: Int, documentID: String, TreeKnowledge, current: RevisionID, takesContent: Bool)
    /// The documents that could not be stored when they were pulled, in this session or an earlier one.
    case listFailures(collection: Int)
    case noteFailure(collection: Int, DocumentRevision, LoveseatError)
    case readRevisions(collection: Int, [RevisionRequest])
    case insert(collection: Int, [IncomingRevision])
    /// Documents that the peer was sent and may not have any more.
    case readRevocations(collection: Int)
    /// The peer was told of them.
    case forgetGrants(collection: Int, [String])
    case markSynced(collection: Int, [DocumentRevision])
    /// Documents in conflict, in the order of their sequences.
    case listConflicts(collection: Int, after: UInt64)
    case lastSequence(collection: Int)
    /// Which received revisions the app's filter lets in (replication.md §9.4, step 8).
    case admit(collection: Int, [FilterCandidate])
    /// Removes documents that the peer takes away, as far as it may (replication.md §14).
    case removeAccess(collection: Int, [AccessRemoval])
    /// The body that a delta makes of a revision that is here (replication.md §10).
    case expandDelta(collection: Int, documentID: String, base: RevisionID, delta: [UInt8])
    /// Which blobs of a received document are to be asked for: those that are not here, and those that its sender must show to
    /// have. All of them stay until the revision that needs them is stored or given up.
    case holdBlobs(collection: Int, documentID: String, [BlobDigest])
    case releaseBlobs([BlobDigest])
    /// Begins to receive a blob, going on with what came of it before if `resumes`.
    case beginBlob(BlobHandle, BlobDigest, resumes: Bool)
    case writeBlob(BlobHandle, [UInt8])
    case finishBlob(BlobHandle, expected: BlobDigest)
    case cancelBlob(BlobHandle)
    /// Keeps what has come of a blob, for another connection to go on with.
    case suspendBlob(BlobHandle)
    /// How long a blob is that the peer asks for; nil if it is not here, or the peer may not have it.
    case blobLength(collection: Int, documentID: String?, BlobDigest)
    case readBlob(BlobDigest, offset: UInt64, count: Int)
    case proveBlob(collection: Int, BlobDigest, nonce: [UInt8])
}

/// What is known of the marks of what a remote has: who made the last ones, and whether a checkpoint covers them.
package enum MarkState: Hashable, Sendable {
    /// There are none, or it is not known who made them.
    case unknown
    /// The last session that made marks had this checkpoint ID.
    case ours(isCovered: Bool)
    /// It had another checkpoint ID, as one with other filters has.
    case others(isCovered: Bool)
}

/// Which marks of what a remote has count (docs/decisions/0006-lost-commits.md). Marks made in the session itself always do.
package struct MarkTrust: Hashable, Sendable {
    /// Whether a push leaves out what the remote was marked to have when the session began.
    package var leavesOutMarked = true
    /// The local sequences of the documents whose marks count when the remote says something else; nil for all.
    package var followed: SequenceSet?

    package init() {}
}

/// A blob being received.
package typealias BlobHandle = UInt64

/// The database's answer.
package enum StoreAnswer: Hashable, Sendable {
    case done
    case failed(LoveseatError)
    /// `wasTakenFrom`: whether the peer has ever taken documents away.
    case checkpoint(JSONText?, marks: MarkState, wasTakenFrom: Bool)
    /// Revision 0 means that there is none.
    case peerCheckpoint(revision: Int, JSONText?)
    /// Nil: the peer did not know the current revision.
    case peerCheckpointSaved(revision: Int?)
    /// For each collection whether it exists here, and the peer's checkpoint for it.
    case bound([BoundCollection])
    case changes([LocalChange], through: UInt64, hasMore: Bool)
    case changeVerdicts([ChangeVerdict])
    case proposalVerdicts([ProposalVerdict])
    case met(Meeting)
    case heard(Hearing)
    case revisions([OutgoingRevision])
    case inserted([InsertResult])
    /// `next`: the sequence after which there may be more; nil if there are none.
    case conflicts([String], next: UInt64?)
    case lastSequence(UInt64)
    case admitted([Bool])
    case accessRemoved([RemovalVerdict])
    case failures([String])
    case expanded(DeltaExpansion)
    case missingBlobs([BlobDigest])
    case blobBegun(BlobStart)
    case blobLength(UInt64?)
    case blobBytes([UInt8])
    case proof(BlobDigest?)
}

package struct BoundCollection: Hashable, Sendable {
    package let exists: Bool
    package let revision: Int
    package let checkpoint: JSONText?

    package init(exists: Bool, revision: Int = 0, checkpoint: JSONText? = nil) {
        self.exists = exists
        self.revision = revision
        self.checkpoint = checkpoint
    }
}

/// Which changes to read.
package struct ChangeQuery: Hashable, Sendable {
    package var since: UInt64
    package var limit: Int
    /// Leaves out tombstones up to this sequence.
    package var tombstonesSkipped: UInt64 = 0
    /// Only these documents.
    package var documentIDs: Set<String>?
    /// Leaves out what the active side's remote is known to have, and documents in conflict.
    package var isForPush = false
    /// Whether the peer is told what is known beside the current revision.
    package var tellsTrees = false

    package init(since: UInt64, limit: Int) {
        self.since = since
        self.limit = limit
    }
}

/// What a filter is asked about.
package struct FilterCandidate: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID
    package let isDeleted: Bool
    package let body: JSONText

    package init(documentID: String, revision: RevisionID, isDeleted: Bool, body: JSONText) {
        self.documentID = documentID
        self.revision = revision
        self.isDeleted = isDeleted
        self.body = body
    }
}

/// A document that the peer takes away.
package struct AccessRemoval: Hashable, Sendable {
    package let documentID: String
    /// The revision that is current there; nil if the peer did not say.
    package let revision: RevisionID?

    package init(documentID: String, revision: RevisionID?) {
        self.documentID = documentID
        self.revision = revision
    }
}

/// What becomes of a document that the peer takes away.
package enum RemovalVerdict: Hashable, Sendable {
    /// It is not here any more.
    case removed
    /// It is not here any more, and neither is an edit that the peer has not got.
    case removedWithEdit
    /// The app's filter keeps it.
    case filtered
    /// It stays, since the peer never had it.
    case neverThere
    /// It stays, since the peer has not got the last edit of it.
    case edited
}

package enum BlobStart: Hashable, Sendable {
    /// So many bytes are here already.
    case from(UInt64)
    /// It is being received over this connection for another document.
    case underWay
    /// It has come meanwhile.
    case here
}

package enum DeltaExpansion: Hashable, Sendable {
    case body([UInt8])
    /// The revision that it was made against is not here, or its body is gone.
    case unknownBase
    /// It is none, or of another document.
    case corrupt
}

package struct LocalChange: Hashable, Sendable {
    package let sequence: UInt64
    package let documentID: String
    package let revision: RevisionID
    package let isDeleted: Bool
    package let bodySize: Int
    /// The revision that the remote is known to have.
    package var remoteAncestor: RevisionID?
    /// The digest of what is known of the document; nil for a single line, or where the peer is not told.
    package var knowledge: String?

    package init(
        sequence: UInt64,
        documentID: String,
        revision: RevisionID,
        isDeleted: Bool,
        bodySize: Int,
        remoteAncestor: RevisionID?
    ) {
        self.sequence = sequence
        self.documentID = documentID
        self.revision = revision
        self.isDeleted = isDeleted
        self.bodySize = bodySize
        self.remoteAncestor = remoteAncestor
    }
}

package struct DocumentRevision: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID

    package init(documentID: String, revision: RevisionID) {
        self.documentID = documentID
        self.revision = revision
    }
}

package enum ChangeVerdict: Hashable, Sendable {
    case wanted(ancestors: [RevisionID])
    case alreadyHere
    case conflict
}

package enum ProposalVerdict: Hashable, Sendable {
    case wanted
    case alreadyHere
    /// With the current revision here.
    case conflict(RevisionID)
}

/// What a hub that refused a revision says of the document.
package enum HubState: Hashable, Sendable {
    /// This is the current revision there.
    case has(RevisionID)
    /// It has no such document.
    case hasNone
    /// Nothing: what the pull has brought must tell.
    case unknown
}

/// What came of a peer's reasons.
package enum Hearing: Hashable, Sendable {
    /// Both sides have the same current revision now.
    case agrees
    /// This side knows more, and offers its own again.
    case disagrees
    /// The peer's revision did not come along, or may not come here.
    case lacksContent
    /// The peer's revision goes on from this side's, and nothing is pulled.
    case isBehind
}

/// How to go on with a revision that a hub did not take.
package enum Meeting: Hashable, Sendable {
    /// Another revision is current here by now, and is offered by itself.
    case isObsolete
    /// Both have the same content.
    case agrees
    /// Offer it again, on top of this one.
    case offer(over: RevisionID?)
    /// What the hub has is not here yet. `isMarked`: whether it is known to have had any revision of the document, so that its
    /// feed will bring the next.
    case waits(isMarked: Bool)
}

package struct RevisionRequest: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID
    /// Revisions that the peer has.
    package let known: [RevisionID]
    package let maxHistory: Int
    /// Whether the peer takes a delta against one of the revisions that it has.
    package let wantsDelta: Bool
    package let peer: RevisionTree.PeerKind
    /// Whether a hub gets a copy also where the revision descends from what it has.
    package let isCopyOnly: Bool

    package init(
        documentID: String,
        revision: RevisionID,
        known: [RevisionID],
        maxHistory: Int,
        wantsDelta: Bool = false,
        peer: RevisionTree.PeerKind,
        isCopyOnly: Bool = false
    ) {
        self.peer = peer
        self.isCopyOnly = isCopyOnly
        self.documentID = documentID
        self.revision = revision
        self.known = known
        self.maxHistory = maxHistory
        self.wantsDelta = wantsDelta
    }
}

/// A revision to be sent, or why it cannot be.
package enum OutgoingRevision: Hashable, Sendable {
    case found(SendableRevision)
    /// The document was purged.
    case missing
    /// A newer revision took its place and its body is gone; this is the current one.
    case obsolete(current: RevisionID)
    /// The hub has the same content under another revision.
    case same
    /// Its body is not the one that the revision was made of.
    case damaged
}

package struct SendableRevision: Hashable, Sendable {
    package let revision: RevisionID
    /// Its ancestors, newest first.
    package let history: [RevisionID]
    package var isDeleted: Bool
    package var body: JSONText
    /// The first revision of its line, for a Loveseat that the history does not show it.
    package var origin: RevisionID?
    /// What else is known of the document, for a Loveseat; nil if it is no more than this line.
    package var knowledge: TreeKnowledge?
    /// That it was made for a hub.
    package var copy: HubCopy?
    /// A revision that the peer has, with its body, to make a delta against.
    package var deltaBase: DeltaBase?

    /// The content of one line on top of another, which is all that a hub takes (docs/decisions/0001).
    package struct HubCopy: Hashable, Sendable {
        /// The first revision with that content.
        package let original: RevisionID
        /// The hub's revision below it.
        package let parent: RevisionID

        package init(original: RevisionID, parent: RevisionID) {
            self.original = original
            self.parent = parent
        }
    }

    package struct DeltaBase: Hashable, Sendable {
        package let revision: RevisionID
        package let body: JSONText

        package init(revision: RevisionID, body: JSONText) {
            self.revision = revision
            self.body = body
        }
    }

    package init(
        revision: RevisionID,
        history: [RevisionID],
        isDeleted: Bool,
        body: JSONText
    ) {
        self.revision = revision
        self.history = history
        self.isDeleted = isDeleted
        self.body = body
    }
}

/// A received revision.
package struct IncomingRevision: Hashable, Sendable {
    package let documentID: String
    /// Newest first, itself included.
    package let history: [RevisionID]
    package let isDeleted: Bool
    package private(set) var body: JSONText
    /// See ``SendableRevision/origin``.
    package var origin: RevisionID?
    /// See ``SendableRevision/knowledge``.
    package var knowledge: TreeKnowledge?
    package let sender: RevisionTree.PeerKind
    /// The sender has taken a newer revision from here since it announced this one.
    package var isOutdated = false

    package init(
        documentID: String,
        history: [RevisionID],
        isDeleted: Bool,
        body: JSONText,
        sender: RevisionTree.PeerKind
    ) {
        self.documentID = documentID
        self.history = history
        self.isDeleted = isDeleted
        self.body = body
        self.sender = sender
    }

    /// The same with another body.
    func with(_ body: JSONText) -> IncomingRevision {
        var revision = self
        revision.body = body
        return revision
    }
}

package enum InsertResult: Hashable, Sendable {
    case inserted
    case alreadyHere
    /// Stored beside the local revision, until the app's resolver has answered.
    case conflict
    /// Stored, but another revision is the current one here, for reasons that its sender may not know.
    case outranked(TreeKnowledge, current: RevisionID)
    /// Not stored, because it would conflict.
    case refusedConflict
    case badHistory
    case failed(LoveseatError)

    package var isStored: Bool {
        switch self {
        case .inserted, .alreadyHere, .conflict, .outranked: true
        case .refusedConflict, .badHistory, .failed: false
        }
    }
}
