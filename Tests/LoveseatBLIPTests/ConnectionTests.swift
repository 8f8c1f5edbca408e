import LoveseatBLIP
import Testing

/// Two ends joined in memory.
private final class Pair {
    let left: BLIPConnection
    let right: BLIPConnection
    var leftEvents: [BLIPConnection.Event] = []
    var rightEvents: [BLIPConnection.Event] = []
    var frames: [[UInt8]] = []

    init(level: Int = 6) {
        var limits = BLIPLimits()
        limits.compressionLevel = level
        left = BLIPConnection(limits: limits)
        right = BLIPConnection(limits: limits)
    }

    /// Moves one frame each way; false when both were silent.
    func step() throws -> Bool {
        var moved = false
        if let frame = try left.nextFrame() {
            frames.append(frame)
            try right.receive(frame)
            moved = true
        }
        if let frame = try right.nextFrame() {
            try left.receive(frame)
            moved = true
        }
        leftEvents += left.drainEvents()
        rightEvents += right.drainEvents()
        return moved
    }

    func run() throws { while try step() {} }
}

private func noise(_ count: Int) -> [UInt8] {
    var state: UInt32 = 1
    return (0..<count).map { _ in
        state = state &* 1_664_525 &+ 1_013_904_223
        return UInt8(truncatingIfNeeded: state >> 24)
    }
}

@Suite struct ConnectionTests {
    @Test(arguments: [0, 6, 9]) func `messages of every size arrive whole and are answered once`(level: Int)
        throws
    {
        let pair = Pair(level: level)
        let sizes = [0, 1, 100, 16_299, 16_300, 16_301, 50_000, 300_000]
        for (index, size) in sizes.enumerated() {
            try pair.left.send(
                Message(
                    ["Profile": "echo"],
                    body: noise(size),
                    isUrgent: index % 2 == 0,
                    isCompressed: index % 3 != 0
                ),
                tag: UInt64(index)
            )
        }
        while try pair.step() {
            for case .request(let number, let message) in pair.rightEvents {
                try pair.right.reply(
                    Message(
                        [:],
                        body: message.body,
                        isUrgent: message.isUrgent,
                        isCompressed: message.isCompressed
                    ),
                    to: number
                )
            }
            pair.rightEvents = []
        }
        for (index, size) in sizes.enumerated() {
            let answers = pair.leftEvents.filter {
                if case .response(UInt64(index), let message) = $0 {
                    message.body == noise(size)
                } else {
                    false
                }
            }
            #expect(answers.count == 1)
        }
        #expect(pair.frames.allSatisfy { $0.count <= 16_384 })
    }

    @Test func `requests are numbered in the order of their first frames`() throws {
        let pair = Pair()
        for index in 0..<20 {
            try pair.left.send(
                Message(
                    ["Profile": "\(index)"],
                    body: noise(40_000),
                    isUrgent: index % 3 == 0,
                    noReply: true
                ),
                tag: nil
            )
        }
        try pair.run()
        #expect(pair.rightEvents.count == 20)
    }

    @Test func `with an urgent message behind it an ordinary frame is small`() throws {
        let connection = BLIPConnection()
        try connection.send(Message(["Profile": "long"], body: noise(60_000)), tag: 1)
        #expect(try connection.nextFrame()?.count ?? 0 > 16_000)
        try connection.send(Message(["Profile": "quick"], body: noise(60_000), isUrgent: true), tag: 2)
        #expect(try connection.nextFrame()?.count ?? .max <= 4_096)
        #expect(try connection.nextFrame()?.count ?? 0 > 16_000)
    }

