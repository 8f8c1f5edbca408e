package import LoveseatModel

/// The state of a document at a hub that refused a revision of it.
package enum HubState: Hashable, Sendable {
    /// This is the current state there.
    case has(StateHistory)
    /// It has no such document.
    case hasNone
    /// The hub did not say. The revisions that the pull has brought must tell.
    case unknown
}

/// The outcome when the peer answered a pushed revision with its own tree.
package enum MergeOutcome: Hashable, Sendable {
    /// Both sides have the same current revision now.
    case agrees
    /// This side knows more, and offers its own revision again.
    case disagrees
    /// The content of the peer's revision did not come with the answer, or may not be stored here.
    case lacksContent
    /// The peer's revision descends from this side's, and nothing is pulled.
    case isBehind
    /// The tree of the peer may not be stored here.
    case isRefused(LoveseatError)
}

/// How to go on with a revision that a hub did not take.
package enum Reconciliation: Hashable, Sendable {
    /// Another revision is current here by now, and is offered by itself.
    case isObsolete
    /// Both have the same content.
    case agrees
    /// Offer it again, on top of this one.
    case offer(over: RevisionName?)
    /// The hub's revision is not here yet. `isMarked`: whether the hub is known to have had any revision of the document, so that its feed
    /// will bring the next.
    case waits(isMarked: Bool)
}
