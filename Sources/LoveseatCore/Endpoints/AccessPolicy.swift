public import LoveseatModel

/// The rights of a peer to a document or collection.
public enum DocumentAccess: UInt8, Hashable, Sendable, Comparable {
    /// No access. To the peer, the document or collection does not exist.
    case none
    /// The peer may pull it.
    case read
    /// The peer may pull it and push changes to it.
    case write

    /// Orders access from none to write.
    public static func < (one: DocumentAccess, other: DocumentAccess) -> Bool {
        one.rawValue < other.rawValue
    }
}

/// Decides what each peer of a listener may do.
///
/// The policy is asked about every document that would be sent or was received, every time, so it has to be fast. It is
/// called on the database's threads, outside any transaction, and may read the database.
///
/// The database remembers which documents a peer was sent. If the answer for one of them becomes ``DocumentAccess/none`` later, every
/// device of that peer is told to remove it when it pulls the next time, which Loveseat and Couchbase Lite do unless auto-purge is off.
/// Call the listener's `accessChanged()` when answers change while peers are connected; other peers are told when they connect again.
public struct AccessPolicy: Sendable {
    let decide: @Sendable (PeerIdentity, CollectionName, Document?) -> DocumentAccess

    /// Creates a policy from a closure.
    ///
    /// - Parameter decide: Returns what a peer may do. `document` is nil when the question is about the collection as a whole: then
    ///   return the most that the peer may do in it. For a document that the peer pushes, the closure is called twice: with the stored
    ///   document, and with the one that the peer sends. For a deleted document, it is called with the revision that was deleted; one
    ///   that was deleted before the database was served under a policy has no properties. Peers that were sent a document are sent its
    ///   deletion too.
    public init(_ decide: @escaping @Sendable (PeerIdentity, CollectionName, Document?) -> DocumentAccess) {
        self.decide = decide
    }
}
