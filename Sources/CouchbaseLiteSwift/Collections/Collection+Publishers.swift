#if canImport(Combine)
public import Combine
public import Dispatch

extension Collection {
    /// A publisher of the changes of the collection, from when a subscriber subscribes.
    public func changePublisher(on queue: DispatchQueue = .main) -> AnyPublisher<CollectionChange, Never> {
        ListenerPublisher { [self] in addChangeListener(queue: queue, listener: $0) }.eraseToAnyPublisher()
    }

    /// A publisher of the changes of a document, from when a subscriber subscribes.
    public func documentChangePublisher(for id: String, on queue: DispatchQueue = .main)
        -> AnyPublisher<DocumentChange, Never>
    {
        ListenerPublisher { [self] in addDocumentChangeListener(id: id, queue: queue, listener: $0) }
            .eraseToAnyPublisher()
    }
}
#endif
