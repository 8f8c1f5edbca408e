package import LoveseatModel

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
