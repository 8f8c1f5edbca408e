import LoveseatNetwork
import LoveseatTesting
import Testing

/// How guessing at passwords is slowed down, and who is not slowed down by it.
struct LoginThrottleTests {
    private func refusals(_ throttle: inout LoginThrottle, _ address: String, _ user: String, now: Double)
        -> Double?
    {
        guard case .refused(let seconds) = throttle.ask(address, user: user, now: now) else { return nil }
        return seconds
    }

    private func wait(_ throttle: inout LoginThrottle, _ address: String, _ user: String, now: Double)
        -> Double?
    {
        guard case .after(let seconds) = throttle.ask(address, user: user, now: now) else { return nil }
        return seconds
    }

    @Test
    func
        `the login throttle makes a user name wait longer after each failure at an address, and forgets in time`()
    {
        var throttle = LoginThrottle()
        for _ in 0..<LoginThrottle.freeFailures {
            #expect(throttle.ask("a", user: "ana", now: 0) == .after(0))
            throttle.failed("a", user: "ana", now: 0)
        }
        #expect(throttle.ask("a", user: "ana", now: 0) == .after(0.5))
        // Attempts at once queue behind each other instead of sharing the wait.
        #expect(throttle.ask("a", user: "ana", now: 0) == .after(1))
        #expect(throttle.ask("b", user: "ana", now: 0) == .after(0))
        for _ in 0..<6 { throttle.failed("a", user: "ana", now: 1) }
        let seconds = refusals(&throttle, "a", "ana", now: 1) ?? 0
        #expect(seconds > LoginThrottle.maximumWait)
        #expect(seconds <= 40)
        #expect(throttle.ask("a", user: "ana", now: 700) == .after(0))
    }

    @Test func `the login throttle keeps the failures of other user names at an address after a success`() {
        var throttle = LoginThrottle()
        for _ in 0..<9 {
            throttle.failed("a", user: "ana", now: 0)
            // An attacker with an account of their own logs in between the guesses.
            throttle.succeeded("a", user: "eve", now: 0)
        }
        #expect(refusals(&throttle, "a", "ana", now: 0) != nil)
    }

    @Test func `the login throttle slows down guesses at one user name from many addresses together`() {
        var throttle = LoginThrottle()
        for number in 0..<200 { throttle.failed("\(number)", user: "ana", now: 0) }
        #expect(wait(&throttle, "new", "ana", now: 0) ?? 0 > 0)
        #expect(throttle.ask("new", user: "bob", now: 0) == .after(0))
    }

    @Test func `the login throttle lets a right password from a busy address in within two seconds`() {
        var throttle = LoginThrottle()
        for number in 0..<500 { throttle.failed("office", user: "guess \(number % 7)", now: 0) }
        for _ in 0..<500 { throttle.failed("elsewhere", user: "ana", now: 0) }
        for _ in 0..<20 {
            let seconds = wait(&throttle, "office", "ana", now: 0)
            #expect(seconds.map { $0 <= LoginThrottle.maximumSharedWait } == true)
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `the login throttle gives a busy address few attempts, however many names and connections it uses`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var throttle = LoginThrottle()
        for number in 0..<15 { throttle.failed("a", user: "name \(number)", now: 0) }
        var times: [Double] = []
        for step in 0..<500 {
            let now = Double(step) / 100
            for _ in 0..<Int.random(in: 1...10, using: &random) {
                let name = "name \(Int.random(in: 0..<1_000_000, using: &random))"
                guard let seconds = wait(&throttle, "a", name, now: now) else { continue }
                #expect(seconds <= LoginThrottle.maximumSharedWait)
                times.append(now + seconds)
                throttle.failed("a", user: name, now: now)
            }
        }
        // Five seconds, and two in which attempts wait.
        #expect(times.count <= Int(7 * LoginThrottle.attemptsPerSecond) + 1)
        #expect(throttle.ask("b", user: "ana", now: 5) == .after(0))
    }

    @Test func `a user who has logged in does not wait because of others at the same address`() {
        var throttle = LoginThrottle()
        throttle.succeeded("a", user: "ana", now: 0)
        for number in 0..<500 { throttle.failed("a", user: "\(number)", now: 1) }
        for _ in 0..<500 { throttle.failed("b", user: "ana", now: 1) }
        #expect((0..<100).allSatisfy { _ in throttle.ask("a", user: "ana", now: 2) == .after(0) })
        for _ in 0..<9 { throttle.failed("a", user: "ana", now: 3) }
        #expect(refusals(&throttle, "a", "ana", now: 3) != nil)
    }

    @Test func `the login throttle needs bounded memory for a million names and addresses`() {
        var throttle = LoginThrottle()
        let long = String(repeating: "x", count: 10_000)
        for number in 0..<30_000 {
            throttle.failed("\(number)", user: "\(number)\(long)", now: Double(number) / 100)
        }
        for number in 0..<30_000 { throttle.succeeded("\(number)", user: "u", now: 300) }
        #expect(throttle.count <= 20_000)
        for _ in 0..<3 { throttle.failed("29999", user: "z", now: 300) }
        #expect(throttle.ask("29999", user: "z", now: 300) != .after(0))
    }
}
