import Dispatch
import Testing

/// Runs tests on threads of their own. Calls of this module block, as an app's main thread may, and Swift's pool has few threads: two tests would
/// hold those that the calls wait for.
struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    @concurrent func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(Threads.shared) { try await function() }
    }

    private final class Threads: TaskExecutor {
        static let shared = Threads()

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            // A serial queue gets a thread, also if those for all processors are taken.
            DispatchQueue(label: "test").async {
                job.runSynchronously(on: self.asUnownedTaskExecutor())
            }
        }
    }
}

extension Trait where Self == OwnThreads {
    static var ownThreads: Self { OwnThreads() }
}
