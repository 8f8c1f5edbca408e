public import Dispatch
import LoveseatNetwork
import Synchronization

/// Serves collections over the app's own transports: the app accepts connections and passes them to this listener.
///
/// It is safe to use from any thread. Connections end when the database is closed.
public final class MessageEndpointListener: Sendable {
    private let config: MessageEndpointListenerConfiguration
    private let engine: LoveseatNetwork.MessageEndpointListener
    private let accepted = Accepted()

    /// Creates a listener.
    public init(config: MessageEndpointListenerConfiguration) {
        self.config = config
        engine = LoveseatNetwork.MessageEndpointListener(config.engine)
        // It ends with the engine's listener.
        background { [accepted, changes = engine.changes] in
            for await change in changes { accepted.report(change) }
            accepted.finish()
        }
    }

    // MARK: Connections

    /// The connections that were accepted and have not ended.
    public var connections: [any MessageEndpointConnection] { accepted.all }

    /// Opens a connection and serves it until either side ends it. Returns at once.
    public func accept(connection: any MessageEndpointConnection) {
        accepted.add(connection) { engine.accept(CallbackTransport(connection)) }
    }

    /// Begins to end a connection. Its last change has the activity `stopped`. Does nothing if it has ended.
    public func close(connection: any MessageEndpointConnection) {
        let numbers = accepted.numbers(of: connection)
        background { [engine] in for number in numbers { await engine.close(number) } }
    }

    /// Ends every connection, and returns when they have ended. The last change of each has the activity `stopped`; listeners hear of it on
    /// their queues.
    ///
    /// It waits for ``MessageEndpointConnection/close(error:completion:)`` to call its completion: do not call this where the completion
    /// has to run, such as on the main thread if connections use the main queue.
    public func closeAll() {
        let (engine, accepted) = (engine, accepted)
        let numbers = accepted.numbers
        // Closing does not fail.
        try? blocking {
            await engine.closeAll()
            await accepted.ended(numbers)
        }
    }

    // MARK: Listeners

    /// Calls a closure on the main queue after each change of a connection.
    @discardableResult
    public func addChangeListener(_ listener: @escaping (MessageEndpointListenerChange) -> Void)
        -> ListenerToken
    {
        addChangeListener(withQueue: nil, listener)
    }

    /// Calls a closure on a queue after each change of a connection. Nil is the main queue.
    @discardableResult
    public func addChangeListener(
        withQueue queue: DispatchQueue?,
        _ listener: @escaping (MessageEndpointListenerChange) -> Void
    ) -> ListenerToken {
        accepted.observe(Delivery(queue, listener))
    }
}

/// The connections of a listener under the engine's numbers, and those who want to know of them.
///
/// Unchecked, because apps' connections are not marked. The lock protects everything else.
private final class Accepted: @unchecked Sendable {
    private struct Listener {
        let token: ListenerToken
        let delivery: Delivery<MessageEndpointListenerChange>
    }

    /// A call that waits for the end of connections.
    private struct Waiter {
        let numbers: Set<Int>
        let ended: CheckedContinuation<Void, Never>
    }

    private let lock = Mutex(())
    private var waiters: [Waiter] = []
    private var isFinished = false
    private var connections: [Int: any MessageEndpointConnection] = [:]
    private var listeners: [ObjectIdentifier: Listener] = [:]

    var all: [any MessageEndpointConnection] {
        lock.withLock { _ in connections.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// Adds a connection under the number that the engine gives it.
    func add(_ connection: any MessageEndpointConnection, _ number: () -> Int) {
        // A change with the number waits for the lock.
        lock.withLock { _ in
            let number = number()
            // After the database was closed, nothing tells of its end.
            if !isFinished { connections[number] = connection }
        }
    }

    func numbers(of connection: any MessageEndpointConnection) -> [Int] {
        let object = connection as AnyObject
        return lock.withLock { _ in connections.filter { $0.value as AnyObject === object }.map(\.key) }
    }

    /// The numbers of all connections.
    var numbers: Set<Int> { lock.withLock { _ in Set(connections.keys) } }

    /// Waits until the end of these connections was reported.
    func ended(_ numbers: Set<Int>) async {
        await withCheckedContinuation { continuation in
            lock.withLock { _ in
                waiters.append(Waiter(numbers: numbers, ended: continuation))
                resumeWaiters()
            }
        }
    }

    /// Forgets the connections: their ends will not be reported, because the database was closed.
    func finish() {
        lock.withLock { _ in
            (connections, isFinished) = ([:], true)
            resumeWaiters()
        }
    }

    /// Resumes the calls whose connections have ended. The caller has the lock.
    private func resumeWaiters() {
        waiters.removeAll { waiter in
            guard waiter.numbers.isDisjoint(with: connections.keys) else { return false }
            waiter.ended.resume()
            return true
        }
    }

    func observe(_ delivery: Delivery<MessageEndpointListenerChange>) -> ListenerToken {
        let token = ListenerToken()
        let id = ObjectIdentifier(token)
        lock.withLock { _ in listeners[id] = Listener(token: token, delivery: delivery) }
        token.onRemoval { [weak self] in self?.remove(id) }
        return token
    }

    private func remove(_ id: ObjectIdentifier) { lock.withLock { _ in listeners[id] = nil } }

    func report(_ change: LoveseatNetwork.MessageEndpointListenerChange) {
        lock.withLock { _ in
            // Nothing follows the end of a connection.
            guard let connection = connections[change.number] else { return }
            if change.status.activity == .stopped { connections[change.number] = nil }
            let change = MessageEndpointListenerChange(
                connection: connection,
                status: Replicator.Status(change.status)
            )
            for listener in listeners.values { listener.delivery.send(change, unlessRemoved: listener.token) }
            resumeWaiters()
        }
    }
}
