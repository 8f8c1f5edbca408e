#if canImport(Combine)
public import Combine
public import Dispatch

extension Replicator {
    /// A publisher of the replicator's status, from when a subscriber subscribes.
    public func changePublisher(on queue: DispatchQueue = .main) -> AnyPublisher<ReplicatorChange, Never> {
        ListenerPublisher { [self] in addChangeListener(withQueue: queue, $0) }.eraseToAnyPublisher()
    }

    /// A publisher of the documents that are replicated, from when a subscriber subscribes.
    public func documentReplicationPublisher(on queue: DispatchQueue = .main) -> AnyPublisher<
        DocumentReplication, Never
    > {
        ListenerPublisher { [self] in addDocumentReplicationListener(withQueue: queue, $0) }
            .eraseToAnyPublisher()
    }
}
#endif
