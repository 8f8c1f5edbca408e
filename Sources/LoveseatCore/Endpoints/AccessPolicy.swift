public import LoveseatModel

/// What a peer may do with a document or a collection.
public enum DocumentAccess: UInt8, Hashable, Sendable, Comparable {
    /// Nothing: for the peer it is not there.
    case none
    /// Pull it.
    case read
    /// Pull and push it.
    case write

    /// Less access is less.
    public static func < (one: DocumentAccess, other: DocumentAccess) -> Bool {
        one.rawValue < other.rawValue
    }
}

/// Decides what each peer of a listener may do.
///
/// It is asked for every document that would be sent or was received, each time anew, so it should be fast. What was sent to
/// a peer is remembered in the database: when a document is refused later the peer is told to give it up, which Loveseat and
/// Couchbase Lite do unless auto-purge is off. Tell the listener with ``URLEndpointListener/accessChanged()`` when answers
/// change for peers that are connected; others are told when they connect again.
public struct AccessPolicy: Sendable {
    let decide: @Sendable (PeerIdentity, CollectionName, Document?) -> DocumentAccess

    /// A policy of a closure. The document is nil when it is asked what the peer may do in a collection at most. For a
    /// document that a peer wants to write it is asked twice: for what is here, and for what the peer sends. For a deleted
    /// document it is asked about the revision that was deleted; one that was deleted before the database was served under a
    /// policy has no properties. Peers that were sent a document are also sent its deletion.
    public init(_ decide: @escaping @Sendable (PeerIdentity, CollectionName, Document?) -> DocumentAccess) {
        self.decide = decide
    }
}
