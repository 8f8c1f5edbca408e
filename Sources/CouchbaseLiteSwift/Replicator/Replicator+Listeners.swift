public import Dispatch

/// Listeners, which stay until their tokens are removed. They are called in order, on their queues.
extension Replicator {
    /// Calls a closure on the main queue when the status changes.
    @discardableResult
    public func addChangeListener(_ listener: @escaping (ReplicatorChange) -> Void) -> ListenerToken {
        addChangeListener(withQueue: nil, listener)
    }

    /// Calls a closure on a queue when the status changes. Nil is the main queue.
    @discardableResult
    public func addChangeListener(
        withQueue queue: DispatchQueue?,
        _ listener: @escaping (ReplicatorChange) -> Void
    ) -> ListenerToken {
        let token = makeToken()
        add(AddedListener(delivery: Delivery(queue, listener), token: token))
        return token
    }

    /// Calls a closure on the main queue with documents that were replicated, or could not be.
    @discardableResult
    public func addDocumentReplicationListener(_ listener: @escaping (DocumentReplication) -> Void)
        -> ListenerToken
    {
        addDocumentReplicationListener(withQueue: nil, listener)
    }

    /// Calls a closure on a queue with documents that were replicated, or could not be. Nil is the main queue.
    ///
    /// Add it before the replicator is started to hear of all documents. It has been told of all of them before a listener of changes is told
    /// that the replicator stopped, if both have the same serial queue.
    @discardableResult
    public func addDocumentReplicationListener(
        withQueue queue: DispatchQueue?,
        _ listener: @escaping (DocumentReplication) -> Void
    ) -> ListenerToken {
        let token = makeToken()
        add(AddedListener(delivery: Delivery(queue, listener), token: token))
        return token
    }

    private func makeToken() -> ListenerToken {
        let token = ListenerToken()
        token.onRemoval { [weak self, weak token] in
            if let token { self?.remove(token) }
        }
        return token
    }

    /// Removes a listener.
    @available(*, deprecated, message: "use `token.remove()`")
    public func removeChangeListener(withToken token: ListenerToken) { token.remove() }

    /// Returns the IDs of documents of the default collection with changes that were not pushed.
    @available(*, deprecated, message: "use `pendingDocumentIds(collection:)`")
    public func pendingDocumentIds() throws -> Set<String> {
        try pendingDocumentIds(collection: defaultCollection())
    }

    /// Returns whether a document of the default collection has a change that was not pushed.
    @available(*, deprecated, message: "use `isDocumentPending(_:collection:)`")
    public func isDocumentPending(_ documentID: String) throws -> Bool {
        try isDocumentPending(documentID, collection: defaultCollection())
    }

    private func defaultCollection() throws -> Collection {
        // A replicator has at least one collection.
        try config.collections[0].collection.database.defaultCollection()
    }
}

/// A listener with its token.
struct AddedListener<Change>: Sendable {
    let delivery: Delivery<Change>
    let token: ListenerToken

    func send(_ change: Change) { delivery.send(change, unlessRemoved: token) }
}
