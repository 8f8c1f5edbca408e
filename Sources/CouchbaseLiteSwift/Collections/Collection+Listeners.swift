public import Dispatch
import Logging
import LoveseatCore
import LoveseatModel
import LoveseatStorage

/// Something that reports changes of a collection.
public protocol CollectionChangeObservable {
    /// Calls a closure on the main queue after each change.
    func addChangeListener(listener: @escaping (CollectionChange) -> Void) -> ListenerToken
    /// Calls a closure on a queue after each change. Nil is the main queue.
    func addChangeListener(queue: DispatchQueue?, listener: @escaping (CollectionChange) -> Void)
        -> ListenerToken
}

/// Listeners, which observe until their tokens are removed, the collection is deleted or the database is closed.
extension Collection {
    private static let idsPerChange = 1_000

    /// Calls a closure on the main queue after each transaction that changes documents of the collection.
    @discardableResult
    public func addChangeListener(listener: @escaping (CollectionChange) -> Void) -> ListenerToken {
        addChangeListener(queue: nil, listener: listener)
    }

    /// Calls a closure on a queue after each transaction that changes documents of the collection. Nil is the main queue.
    @discardableResult
    public func addChangeListener(
        queue: DispatchQueue?,
        listener: @escaping (CollectionChange) -> Void
    ) -> ListenerToken {
        observe(Delivery(queue, listener)) { ids, collection, deliver in
            for start in stride(from: 0, to: ids.count, by: Self.idsPerChange) {
                let part = ids[start..<min(ids.count, start + Self.idsPerChange)]
                deliver(CollectionChange(collection: collection, documentIDs: Array(part)))
            }
        }
    }

    /// Calls a closure on the main queue after each transaction that changes a document, which need not exist.
    @discardableResult
    public func addDocumentChangeListener(id: String, listener: @escaping (DocumentChange) -> Void)
        -> ListenerToken
    {
        addDocumentChangeListener(id: id, queue: nil, listener: listener)
    }

    /// Calls a closure on a queue after each transaction that changes a document, which need not exist. Nil is the main queue.
    @discardableResult
    public func addDocumentChangeListener(
        id: String,
        queue: DispatchQueue?,
        listener: @escaping (DocumentChange) -> Void
    ) -> ListenerToken {
        observe(Delivery(queue, listener)) { ids, collection, deliver in
            if ids.contains(where: { $0.isExactly(id) }) {
                deliver(DocumentChange(documentID: id, collection: collection))
            }
        }
    }

    /// Observes the commits that change the collection. A listener keeps neither the database nor the collection alive.
    private func observe<Change>(
        _ delivery: Delivery<Change>,
        _ report: @escaping @Sendable ([String], Collection, (Change) -> Void) -> Void
    ) -> ListenerToken {
        let token = ListenerToken()
        let handle = engine.handle
        do {
            let end = try subscribe { [weak database, weak token] ids in
                // A database that nobody has any more has no listeners.
                guard let database else { return }
                let collection = database.object(
                    for: EngineCollection(database: database.engine, handle: handle)
                )
                report(ids, collection) { delivery.send($0, unlessRemoved: token) }
            }
            token.onRemoval(end)
        } catch {
            LogDomain.database.log(
                .warning,
                "a listener for collection \(fullName) is never called: \(error.message)"
            )
        }
        return token
    }

    /// Calls a closure on the writer's thread after each commit, with the IDs of the changed documents, until the returned closure is called
    /// or the database is closed.
    private func subscribe(_ notify: @escaping @Sendable ([String]) -> Void) throws(LoveseatError)
        -> @Sendable () -> Void
    {
        let database = engine.database
        let changes = try database.store.changes
        let subscription = changes.subscribe(collection: engine.handle.number) {
            // A commit without IDs says that the collection was deleted.
            if !$0.documentIDs.isEmpty { notify($0.documentIDs) }
        }
        let number = database.session.endWhenClosed { changes.unsubscribe(subscription) }
        return { [weak database] in
            changes.unsubscribe(subscription)
            database?.session.forgetFeed(number)
        }
    }
}
