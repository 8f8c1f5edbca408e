import Foundation
import LoveseatModel
import LoveseatReplication
import Testing

/// `RetryPolicy`: whether and when a replicator connects again (replication.md §17.2).
struct RetryPolicyTests {
    @Test func `waits double up to the longest, nine times for one pass and without end otherwise`() {
        let refused = LoveseatError(.init(10_503), "busy")
        var once = RetryPolicy(isContinuous: false)
        #expect((0..<10).map { _ in once.wait(after: refused) } == [2, 4, 8, 16, 32, 64, 128, 256, 300, nil])
        var ever = RetryPolicy(isContinuous: true, maxWait: 10)
        #expect((0..<1_000).allSatisfy { _ in ever.wait(after: refused) != nil })
        #expect(ever.wait(after: refused) == 10)
        ever.connected()
        #expect(ever.wait(after: refused) == 2)
        var single = RetryPolicy(isContinuous: true, maxAttempts: 1)
        #expect(single.wait(after: refused) == nil)
    }

    @Test(arguments: [11_001, 11_012, 11_013])
    func `a server that goes away, restarts or is overloaded is connected to again if that is wanted`(
        _ code: Int
    ) {
        let error = LoveseatError(.init(code), "")
        var patient = RetryPolicy(isContinuous: true, reconnectsAfterGoingAway: true)
        #expect((0..<100).allSatisfy { _ in patient.wait(after: error) != nil })
        var other = RetryPolicy(isContinuous: true)
        #expect(other.wait(after: error) == nil)
    }

    @Test func `errors are transient, dependent on the network, or final, by the lists`() {
        func waits(_ code: LoveseatError.Code, isContinuous: Bool) -> Bool {
            var policy = RetryPolicy(isContinuous: isContinuous)
            return policy.wait(after: LoveseatError(code, "")) != nil
        }
        let transient = [10_408, 10_429, 10_500, 10_502, 10_503, 10_504, 11_006, 14_001, 5_001, 5_003, 5_018]
        let network = [5_002, 5_020, 5_021, 5_022, 5_024, 5_027]
        let final = [10_401, 10_403, 10_404, 11_001, 11_002, 11_011, 14_002, 5_008, 5_011, 10_501]
        for code in transient { #expect(waits(.init(code), isContinuous: false), "\(code)") }
        for code in network {
            #expect(!waits(.init(code), isContinuous: false), "\(code)")
            #expect(waits(.init(code), isContinuous: true), "\(code)")
        }
        for code in final { #expect(!waits(.init(code), isContinuous: true), "\(code)") }
        #expect(waits(.init(Int(ECONNREFUSED), domain: .posix), isContinuous: false))
        #expect(!waits(.init(Int(ENETUNREACH), domain: .posix), isContinuous: false))
        #expect(waits(.init(Int(ENETUNREACH), domain: .posix), isContinuous: true))
    }

    @Test func `a server may ask for a longer wait, up to the longest one`() {
        var error = LoveseatError(.init(10_503), "busy")
        error.retryAfter = 30
        var policy = RetryPolicy(isContinuous: true)
        #expect((0..<6).map { _ in policy.wait(after: error) } == [30, 30, 30, 30, 32, 64])
        error.retryAfter = 301
        #expect(policy.wait(after: error) == 300)
        var few = RetryPolicy(isContinuous: false, maxAttempts: 3)
        #expect((0..<3).map { _ in few.wait(after: error) } == [300, 300, nil])
        var final = RetryPolicy(isContinuous: true)
        #expect(final.wait(after: LoveseatError(.httpForbidden, "no")) == nil)
        #expect(final.wait(after: LoveseatError(.webSocketGoingAway, "")) == nil)
        // An error that is final does not count as an attempt.
        #expect(final.wait(after: LoveseatError(.init(10_503), "busy")) == 2)
    }

    @Test(
        arguments: [
            // Seconds, what the server asked for, the random number, and the wait.
            (10, nil, -1, 8), (10, nil, 0, 10), (10, nil, 1, 12), (100, nil, 1, 100), (100, nil, -1, 80),
            (200, nil, 1, 200), (10, 10, -1, 12), (10, 10, 0, 10), (10, 10, 1, 12), (10, 9, -1, 8),
            (10, 11, 0.5, 11),
        ] as [(UInt, UInt?, Double, Double)]
    )
    func `waits are spread by a fifth, not beyond the longest, and only get longer than what was asked for`(
        _ seconds: UInt,
        _ asked: UInt?,
        _ random: Double,
        _ wait: Double
    ) {
        var error = LoveseatError(.init(10_503), "busy")
        error.retryAfter = asked
        let policy = RetryPolicy(isContinuous: true, maxWait: 100)
        #expect(abs(policy.spread(seconds, after: error, random: random) - wait) < 0.001)
    }
}
