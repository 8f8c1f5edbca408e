import LoveseatAssertions
import LoveseatBLIP

/// Two sessions of the model that talk to each other, message by message.
package struct LiteExchange {
    package let active: LiteSession
    package let passive: LiteSession
    /// The messages under way, to the active side and to the passive one.
    private var queues: [[BLIPConnection.Event]] = [[], []]
    private var numbers: [UInt64] = [0, 0]
    /// The tags of requests by their numbers, of the active side and of the passive one.
    private var tags: [[UInt64: BLIPConnection.Tag]] = [[:], [:]]

    package init(active: LiteSession, passive: LiteSession) {
        (self.active, self.passive) = (active, passive)
        active.start()
    }

    /// Whether nothing is under way.
    package var isIdle: Bool { queues.allSatisfy(\.isEmpty) }

    /// Delivers a message, and has both sides work. The order of the two directions is random.
    ///
    /// - Parameters:
    ///   - time: Seconds since 1970.
    ///   - generator: Chooses the direction.
    package mutating func step(time: Int, using generator: inout SeededGenerator) {
        collect(time: time)
        let ready = queues.indices.filter { !queues[$0].isEmpty }
        if ready.isEmpty { return }
        let side = ready.count == 1 ? ready[0] : generator.chance(0.5) ? 0 : 1
        let event = queues[side].removeFirst()
        (side == 0 ? active : passive).receive(event)
        collect(time: time)
    }

    private mutating func collect(time: Int) {
        for (side, session) in [active, passive].enumerated() {
            session.work(time: time)
            for output in session.drainOutput() { deliver(output, from: side) }
        }
    }

    private mutating func deliver(_ output: LiteSession.Output, from side: Int) {
        switch output {
        case .request(let message, let tag):
            numbers[side] += 1
            tags[side][numbers[side]] = tag
            queues[1 - side].append(.request(number: numbers[side], message))
        case .reply(let message, let number):
            guard let tag = tags[1 - side].removeValue(forKey: number) else {
                return impossible("an answer to request \(number), which wants none")
            }
            queues[1 - side].append(.response(tag, message))
        case .failure(let error, let number, _):
            guard let tag = tags[1 - side].removeValue(forKey: number) else {
                return impossible("an error for request \(number), which wants none")
            }
            queues[1 - side].append(.failure(tag, error))
        }
    }
}