    @Test func `a long message stalls until it is acknowledged, and others go on`() throws {
        let left = BLIPConnection()
        let right = BLIPConnection()
        try left.send(Message(["Profile": "long"], body: noise(400_000)), tag: 1)
        var sent = 0
        var frames: [[UInt8]] = []
        while let frame = try left.nextFrame() {
            sent += frame.count
            frames.append(frame)
        }
        #expect((128_000..<150_000).contains(sent))
        try left.send(Message(["Profile": "short"], noReply: true), tag: nil)
        let short = try left.nextFrame()
        #expect(short != nil)
        for frame in frames + [short].compactMap({ $0 }) { try right.receive(frame) }
        #expect(right.drainEvents().count == 1)
        // More than was sent, and a message nobody sent: both ignored.
        try left.receive(FrameEncoder.acknowledgement(number: 1, type: .acknowledgeRequest, bytes: 1 << 40))
        try left.receive(FrameEncoder.acknowledgement(number: 9, type: .acknowledgeRequest, bytes: 1))
        #expect(try left.nextFrame() == nil)
        var acknowledgements = 0
        while true {
            var moved = false
            while let acknowledgement = try right.nextFrame() {
                #expect(acknowledgement[1] == 0x34)
                try left.receive(acknowledgement)
                acknowledgements += 1
                moved = true
            }
            while let frame = try left.nextFrame() {
                try right.receive(frame)
                moved = true
            }
            if !moved { break }
        }
        // 16 kB frames pass 50,000 bytes at every fourth of them.
        #expect(acknowledgements == 6)
        #expect(right.drainEvents().count == 1)
    }

    /// The number of payload bytes of all frames that a connection hands out until it stalls.
    private func drain(_ connection: BLIPConnection) throws -> UInt64 {
        var bytes: UInt64 = 0
        while let frame = try connection.nextFrame() { bytes += UInt64(frame.count - 2) }
        return bytes
    }

    private func acknowledge(_ bytes: UInt64, to connection: BLIPConnection) throws {
        try connection.receive(
            FrameEncoder.acknowledgement(number: 1, type: .acknowledgeRequest, bytes: bytes)
        )
    }

    /// `receiveAcknowledgement` that thaws whatever was acknowledged, or one byte too early.
    @Test func `a message that waits goes on only when less than its window is unacknowledged`() throws {
        let connection = BLIPConnection()
        try connection.send(Message(["Profile": "long"], body: noise(400_000)), tag: 1)
        let sent = try drain(connection)
        #expect(sent >= 128_000)
        for bytes in [0, 1, sent - 128_001, sent - 128_000] {
            try acknowledge(bytes, to: connection)
            #expect(try drain(connection) == 0, "\(bytes)")
        }
        try acknowledge(sent - 127_999, to: connection)
        // One frame fills the window again.
        let more = try drain(connection)
        #expect((1...16_384).contains(more))
        // An acknowledgement of a reply is of another message.
        try connection.receive(
            FrameEncoder.acknowledgement(number: 1, type: .acknowledgeResponse, bytes: sent + more)
        )
        #expect(try drain(connection) == 0)
        try acknowledge(sent + more, to: connection)
        #expect(try drain(connection) >= 128_000)
    }

    /// `receiveAcknowledgement` that takes the last word instead of the highest.
    @Test func `an acknowledgement that comes late takes nothing back`() throws {
        let connection = BLIPConnection()
        try connection.send(Message(["Profile": "long"], body: noise(400_000)), tag: 1)
        let sent = try drain(connection)
        try acknowledge(sent, to: connection)
        try acknowledge(50_000, to: connection)
        #expect(try drain(connection) >= 128_000)
    }

