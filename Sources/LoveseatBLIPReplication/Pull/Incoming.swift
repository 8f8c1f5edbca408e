import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// A received revision on its way into the database.
final class Incoming {
    enum Stage {
        /// Some of its blobs are missing, and none of them is being fetched for it. `startsOver`: the part of the next one that another
        /// connection had received turned out to be damaged.
        case waiting(startsOver: Bool)
        /// The first missing blob is being fetched.
        case fetching(Fetch)
        /// All its blobs are here.
        case ready
    }

    /// A blob being fetched.
    struct Fetch {
        /// It began with the part that another connection had received.
        let isResumed: Bool
        /// The bytes of the blob that are here.
        var bytes: UInt64
    }

    /// The request to answer; nil for a peer that wants no answer.
    let request: UInt64?
    let isUrgent: Bool
    /// Its announcement; nil if it was not announced.
    let expected: Expectations.Entry?
    /// That of its announcement, or of what would be one.
    let key: Expectations.Key?
    /// The leaves whose content the peer has left out.
    let left: [RevisionID]
    /// The memory that it takes, in bytes.
    let bytes: Int
    var revision: IncomingRevision
    /// Blobs that are kept for it, and not collected as garbage.
    var held: [BlobDigest]
    var missing: [BlobReference]
    /// The blobs of other leaves, whose content comes with the tree. The content of a leaf is left out if one of its blobs cannot be
    /// fetched.
    private(set) var told: [BlobReference]
    /// The body as the peer's table of attachments has it, if the body names content that the table does not list.
    let asListed: ReceivedBody?
    var stage = Stage.waiting(startsOver: false)

    init(
        request: UInt64?,
        isUrgent: Bool,
        expected: Expectations.Entry?,
        key: Expectations.Key?,
        left: [RevisionID],
        revision: IncomingRevision,
        held: [BlobDigest],
        missing: [BlobReference],
        told: [BlobReference],
        asListed: ReceivedBody?
    ) {
        self.request = request
        self.isUrgent = isUrgent
        self.expected = expected
        (self.key, self.left) = (key, left)
        self.revision = revision
        bytes = revision.contentBytes + (asListed?.body.bytes.count ?? 0)
        self.held = held
        self.missing = missing
        self.told = told
        self.asListed = asListed
    }

    /// The units of work that it counts for in the progress.
    var units: Int { expected?.bodySize ?? 1 }

    /// The leaves that the peer is asked for, because it has left out their content and it is not here; nil if the database failed. `error`: why
    /// the revision was not stored. Of the rest of a document, other leaves may be.
    func awaited(
        after error: LoveseatError?,
        in replica: any ReplicaInbox,
        _ effects: inout SessionEffects
    ) -> [RevisionID]? {
        guard revision.isIncomplete, error == nil || revision.restOf != nil else { return [] }
        let id = revision.documentID
        let leaves = effects.ask { try replica.awaitedLeaves(of: id, among: left) }
        if leaves == [], error == nil { effects.ask { try replica.forgetFailures([id]) } }
        return leaves.map { Array($0.prefix(ReplicationTuning.leavesAsked)) }
    }

    /// Leaves out the content of other leaves that needs blobs, before any of them is held; returns false if there is none.
    func leaveOutTold() -> Bool {
        if told.isEmpty { return false }
        revision.knowledge?.leaveOutBlobs()
        held.removeLast(told.count)
        missing.removeLast(told.count)
        told = []
        return true
    }
}

/// A message with a revision, before its body is read.
struct Arrival {
    let header: RevisionMessage
    let key: Expectations.Key?
    let expected: Expectations.Entry?
    let request: UInt64?
    let isUrgent: Bool
    let wireBytes: Int
    /// The sender's tree, if it came with the revision.
    var tree: ReceivedTree?

    /// The revision with its body; the header must have been checked.
    func revision(_ body: JSONText, from peer: RevisionTree.PeerKind) -> IncomingRevision {
        var revision = IncomingRevision(
            documentID: header.documentID,
            history: header.history,
            isDeleted: header.isDeleted,
            body: body,
            sender: peer
        )
        (revision.origin, revision.knowledge) = (header.origin, tree?.knowledge)
        revision.restOf = header.isRest ? tree?.current : nil
        // A peer that wants no answer cannot be asked for more.
        revision.isIncomplete = request != nil && tree?.left.isEmpty == false
        revision.mayBeOld = expected?.mayBeOld ?? false
        return revision
    }

    func answer(_ error: ReplyError, _ effects: inout SessionEffects) {
        // A peer may want no answer.
        guard let request else { return }
        effects.append(.replyError(error, to: request, isUrgent: isUrgent))
    }
}

extension IncomingRevision {
    /// The content beside the revision itself, as a filter sees it.
    var otherLeaves: [FilterCandidate] {
        (knowledge?.nodes ?? []).compactMap { FilterCandidate($0, of: documentID) }
    }
}

extension TreeKnowledge {
    /// The blobs of the leaves whose content it brings.
    var blobs: [BlobReference] {
        nodes.filter { $0.flags.contains(.hasBlobs) }.compactMap(\.body).flatMap { BlobReference.all(in: $0) }
    }

    /// Leaves out content that needs blobs.
    mutating func leaveOutBlobs(where isMeant: (RevisionTree.Node) -> Bool = { _ in true }) {
        leaveOutBodies { $0.flags.contains(.hasBlobs) && isMeant($0) }
    }
}
