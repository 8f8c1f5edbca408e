import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// A document of which a revision is on its way from the feed to the peer's answer. Lists and queues share it.
final class Outgoing {
    enum Stage {
        /// Named in a list, or about to be.
        case offered
        /// The peer wants it.
        case wanted(Delivery)
        /// Handed to the transport, and not answered.
        case sent(Delivery, Parcel)
        /// The peer forbade it once: it gets one more try when everything else is through.
        case forbidden(Delivery)
        /// Refused as a conflict, until the pull brings the reason.
        case parked
        /// Could not be pushed. It stays pending.
        case failed
    }

    /// The change as it was read from the feed, with the peer's revision as it is known since.
    var change: LocalChange
    var stage = Stage.offered
    /// A newer change, which waits until this one is done.
    var next: LocalChange?

    init(_ change: LocalChange) { self.change = change }

    var id: String { change.documentID }

    var isParked: Bool { if case .parked = stage { true } else { false } }

    /// Whether this change does not go on by itself.
    var isDone: Bool { if case .failed = stage { true } else { isParked } }
}

/// The revision of a change that the peer is to get, and how.
struct Delivery {
    /// Usually the change's own revision; a newer one where that is gone.
    var revision: RevisionID
    /// Revisions that the peer has. The first one is that on which a proposal is based.
    let known: [RevisionName]
    let maxHistory: Int
    /// The peer could not use a delta of it.
    var refusesDelta = false
    /// The hub refused the line, so only the content is sent, as a copy.
    var isCopyOnly = false
    /// Set if the peer has the revision, and is to get the content of other leaves that did not fit.
    var rest: RestOfDocument?
    /// How many forms of it the peer has refused.
    var refusedForms = 0
    /// It was forbidden before.
    var isLastTry = false
}

extension Delivery {
    /// The delivery of what the peer asks for in its answer to a part of the document; nil if it asks for nothing that was left out.
    func next(after parcel: Parcel, _ answer: Message) -> Delivery? {
        let wanted = LeafRequest.leaves(in: answer).intersection(parcel.left)
        guard !wanted.isEmpty else { return nil }
        var next = self
        next.rest = RestOfDocument(
            head: parcel.revision,
            isNew: rest?.isNew ?? RevisionMessage.Answer(answer).isNew,
            wanted: wanted,
            sent: parcel.brought.union(rest?.sent ?? [])
        )
        return next
    }
}

/// A revision that was sent, while its answer is awaited.
struct Parcel {
    /// The revision sent, which for a hub may be a copy; for the rest of a document the revision that was sent before.
    let revision: NamedRevision
    /// Set if the revision is a copy that was made for the hub.
    let copy: SendableRevision.HubCopy?
    let bytes: Int
    let isDelta: Bool
    /// There are other revisions between it and the hub's.
    let isDistant: Bool
    /// See ``SendableRevision/isUncertain``.
    let isUncertain: Bool
    /// See ``SendableRevision/hasOtherForm``.
    let hasOtherForm: Bool
    /// The other leaves whose content comes along, and those whose content is left out.
    let (brought, left): (Set<RevisionID>, Set<RevisionID>)
}

/// The state of a document on which the two sides did not agree in this session.
struct Disagreement: Hashable {
    /// How often the peer did not agree to this revision.
    var count = 0
    var revision: RevisionID?
    /// The revision of which a hub has taken a copy. A revision is copied once in a session.
    var copied: RevisionID?
    /// The revision that a hub took and may not have made its current one. It is not sent again in this session.
    var taken: RevisionID?
    /// The hub is asked whether it has the revision that it took.
    var isAsked = false
    /// The revision of which only the content is sent to the hub.
    var copiedOnly: RevisionID?
    /// The peer has the document, and is not known to have had any of its revisions that are here.
    var isFetchable = false
    /// The peer has the document and does not show it: it was fetched by its ID, and did not come.
    var isUnseen = false
    /// The peer, a Loveseat, stored the revision beside its current one.
    var isStored = false
}
