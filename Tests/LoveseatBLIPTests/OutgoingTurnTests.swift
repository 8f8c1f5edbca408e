import LoveseatBLIP
import Testing

/// Whose turn it is to be sent, and replies whose body is supplied late.
struct OutgoingTurnTests {
    private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

    /// The numbers of the requests whose frames are sent next.
    private func turns(_ count: Int, of connection: BLIPConnection) throws -> [UInt8] {
        try (0..<count).map { _ in try #require(try connection.nextFrame()?.first) }
    }

    @Test func `ordinary messages take turns, and an urgent one overtakes all but the next`() throws {
        let connection = BLIPConnection()
        for tag: UInt64 in 1...3 {
            try connection.send(Message(["Profile": "long"], body: bytes(120_000)), tag: tag)
        }
        #expect(try turns(6, of: connection) == [1, 2, 3, 1, 2, 3])
        try connection.send(Message(["Profile": "quick"], isUrgent: true), tag: 4)
        #expect(try turns(5, of: connection) == [1, 4, 2, 3, 1])
    }

    /// A connection that has begun a reply, and the one that has asked for it in pieces.
    private func replying(window: UInt64) throws -> (sender: BLIPConnection, asker: BLIPConnection) {
        let (sender, asker) = (BLIPConnection(), BLIPConnection())
        try asker.send(Message(["Profile": "getAttachment"]), tag: 5, inPieces: true)
        while let frame = try asker.nextFrame() { try sender.receive(frame) }
        #expect(sender.drainEvents().count == 1)
        try sender.beginReply(Message(), to: 1, window: window)
        #expect(sender.drainEvents() == [.wantsBody(number: 1)])
        return (sender, asker)
    }

    /// Carries frames both ways until there are none. Returns the pieces of the reply, and whether the last one has come.
    private func exchange(_ sender: BLIPConnection, _ asker: BLIPConnection) throws -> (
        body: [UInt8], isWhole: Bool
    ) {
        var (body, isWhole): ([UInt8], Bool) = ([], false)
        while !sender.hasNothingToSend || !asker.hasNothingToSend {
            while let frame = try sender.nextFrame() { try asker.receive(frame) }
            while let frame = try asker.nextFrame() { try sender.receive(frame) }
            for case .piece(5, let piece, let isLast) in asker.drainEvents() {
                body += piece
                isWhole = isWhole || isLast
            }
        }
        return (body, isWhole)
    }

    @Test func `a reply goes on that had nothing to send`() throws {
        let (sender, asker) = try replying(window: 128_000)
        let begun = try exchange(sender, asker)
        #expect(begun.body.isEmpty)
        #expect(!begun.isWhole)
        sender.supply(bytes(1_000), isLast: true, for: 1)
        let rest = try exchange(sender, asker)
        #expect(rest.body == bytes(1_000))
        #expect(rest.isWhole)
    }

    @Test func `a reply goes on with what it got while it waited for acknowledgements`() throws {
        let (sender, asker) = try replying(window: 100_000)
        sender.supply(Array(bytes(150_000).prefix(120_000)), isLast: false, for: 1)
        // The asker is slow to read.
        var frames: [[UInt8]] = []
        while let frame = try sender.nextFrame() { frames.append(frame) }
        #expect(sender.drainEvents() == [.wantsBody(number: 1)])
        sender.supply(Array(bytes(150_000).suffix(30_000)), isLast: true, for: 1)
        #expect(sender.hasNothingToSend)
        for frame in frames { try asker.receive(frame) }
        let (body, isWhole) = try exchange(sender, asker)
        #expect(body == bytes(150_000))
        #expect(isWhole)
    }

    @Test func `more of a reply is asked for when less than half a window of it is left`() throws {
        for (left, isAsked) in [(499, true), (500, false), (501, false)] {
            let (sender, _) = try replying(window: 1_000)
            // The first frame has room for 16,300 bytes: the length of the properties, and these.
            sender.supply(bytes(16_299 + left), isLast: false, for: 1)
            _ = try sender.nextFrame()
            #expect(sender.queuedBytes == left)
            #expect(sender.drainEvents() == (isAsked ? [.wantsBody(number: 1)] : []))
        }
    }
}
