import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Synchronization
import Testing

/// The threads on which requests read the database, and on which an app's policy and filter are called.
struct RequestThreadTests {
    @Test func `requests are served on threads that may block, and not on Swift's own`() async throws {
        let calls = Mutex((all: 0, onOwnThreads: 0))
        /// Called by the policy and the filter, in the task of the request.
        @Sendable func note() {
            let hasExecutor = withUnsafeCurrentTask { $0?.unownedTaskExecutor != nil }
            calls.withLock { $0 = ($0.all + 1, $0.onOwnThreads + (hasExecutor ? 1 : 0)) }
        }
        let served = try await ServedDatabase {
            $0.accessPolicy = AccessPolicy { _, _, _ in
                note()
                return .write
            }
            $0.incomingFilter = { _, _, _ in
                note()
                return nil
            }
        }
        let requests: [(String, String, JSONValue?)] = [
            ("PUT", "/main/x", ["n": 1]), ("GET", "/main/x", nil), ("GET", "/main/x?open_revs=all", nil),
            ("POST", "/main/_bulk_docs", ["docs": [["_id": "y"]]]), ("GET", "/main/_all_docs", nil),
            ("GET", "/main/_all_docs?include_docs=true", nil),
            ("GET", "/main/_changes?include_docs=true", nil),
            ("GET", "/main/_changes?feed=continuous&timeout=1", nil),
            ("POST", "/main/_revs_diff", ["x": ["1-a"]]),
            ("POST", "/main/_bulk_get", ["docs": [["id": "x"]]]),
            ("POST", "/main/_find", ["selector": ["n": 1]]),
            ("GET", "/main", nil), ("GET", "/_all_dbs", nil), ("PUT", "/main/z/a", "text"),
        ]
        for (method, path, body) in requests {
            let before = calls.withLock { $0.all }
            let answer = try await served.call(method, path, body)
            #expect((200...299).contains(answer.status), "\(method) \(path): \(answer.text)")
            let (all, onOwnThreads) = calls.withLock { $0 }
            #expect(all > before, "\(method) \(path)")
            #expect(onOwnThreads == all, "\(method) \(path)")
        }
        await served.listener.stop()
    }
}