    @Test func `a streamed reply arrives in pieces and is never held whole`() throws {
        let pair = Pair()
        try pair.left.send(Message(["Profile": "getAttachment"]), tag: 5, inPieces: true)
        let content = noise(1_000_000)
        var supplied = 0
        var received: [UInt8] = []
        var isComplete = false
        while try pair.step() {
            for event in pair.rightEvents {
                switch event {
                case .request(let number, _): try pair.right.beginReply(Message(), to: number)
                case .wantsBody(let number):
                    let piece = content[supplied..<min(supplied + 65_536, content.count)]
                    supplied += piece.count
                    pair.right.supply(Array(piece), isLast: supplied == content.count, for: number)
                default: Issue.record("unexpected \(event)")
                }
            }
            pair.rightEvents = pair.right.drainEvents()
            for event in pair.rightEvents {
                guard case .wantsBody(let number) = event else { continue }
                let piece = content[supplied..<min(supplied + 65_536, content.count)]
                supplied += piece.count
                pair.right.supply(Array(piece), isLast: supplied == content.count, for: number)
            }
            pair.rightEvents = []
            #expect(pair.right.queuedBytes < 200_000)
            for case .piece(5, let bytes, let isLast) in pair.leftEvents {
                received += bytes
                isComplete = isComplete || isLast
            }
            pair.leftEvents = []
        }
        #expect(isComplete)
        #expect(received == content)
    }

    @Test(arguments: [128_000, 1 << 20])
    func `a streamed reply goes as far as its window without an acknowledgement`(_ window: UInt64) throws {
        let (asker, sender) = (BLIPConnection(), BLIPConnection())
        try asker.send(Message(["Profile": "getAttachment"]), tag: 5, inPieces: true)
        while let frame = try asker.nextFrame() { try sender.receive(frame) }
        for case .request(let number, _) in sender.drainEvents() {
            try sender.beginReply(Message(), to: number, window: window)
        }
        var (sent, isOver) = (0, false)
        while !isOver {
            for case .wantsBody(let number) in sender.drainEvents() {
                sender.supply(noise(65_536), isLast: false, for: number)
            }
            let frame = try sender.nextFrame()
            sent += frame?.count ?? 0
            isOver = frame == nil && sender.hasNothingToSend
        }
        #expect(sent >= window)
        #expect(sent < Int(window) + 17_000)
    }

