import LoveseatBLIP
import Testing

/// Limits of which a change by one shows only exactly at the limit.
@Suite struct LimitTests {
    private final class Place: BodySpill {
        var bodies: [UInt64: [UInt8]] = [:]
        var hasTaken = false

        func append(_ bytes: [UInt8], to key: UInt64) throws {
            hasTaken = true
            bodies[key, default: []] += bytes
        }
        func remove(_ key: UInt64) throws -> [UInt8] { bodies.removeValue(forKey: key) ?? [] }
        func drop(_ key: UInt64) { bodies[key] = nil }
    }

    /// A connection with a reply of which a piece is there.
    private func replying(window: UInt64) throws -> BLIPConnection {
        let (asker, sender) = (BLIPConnection(), BLIPConnection())
        try asker.send(Message(["Profile": "getAttachment"]), tag: 5, inPieces: true)
        while let frame = try asker.nextFrame() { try sender.receive(frame) }
        #expect(sender.hasNothingToSend)
        for case .request(let number, _) in sender.drainEvents() {
            try sender.beginReply(Message(), to: number, window: window)
            sender.supply([UInt8](repeating: 7, count: 65_536), isLast: false, for: number)
        }
        return sender
    }

    /// `nextFrame` with `>` for `>=`, and `hasNothingToSend` with `||` for `&&`.
    @Test func `a message of which exactly a window is under way waits`() throws {
        let first = try #require(try replying(window: 1 << 20).nextFrame())
        let bytes = UInt64(first.count - 2)
        for (window, waits) in [(bytes - 1, true), (bytes, true), (bytes + 1, false)] {
            let sender = try replying(window: window)
            #expect(!sender.hasNothingToSend)
            #expect(try sender.nextFrame() == first)
            #expect(sender.hasNothingToSend == waits)
            #expect(try (sender.nextFrame() == nil) == waits)
        }
    }

    /// `enqueue` and `readProperties` with `<` for `<=`.
    @Test func `properties of exactly the largest size are sent and received`() throws {
        let (sender, receiver) = (BLIPConnection(), BLIPConnection())
        let text = String(repeating: "z", count: 102_400 - 3)
        try sender.send(Message(["y": text], noReply: true), tag: nil)
        while let frame = try sender.nextFrame() { try receiver.receive(frame) }
        let events = receiver.drainEvents()
        #expect(events.count == 1)
        guard case .request(1, let message)? = events.first else {
            Issue.record("no request")
            return
        }
        #expect(message.properties["y"] == text)
        #expect(throws: BLIPError.tooLarge("102401 bytes of properties")) {
            try sender.send(Message(["y": text + "z"]), tag: nil)
        }
    }

    /// `bound` that leaves what was spilled where it is.
    @Test func `of a message that turns out to be too large nothing is kept`() throws {
        var limits = BLIPLimits()
        limits.memoryBytes = 50_000
        limits.largestMessage = 400_000
        let place = Place()
        let (sender, receiver) = (BLIPConnection(), BLIPConnection(limits: limits, spill: place))
        receiver.allowance = 10 << 20
        var body = [UInt8](repeating: 0, count: 600_000)
        for index in body.indices { body[index] = UInt8(truncatingIfNeeded: index &* 31) }
        try sender.send(Message(["Profile": "x"], body: body, noReply: true), tag: nil)
        var events: [BLIPConnection.Event] = []
        while !sender.hasNothingToSend || !receiver.hasNothingToSend {
            while let frame = try sender.nextFrame() { try receiver.receive(frame) }
            while let frame = try receiver.nextFrame() { try sender.receive(frame) }
            events += receiver.drainEvents()
        }
        #expect(events.count == 1)
        guard case .request(1, let message)? = events.first else {
            Issue.record("no request")
            return
        }
        #expect(message.isTooLarge)
        #expect(place.hasTaken)
        #expect(place.bodies.isEmpty)
    }

    /// What becomes of a message with a body of so many bytes, if bodies may have 1,000, and from 2,001 are endless.
    private func received(_ count: Int) throws -> Message? {
        var limits = BLIPLimits()
        (limits.largestMessage, limits.endlessMessage) = (1_000, 2_000)
        let (sender, receiver) = (BLIPConnection(), BLIPConnection(limits: limits))
        try sender.send(Message(["Profile": "x"], body: [UInt8](repeating: 7, count: count)), tag: 1)
        while let frame = try sender.nextFrame() { try receiver.receive(frame) }
        for case .request(_, let message) in receiver.drainEvents() { return message }
        return nil
    }

    @Test func `a message of exactly the largest length arrives, and one of the endless length is left out`()
        throws
    {
        let largest = try #require(try received(1_000))
        #expect(largest.body.count == 1_000)
        #expect(!largest.isTooLarge)
        for count in [1_001, 2_000] {
            let tooLarge = try #require(try received(count))
            #expect(tooLarge.body.isEmpty)
            #expect(tooLarge.isTooLarge)
        }
        #expect(throws: BLIPError.tooLarge("a message of more than 2000 bytes")) { try received(2_001) }
    }
}
