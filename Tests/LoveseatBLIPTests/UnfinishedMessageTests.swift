import LoveseatBLIP
import Testing

/// Many long messages at once, each of them unfinished for a long time.
struct UnfinishedMessageTests {
    /// A place that is not memory, as far as the connection knows.
    private final class Place: BodySpill {
        var bodies: [UInt64: [UInt8]] = [:]
        var most = 0

        func append(_ bytes: [UInt8], to key: UInt64) throws {
            bodies[key, default: []] += bytes
            most = max(most, bodies.values.reduce(0) { $0 + $1.count })
        }

        func remove(_ key: UInt64) throws -> [UInt8] { bodies.removeValue(forKey: key) ?? [] }
        func drop(_ key: UInt64) { bodies[key] = nil }
    }

    private static func body(_ number: Int) -> [UInt8] {
        var state = UInt32(truncatingIfNeeded: number &+ 1)
        return (0..<300_000).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(truncatingIfNeeded: state >> 24)
        }
    }

    private func limits() -> BLIPLimits {
        var limits = BLIPLimits()
        limits.memoryBytes = 1 << 20
        limits.incomingBytes = 4 << 20
        limits.unfinishedBytes = 2 << 20
        limits.requestsAcknowledged = 4
        return limits
    }

    @Test func `what was asked for arrives whole, and the oldest first when it is much`() throws {
        let place = Place()
        let sender = BLIPConnection(limits: limits())
        let receiver = BLIPConnection(limits: limits(), spill: place)
        receiver.allowance = 100 << 20
        for number in 0..<60 {
            try sender.send(Message(["n": "\(number)"], body: Self.body(number), noReply: true), tag: nil)
        }
        var order: [Int] = []
        var moved = true
        while moved {
            moved = false
            while let frame = try sender.nextFrame() {
                moved = true
                try receiver.receive(frame)
                for case .request(_, let message) in receiver.drainEvents() {
                    let number = try #require(message.properties.int("n"))
                    #expect(message.body == Self.body(number))
                    order.append(number)
                }
            }
            while let frame = try receiver.nextFrame() {
                moved = true
                try sender.receive(frame)
            }
        }
        #expect(order.count == 60)
        // Nothing overtakes what is more than a few messages older.
        for (index, number) in order.enumerated() { #expect(abs(index - number) < 8) }
        // Without acknowledgements a sender stops: most of what is asked for is never under way at once.
        #expect((4 << 20...12 << 20).contains(place.most))
        #expect(place.bodies.isEmpty)
    }

    @Test func `what was not asked for ends the connection`() throws {
        let sender = BLIPConnection(limits: limits())
        let receiver = BLIPConnection(limits: limits(), spill: Place())
        for number in 0..<60 {
            try sender.send(Message(["n": "\(number)"], body: Self.body(number)), tag: nil)
        }
        #expect(throws: BLIPError.tooLarge("more than 4194304 bytes of messages that were not asked for")) {
            while let frame = try sender.nextFrame() { try receiver.receive(frame) }
        }
    }

    @Test func `what is kept elsewhere goes with the connection`() throws {
        let place = Place()
        let sender = BLIPConnection(limits: limits())
        let receiver = BLIPConnection(limits: limits(), spill: place)
        receiver.allowance = 100 << 20
        for number in 0..<20 {
            try sender.send(Message(["n": "\(number)"], body: Self.body(number)), tag: nil)
        }
        while let frame = try sender.nextFrame() { try receiver.receive(frame) }
        #expect(!place.bodies.isEmpty)
        _ = receiver.disconnect()
        #expect(place.bodies.isEmpty)
    }
}