    /// `receiveRequest` that accepts any higher number than the last one.
    @Test func `duplicate, skipped and finished numbers are fatal`() throws {
        for wrong in [UInt64(1), 3] {
            // Their checksums are right: only the numbers are not.
            var encoder = FrameEncoder(compressionLevel: 0)
            let receiver = BLIPConnection()
            try receiver.receive(encoder.frame(number: 1, type: .request, flags: [], payload: [0]))
            let second = try encoder.frame(number: wrong, type: .request, flags: [], payload: [0])
            #expect(throws: BLIPError.message("request \(wrong) came after request 1")) {
                try receiver.receive(second)
            }
        }
        // The first number, and one beside a request that is not whole yet.
        for (numbers, last) in [([0], 0), ([2], 0), ([1, 3], 1), ([1, 2, 4], 2), ([1, 2, 0], 2)]
            as [([UInt64], UInt64)]
        {
            var encoder = FrameEncoder(compressionLevel: 0)
            let receiver = BLIPConnection()
            for number in numbers.dropLast() {
                try receiver.receive(
                    encoder.frame(number: number, type: .request, flags: .moreComing, payload: [0])
                )
            }
            let wrong = numbers[numbers.count - 1]
            let frame = try encoder.frame(number: wrong, type: .request, flags: .moreComing, payload: [0])
            #expect(throws: BLIPError.message("request \(wrong) came after request \(last)")) {
                try receiver.receive(frame)
            }
        }
        var encoder = FrameEncoder(compressionLevel: 0)
        let answer = try encoder.frame(number: 9, type: .response, flags: [], payload: [0])
        #expect(throws: BLIPError.message("an answer to request 9, which was never sent")) {
            try BLIPConnection().receive(answer)
        }
    }

    @Test func `a frame that is left out breaks the running checksum`() throws {
        let left = BLIPConnection()
        for _ in 0..<3 { try left.send(Message(["Profile": "x"], noReply: true), tag: nil) }
        let right = BLIPConnection()
        try right.receive(try #require(try left.nextFrame()))
        _ = try left.nextFrame()
        let third = try #require(try left.nextFrame())
        #expect(throws: BLIPError.checksum) { try right.receive(third) }
    }

    @Test func `frames that inflate to any size are whole, and so are those after them`() throws {
        var encoder = FrameEncoder(compressionLevel: 6)
        var decoder = FrameDecoder(largestFrame: 1 << 20)
        // A frame of a few bytes that inflates to so many fills the room that it was given, once exactly.
        for size in Array(480...700) + [4_096, 65_536, 200_000] {
            let payload = [UInt8](repeating: UInt8(size % 7), count: size)
            let frame = try encoder.frame(
                number: 1,
                type: .request,
                flags: .compressed,
                payload: payload[...]
            )
            let decoded = try #require(try decoder.decode(frame))
            #expect(decoded.payload.elementsEqual(payload), "\(size)")
        }
    }

    @Test func `an empty compressed frame leaves the inflater alone`() throws {
        var encoder = FrameEncoder(compressionLevel: 6)
        var frames = [
            try encoder.frame(
                number: 1,
                type: .request,
                flags: [.compressed, .moreComing],
                payload: [0, 1, 2]
            ),
            try encoder.frame(number: 1, type: .request, flags: [.compressed], payload: []),
            try encoder.frame(number: 2, type: .request, flags: [.compressed], payload: [0, 7]),
        ]
        #expect(frames[1][1] == 0, "we never mark an empty payload as compressed")
        frames[1][1] = 0x08
        let connection = BLIPConnection()
        for frame in frames { try connection.receive(frame) }
        #expect(connection.drainEvents().count == 2)
    }

    @Test func `properties past their limit are refused before sending and on receipt`() throws {
        let connection = BLIPConnection()
        let large = Message(["Profile": "x", "y": String(repeating: "z", count: 102_400)])
        #expect(throws: BLIPError.tooLarge("102413 bytes of properties")) {
            try connection.send(large, tag: nil)
        }
        #expect(connection.hasNothingToSend)
        var payload: [UInt8] = []
        payload.appendVarInt(102_413)
        var encoder = FrameEncoder(compressionLevel: 0)
        let frame = try encoder.frame(number: 1, type: .request, flags: [], payload: payload[...])
        #expect(throws: BLIPError.tooLarge("102413 bytes of properties")) { try connection.receive(frame) }
    }

    @Test func `a decompression bomb ends in an error within its bound`() throws {
        var encoder = FrameEncoder(compressionLevel: 9)
        let bomb = try encoder.frame(
            number: 1,
            type: .request,
            flags: [.compressed],
            payload: [UInt8](repeating: 0, count: 40 << 20)[...]
        )
        #expect(throws: BLIPError.tooLarge("an inflated frame")) { try BLIPConnection().receive(bomb) }
    }

    @Test func `disconnecting names every request without an answer, once`() throws {
        let pair = Pair()
        for tag in UInt64(1)...3 { try pair.left.send(Message(["Profile": "x"]), tag: tag) }
        try pair.left.send(Message(["Profile": "x"], noReply: true), tag: nil)
        _ = try pair.left.nextFrame()
        #expect(pair.left.disconnect() == [1, 2, 3])
        #expect(pair.left.disconnect() == [])
    }

    @Test func `arbitrary bytes never trap`() {
        var state: UInt64 = 99
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        let seeds = [VectorTests.a1, VectorTests.a3, VectorTests.b2, VectorTests.c1].map(VectorTests.bytes)
        for _ in 0..<60_000 {
            let connection = BLIPConnection()
            for _ in 0..<3 {
                var frame = seeds[random(seeds.count)]
                for _ in 0..<random(5) { frame[random(frame.count)] = UInt8(random(256)) }
                if random(4) == 0 { frame.removeLast(random(frame.count)) }
                if (try? connection.receive(frame)) == nil { break }
            }
        }
    }
}
