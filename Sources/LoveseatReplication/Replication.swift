package import LoveseatModel

/// One replication over one connection, whatever the wire.
package protocol Replication: Sendable {
    /// Replicates until the work is done or the connection ends, and returns why if that is an error.
    func run() async -> LoveseatError?
    /// Ends the replication in good order.
    func stop() async
    /// The documents that are on their way, or wait for their turn. Lists at most `limit` of them, and reads at most `unread` changes that
    /// were not read yet.
    func pending(listing limit: Int, unread: Int) async -> PendingTransfers
}

/// The calls that a replication makes to the layer above.
package struct ReplicationHooks: Sendable {
    /// Resolves one document's conflict; returns why it could not.
    package var resolve: @Sendable (ConflictNotice) async -> LoveseatError? = { _ in nil }
    /// Pulls documents by their IDs over another connection; returns whether the peer was asked for all of them.
    package var fetch: @Sendable (FetchNotice) async -> Bool = { _ in false }
    package var report: @Sendable (ReplicationReport) -> Void = { _ in }
    /// Tells the user something about the peer.
    package var notify: @Sendable (String) -> Void = { _ in }
    /// Calls its argument, from any thread, after something was saved in a collection; returns a closure that ends the observation.
    package var observe: @Sendable (@escaping @Sendable (CollectionName) -> Void) -> @Sendable () -> Void = {
        _ in {}
    }

    package init() {}
}
