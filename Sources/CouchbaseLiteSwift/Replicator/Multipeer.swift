// Couchbase Lite's names for replication among peers that find each other, so that the compiler says what to do instead.

/// A replicator that finds its peers, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public final class MultipeerReplicator {}

/// The settings of a multipeer replicator, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct MultipeerReplicatorConfiguration {}

/// How a multipeer replicator replicates a collection, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct MultipeerCollectionConfiguration {}

/// Decides which peers to trust, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public protocol MultipeerAuthenticator {}

/// Trusts peers by their certificates, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public final class MultipeerCertificateAuthenticator {}

/// Decides between two versions of a document, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public protocol MultipeerConflictResolver {}

/// Decides which documents to replicate with a peer, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public typealias MultipeerReplicationFilter = (PeerID, Document, DocumentFlags) -> Bool

/// The ways on which peers are reached, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public enum MultipeerTransport {}

/// Whether a multipeer replicator runs, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct MultipeerReplicatorStatus {}

/// The ID of a peer, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct PeerID {}

/// The state of a peer, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct PeerInfo {}

/// Whether a peer is there, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct PeerDiscoveryStatus {}

/// The state of the replication with a peer, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct PeerReplicatorStatus {}

/// Documents that were replicated with a peer, which this module does not have.
@available(
    *,
    unavailable,
    message:
        "CouchbaseLiteSwift has no multipeer replicator: use URLEndpointListener and Replicator, or Loveseat's own API with LoveseatDiscovery"
)
public struct PeerDocumentReplication {}
