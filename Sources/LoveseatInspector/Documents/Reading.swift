import Dispatch
import Foundation

/// Runs calls that block, apart from the threads that serve connections, four at a time.
package enum Reading {
    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "loveseat.inspector.reading"
        queue.maxConcurrentOperationCount = 4
        return queue
    }()

    package static func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.addOperation { continuation.resume(with: Result { try body() }) }
        }
    }
}
