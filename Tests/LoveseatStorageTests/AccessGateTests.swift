import Foundation
import LoveseatStorage
import Synchronization
import Testing

/// The gate at which transactions wait, alone.
struct AccessGateTests {
    /// What the waiters were told, in order.
    private final class Answers: Sendable {
        private let answers = Mutex<[String]>([])
        var list: [String] { answers.withLock { $0 } }
        func note(_ name: String, _ outcome: AccessGate.Outcome) {
            answers.withLock { $0.append("\(name) \(outcome)") }
        }
    }

    /// How many are inside at once.
    private final class Inside: Sendable {
        private struct Count {
            var now = 0
            var most = 0
        }
        private let count = Mutex(Count())
        var most: Int { count.withLock { $0.most } }
        func leave() { count.withLock { $0.now -= 1 } }
        func enter() {
            count.withLock { count in
                count.now += 1
                count.most = max(count.most, count.now)
            }
        }
    }

    @Test func `as many are inside as there are places`() {
        let gate = AccessGate(places: 2)
        #expect(gate.tryEnter())
        #expect(gate.tryEnter())
        #expect(!gate.tryEnter())
        gate.leave()
        #expect(gate.tryEnter())
        #expect(!gate.tryEnter())
    }

    @Test func `whoever waits first is admitted first, and nobody overtakes the queue`() {
        let (gate, answers) = (AccessGate(places: 1), Answers())
        for name in ["a", "b", "c"] {
            gate.wait(gate.newTicket(), until: nil) { answers.note(name, $0) }
        }
        // The first one found the place free.
        #expect(answers.list == ["a admitted"])
        gate.leave()
        #expect(answers.list == ["a admitted", "b admitted"])
        #expect(!gate.tryEnter())
        gate.leave()
        #expect(answers.list == ["a admitted", "b admitted", "c admitted"])
        gate.leave()
        #expect(gate.tryEnter())
    }

    @Test func `a cancelled waiter hears of it once, and its turn goes to the next one`() {
        let (gate, answers) = (AccessGate(places: 1), Answers())
        #expect(gate.tryEnter())
        let tickets = ["a", "b", "c"].map { name in
            let ticket = gate.newTicket()
            gate.wait(ticket, until: nil) { answers.note(name, $0) }
            return ticket
        }
        gate.cancel(tickets[0])
        gate.cancel(tickets[0])
        #expect(answers.list == ["a cancelled"])
        gate.leave()
        #expect(answers.list == ["a cancelled", "b admitted"])
        // Admitted: a cancellation is too late.
        gate.cancel(tickets[1])
        gate.cancel(tickets[2])
        #expect(answers.list == ["a cancelled", "b admitted", "c cancelled"])
        gate.leave()
        #expect(gate.tryEnter())
        #expect(!gate.tryEnter())
    }

    @Test func `a ticket that does not wait yet is not cancelled`() {
        let (gate, answers) = (AccessGate(places: 1), Answers())
        let ticket = gate.newTicket()
        gate.cancel(ticket)
        gate.wait(ticket, until: nil) { answers.note("a", $0) }
        #expect(answers.list == ["a admitted"])
    }

    @Test func `after thousands that left the queue the next one is admitted`() {
        let (gate, answers) = (AccessGate(places: 1), Answers())
        #expect(gate.tryEnter())
        for _ in 0..<5_000 {
            let ticket = gate.newTicket()
            gate.wait(ticket, until: nil) { _ in }
            gate.cancel(ticket)
        }
        gate.wait(gate.newTicket(), until: nil) { answers.note("last", $0) }
        gate.leave()
        #expect(answers.list == ["last admitted"])
        gate.leave()
        gate.wait(gate.newTicket(), until: nil) { answers.note("again", $0) }
        #expect(answers.list == ["last admitted", "again admitted"])
    }

    @Test func `waiters time out at their own deadlines, the earlier first, whoever came first`() async {
        let (gate, answers) = (AccessGate(places: 1), Answers())
        #expect(gate.tryEnter())
        let now = ContinuousClock.now
        gate.wait(gate.newTicket(), until: now + .seconds(3_600)) { answers.note("patient", $0) }
        await withCheckedContinuation { done in
            gate.wait(gate.newTicket(), until: now + .milliseconds(60)) {
                answers.note("second", $0)
                done.resume()
            }
            gate.wait(gate.newTicket(), until: now + .milliseconds(20)) { answers.note("first", $0) }
        }
        #expect(ContinuousClock.now >= now + .milliseconds(60))
        #expect(answers.list == ["first timedOut", "second timedOut"])
        gate.leave()
        #expect(answers.list.last == "patient admitted")
    }

