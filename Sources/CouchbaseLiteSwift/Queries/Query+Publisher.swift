#if canImport(Combine)
public import Combine
public import Dispatch

extension Query {
    /// A publisher of the query's results, from when a subscriber subscribes.
    public func changePublisher(on queue: DispatchQueue = .main) -> AnyPublisher<QueryChange, Never> {
        ListenerPublisher { [self] in addChangeListener(withQueue: queue, $0) }.eraseToAnyPublisher()
    }
}
#endif
