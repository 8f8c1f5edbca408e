private import Dispatch
import Logging
package import LoveseatModel
import LoveseatReplication
import LoveseatStorage
private import Synchronization

/// The use of an open folder by one ``Database`` object: the services that run on it, the feeds that end with it, and how it ends.
package final class DatabaseSession: Sendable {
    private let name: String
    private let state: Mutex<State>

    private struct State {
        /// Nil once closed.
        var open: DatabaseInstance?
        var services: [ObjectIdentifier: any DatabaseService] = [:]
        /// Closures that end the feeds of this database.
        var feedEnds: [UInt64: @Sendable () -> Void] = [:]
        var nextFeed: UInt64 = 0
    }

    init(_ open: DatabaseInstance, name: String) {
        self.name = name
        state = Mutex(State(open: open))
    }

    deinit {
        // There is no caller to report an error to.
        try? state.withLock { state in
            let open = state.open
            state.open = nil
            return open
        }?.leave()
    }

    /// The path of the open folder; nil once closed.
    var path: String? { state.withLock { $0.open?.folder } }

    /// The open folder.
    ///
    /// - Throws: `notOpen` once closed.
    var opened: DatabaseInstance {
        get throws(LoveseatError) {
            guard let open = state.withLock({ $0.open }) else { throw isClosed }
            return open
        }
    }

    private var isClosed: LoveseatError { LoveseatError(.notOpen, "database \"\(name)\" is closed") }

    // MARK: Ending

    /// Throws inside the closure of a transaction. `call`: the name of the called function, for messages.
    func requireNoTransaction(_ call: String = #function) throws(LoveseatError) {
        try state.withLock({ $0.open })?.store.requireNoTransaction(call)
    }

    /// Ends the services, and closes. This blocks the thread.
    func end() throws(LoveseatError) {
        let services = removeServices()
        if !services.isEmpty {
            let done = DispatchSemaphore(value: 0)
            // The calling thread may be one of Swift's pool, and all others of it may wait as it does.
            Task.detached(executorPreference: BlockingThreads.shared) {
                for service in services { await service.endWithDatabase() }
                done.signal()
            }
            done.wait()
        }
        try leave()
    }

    /// Ends the services, closes, and does something more. All of that is done even if the task is cancelled; see ``finishing(_:)``.
    func end(
        then finish: @escaping @Sendable (Result<Void, LoveseatError>) -> Result<Void, LoveseatError>
    ) async throws(LoveseatError) {
        let services = removeServices()
        let closing: @Sendable () -> Result<Void, LoveseatError> = { [self] in
            do throws(LoveseatError) { return .success(try leave()) } catch { return .failure(error) }
        }
        guard !services.isEmpty else { return try finish(closing()).get() }
        try await finishing(on: BlockingThreads.shared) {
            for service in services { await service.endWithDatabase() }
            return finish(closing())
        }?.get()
    }

    /// Keeps others from opening the folder, until ``DatabaseFolder/endRemoval()``.
    func beginRemoval() throws(LoveseatError) -> DatabaseFolder {
        let open = try opened
        try requireNoTransaction("delete")
        try open.store.requireWriteable()
        return DatabaseFolder(path: try DatabaseInstance.beginRemoval(open.folder, heldBy: 1))
    }

    private func leave() throws(LoveseatError) {
        let (open, feedEnds) = state.withLock { state in
            defer { (state.open, state.feedEnds) = (nil, [:]) }
            return (state.open, state.feedEnds.values)
        }
        for end in feedEnds { end() }
        // The database was closed before.
        guard let open else { return }
        try open.leave()
        LogDomain.database.log(.info, "\(name): closed")
    }

    // MARK: Feeds

    /// Ends a feed when this database closes, even if another one keeps the folder open.
    ///
    /// Returns a number for ``forgetFeed(_:)``. Calls `end` at once if the database is closed.
    package func endWhenClosed(_ end: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isOpen) = state.withLock { state in
            state.nextFeed += 1
            if state.open != nil { state.feedEnds[state.nextFeed] = end }
            return (state.nextFeed, state.open != nil)
        }
        if !isOpen { end() }
        return number
    }

    /// Called when the feed has no consumer any more.
    package func forgetFeed(_ number: UInt64) {
        state.withLock { _ = $0.feedEnds.removeValue(forKey: number) }
    }

    // MARK: Services

    /// Keeps a replicator or listener alive, and stops it when the database closes.
    package func adopt(_ service: any DatabaseService) throws(LoveseatError) {
        let isOpen = state.withLock { state in
            guard state.open != nil else { return false }
            state.services[ObjectIdentifier(service)] = service
            return true
        }
        if !isOpen { throw isClosed }
    }

    /// Called when a service has ended by itself.
    package func release(_ service: any DatabaseService) {
        state.withLock { $0.services[ObjectIdentifier(service)] = nil }
    }

    /// The replications that run in this process, on either side.
    package var replicationTasks: [ReplicationTask] {
        let services = state.withLock { Array($0.services.values) }
        return services.flatMap(\.replicationTasks).sorted { $0.id < $1.id }
    }

    private func removeServices() -> [any DatabaseService] {
        state.withLock { state in
            let services = Array(state.services.values)
            state.services = [:]
            return services
        }
    }
}

/// A replicator, listener or other service that must end before its database closes.
package protocol DatabaseService: AnyObject, Sendable {
    /// Stops, and returns when it no longer uses the database.
    func endWithDatabase() async

    /// The replications that it is a side of.
    var replicationTasks: [ReplicationTask] { get }
}

extension DatabaseService {
    package var replicationTasks: [ReplicationTask] { [] }
}
