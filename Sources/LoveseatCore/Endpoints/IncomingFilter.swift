public import LoveseatModel

/// Decides whether a listener stores a revision that a peer pushes.
///
/// The filter is called for every revision, deletions included, before the revision's blobs are requested. It is called on the database's
/// threads, outside any transaction, so it has to be fast, and it may read the database. The document has the properties of the revision; a
/// deletion usually has none.
///
/// It returns nil to store the revision, or the error that the peer gets for the document, for example
/// `LoveseatError(.httpForbidden, "only photos are accepted")`. A code of `10_000 + status` is sent as that HTTP status.
public typealias IncomingFilter = @Sendable (PeerIdentity, Document, DocumentFlags) -> LoveseatError?