    @Test func `a deadline in the past ends the wait, but not the admission to a free place`() async {
        let (gate, answers) = (AccessGate(places: 1), Answers())
        let past = ContinuousClock.now - .seconds(1)
        gate.wait(gate.newTicket(), until: past) { answers.note("free", $0) }
        #expect(answers.list == ["free admitted"])
        let outcome = await withCheckedContinuation { done in
            gate.wait(gate.newTicket(), until: past) { done.resume(returning: $0) }
        }
        #expect(outcome == .timedOut)
    }

    // MARK: Threads

    @Test func `a thread that times out leaves the queue, and the place is not lost`() throws {
        let gate = AccessGate(places: 1)
        #expect(try gate.enter(within: .seconds(5)) == .seconds(5))
        #expect(throws: AccessGate.TimedOut.self) { try gate.enter(within: .milliseconds(10)) }
        #expect(throws: AccessGate.TimedOut.self) { try gate.enter(within: .zero) }
        gate.leave()
        #expect(try gate.enter(within: nil) == nil)
        #expect(!gate.tryEnter())
    }

    @Test(arguments: [nil, Duration.seconds(3_600)])
    func `a thread that waited goes on with the rest of its time`(_ timeout: Duration?) async throws {
        let gate = AccessGate(places: 1)
        #expect(gate.tryEnter())
        let answers = Answers()
        let rest: Duration?? = await withCheckedContinuation { done in
            Thread.detachNewThread { done.resume(returning: try? gate.enter(within: timeout)) }
            // Whether the thread waits by now or not: the place is passed to it, or found free by it.
            gate.leave()
        }
        let left = try #require(rest)
        #expect((left == nil) == (timeout == nil))
        if let left, let timeout {
            #expect(left <= timeout)
            #expect(left > timeout - .seconds(600))
        }
        gate.wait(gate.newTicket(), until: nil) { answers.note("next", $0) }
        #expect(answers.list.isEmpty)
        gate.leave()
        #expect(answers.list == ["next admitted"])
    }

    // MARK: Turns

    private static func lane() -> TransactionLane { TransactionLane(label: "loveseat.test") }

    @Test func `a turn runs on its lane once it has a place, and says how much time is left`() async throws {
        let (gate, lane) = (AccessGate(places: 1), Self.lane())
        for timeout in [nil, Duration.seconds(3_600)] {
            let turn = Turn(at: gate, within: timeout) { lane }
            let (isLane, left) = try await turn.run { ($0 === lane, $1) }
            #expect(isLane)
            #expect((left == nil) == (timeout == nil))
            if let left { #expect(left <= .seconds(3_600)) }
            gate.leave()
        }
    }

    @Test func `turns run one after the other, and those that wait block no thread`() async throws {
        let (gate, lane) = (AccessGate(places: 1), Self.lane())
        #expect(gate.tryEnter())
        let inside = Inside()
        let count = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    try await Turn(at: gate, within: nil, then: { lane }).run { _, _ in
                        inside.enter()
                        defer {
                            inside.leave()
                            gate.leave()
                        }
                        return 1
                    }
                }
            }
            gate.leave()
            return try await group.reduce(0, +)
        }
        #expect(count == 200)
        #expect(inside.most == 1)
        #expect(gate.tryEnter())
    }

    @Test func `a turn that times out never runs, and asks for no lane`() async {
        let gate = AccessGate(places: 1)
        #expect(gate.tryEnter())
        let turn = Turn(at: gate, within: .milliseconds(10)) {
            Issue.record("a lane is asked for")
            return Self.lane()
        }
        await #expect(throws: AccessGate.TimedOut.self) {
            try await turn.run { _, _ in Issue.record("it runs") }
        }
        gate.leave()
        #expect(gate.tryEnter())
    }

    @Test(arguments: [true, false])
    func `a turn that is cancelled before its place is free throws, and takes no place`(_ isEarly: Bool)
        async throws
    {
        let gate = AccessGate(places: 1)
        #expect(gate.tryEnter())
        let turn = Turn(at: gate, within: nil) { Self.lane() }
        if isEarly { turn.cancel() }
        let task = Task { try await turn.run { _, _ in Issue.record("it runs") } }
        if !isEarly { turn.cancel() }
        await #expect(throws: CancellationError.self) { try await task.value }
        gate.leave()
        #expect(gate.tryEnter())
    }
}
