import LoveseatAssertions
import Synchronization
import Testing

/// What becomes of a state that cannot be. These tests are built with `LOVESEAT_CHECKED`, as ./test does, or without.
struct ImpossibleTests {
    @Test(.enabled(if: AssertionFailures.areFatal))
    func `a state that cannot be ends a checked program, and says where`() async throws {
        let result = try #require(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                impossible("a cup without a saucer")
            }
        )
        let said = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(said.contains("ImpossibleTests.swift:"))
        #expect(said.contains("a cup without a saucer"))
    }

    @Test(.enabled(if: AssertionFailures.areFatal))
    func `an invariant that does not hold ends a checked program, one that holds does not`() async {
        await #expect(processExitsWith: .failure) { invariant(1 > 2, "one is more than two") }
        await #expect(processExitsWith: .success) { invariant(2 > 1, "two is not more than one") }
    }

    @Test(.enabled(if: !AssertionFailures.areFatal))
    func `a state that cannot be goes to the log of any other program, which goes on`() async {
        await #expect(processExitsWith: .success) {
            let texts = Mutex<[String]>([])
            AssertionFailures.send { text in texts.withLock { $0.append(text) } }
            impossible("a cup without a saucer")
            invariant(1 > 2, "is not looked at")
            #expect(texts.withLock { $0.count } == 1)
            #expect(texts.withLock { $0.first }?.hasSuffix("a cup without a saucer") == true)
        }
    }
}
