import Dispatch
import LoveseatCore
import Synchronization

/// Runs asynchronous work, and blocks the calling thread until it is done.
///
/// The work, and all that it waits for in the engine, has threads of its own: it goes on even if calls like this block every thread of Swift's
/// pool. It still waits for the app's own code: filters, resolvers, authenticators, and completions of a ``MessageEndpointConnection``.
func blocking<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) throws -> Value {
    let outcome = Outcome<Value>()
    let done = DispatchSemaphore(value: 0)
    background {
        do { outcome.set(.success(try await work())) } catch { outcome.set(.failure(error)) }
        done.signal()
    }
    done.wait()
    return try outcome.get()
}

/// Begins asynchronous work on threads that an app's blocking calls do not take.
@discardableResult
func background(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    Task.detached(executorPreference: BlockingThreads.shared) { await work() }
}

/// The outcome of work that another thread waits for.
private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Swift.Result<Value, any Error>?>(nil)

    func set(_ value: Swift.Result<Value, any Error>) { result.withLock { $0 = value } }

    func get() throws -> Value {
        guard let result = result.withLock({ $0 }) else {
            throw CBLError.make(CBLError.unexpectedError, "a call ended without a result")
        }
        return try result.get()
    }
}
