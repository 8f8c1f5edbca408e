import CZlib
import LoveseatBLIP
import Testing

/// Lines of the conformance checklist (blip.md §15) that the vectors and the other tests do not state by themselves; their
/// numbers are in the names.
@Suite struct ChecklistTests {
    private func frames(_ messages: [Message], level: Int = 6) throws -> [[UInt8]] {
        var limits = BLIPLimits()
        limits.compressionLevel = level
        let connection = BLIPConnection(limits: limits)
        for message in messages { try connection.send(message, tag: 1) }
        var frames: [[UInt8]] = []
        while let frame = try connection.nextFrame() { frames.append(frame) }
        return frames
    }

    private func header(_ frame: [UInt8]) throws -> (number: UInt64, flags: UInt64, rest: [UInt8]) {
        func varint(_ bytes: inout ArraySlice<UInt8>) throws -> UInt64 {
            var (value, shift) = (UInt64(0), UInt64(0))
            while let byte = bytes.popFirst() {
                value |= UInt64(byte & 0x7F) << shift
                if byte & 0x80 == 0 { return value }
                shift += 7
            }
            throw BLIPError.frame("no varint")
        }
        var rest = frame[...]
        let number = try varint(&rest)
        return (number, try varint(&rest), Array(rest))
    }

    private static let text = Array(String(repeating: "all work and no play ", count: 400).utf8)

    @Test func `5: what is compressed can be inflated by zlib itself, with the trailer put back`() throws {
        let messages = (0..<5).map { Message(["n": "\($0)"], body: Self.text, isCompressed: true) }
        var stream = z_stream()
        #expect(inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK)
        defer { inflateEnd(&stream) }
        for (index, frame) in try frames(messages).enumerated() {
            var input = try header(frame).rest.dropLast(4) + [0x00, 0x00, 0xFF, 0xFF]
            var output = [UInt8](repeating: 0, count: 100_000)
            let count = input.withUnsafeMutableBufferPointer { source in
                output.withUnsafeMutableBufferPointer { target in
                    stream.next_in = source.baseAddress
                    stream.avail_in = UInt32(source.count)
                    stream.next_out = target.baseAddress
                    stream.avail_out = UInt32(target.count)
                    _ = inflate(&stream, Z_SYNC_FLUSH)
                    return target.count - Int(stream.avail_out)
                }
            }
            #expect(output[..<count].suffix(Self.text.count).elementsEqual(Self.text), "message \(index)")
        }
    }

    @Test func `6: the checksum is of plain bytes, over raw and compressed frames, big-endian`() throws {
        let messages = [
            Message(["a": "1"], body: Self.text), Message(["a": "2"], body: Self.text, isCompressed: true),
        ]
        let raw = try frames(messages, level: 0).map { try header($0).rest }
        var sum: UInt = 0
        for (frame, compressed) in zip(raw, try frames(messages)) {
            let plain = Array(frame.dropLast(4))
            sum = crc32(sum, plain, UInt32(plain.count))
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * $0)) }
            #expect(Array(frame.suffix(4)) == bytes)
            #expect(Array(compressed.suffix(4)) == bytes)
        }
    }

    @Test func `7: one wrong bit anywhere after the header ends the connection`() throws {
        let message = Message(["Profile": "x"], body: Array(Self.text.prefix(60)), isCompressed: false)
        let frame = try #require(try frames([message]).first)
        for position in 2..<frame.count {
            for bit in 0..<8 {
                var wrong = frame
                wrong[position] ^= 1 << bit
                let receiver = BLIPConnection()
                #expect(throws: BLIPError.checksum) { try receiver.receive(wrong) }
            }
        }
    }

    /// A request of frames with their payloads, each compressed or not, and what a receiver makes of it.
    private func received(_ payloads: [(bytes: [UInt8], isCompressed: Bool)]) throws -> [BLIPConnection.Event]
    {
        var encoder = FrameEncoder(compressionLevel: 6)
        let connection = BLIPConnection()
        for (index, payload) in payloads.enumerated() {
            var flags: FrameFlags = payload.isCompressed ? [.compressed] : []
            if index + 1 < payloads.count { flags.insert(.moreComing) }
            try connection.receive(
                try encoder.frame(number: 1, type: .request, flags: flags, payload: payload.bytes[...])
            )
        }
        return connection.drainEvents()
    }

    @Test func `8: each frame of a message says for itself whether it is compressed`() throws {
        let (head, half) = (Array("\u{4}a\u{0}1\u{0}".utf8), Self.text)
        for order in [[true, false, true], [false, true, false], [false, false, true]] {
            let events = try received(zip([head, half, half], order).map { ($0, $1) })
            guard case .request(1, let message) = try #require(events.last) else {
                Issue.record("no request")
                continue
            }
            #expect(message.properties["a"] == "1")
            #expect(message.body == half + half)
        }
    }

    @Test(
        arguments: [
            // Without its last NUL, with a name and no value, with no NUL at all.
            ([4, 0x61, 0, 0x62, 0x63], "the properties do not end with a NUL"),
            ([2, 0x61, 0], "a property has a name and no value"),
            ([3, 0x61, 0x62, 0x63], "the properties do not end with a NUL"),
        ] as [([UInt8], String)]
    )
    func `22: properties that are no pairs are fatal`(_ payload: [UInt8], _ detail: String) {
        #expect(throws: BLIPError.message(detail)) { _ = try received([(payload, false)]) }
    }

    @Test func `22: of two values of a name the first counts`() throws {
        let events = try received([(Array("\u{8}a\u{0}1\u{0}a\u{0}2\u{0}".utf8), false)])
        guard case .request(_, let message) = try #require(events.first) else { return }
        #expect(message.properties["a"] == "1")
    }

    @Test func `9: an empty body is never sent as compressed`() throws {
        for frame in try frames([Message(["a": "1"], isCompressed: true), Message([:], isCompressed: true)]) {
            let (_, flags, rest) = try header(frame)
            if rest.count == 4 { #expect(flags & 0x08 == 0) }
        }
    }

    @Test func `11: frames of a megabyte are taken, larger ones are not`() throws {
        /// A raw frame of a request, made by hand.
        func frame(_ size: Int) -> [UInt8] {
            var payload: [UInt8] = [0]
            payload += [UInt8](repeating: 7, count: size - 4 - 2 - 1)
            let sum = crc32(0, payload, UInt32(payload.count))
            return [1, 0] + payload + (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * $0)) }
        }
        let receiver = BLIPConnection()
        try receiver.receive(frame(1 << 20))
        #expect(receiver.drainEvents().count == 1)
        #expect(throws: BLIPError.tooLarge("a frame of 1048577 bytes")) {
            try BLIPConnection().receive(frame((1 << 20) + 1))
        }
    }

    @Test func `14: every 50,000 bytes of a message are acknowledged, with the sum so far`() throws {
        let sender = BLIPConnection()
        let receiver = BLIPConnection()
        try sender.send(Message(["Profile": "x"], body: [UInt8](repeating: 1, count: 300_000)), tag: 1)
        var counts: [UInt64] = []
        var received: UInt64 = 0
        while let frame = try sender.nextFrame() {
            received += UInt64(try header(frame).rest.count)
            try receiver.receive(frame)
            while let answer = try receiver.nextFrame() {
                let (number, flags, rest) = try header(answer)
                #expect(number == 1)
                #expect(flags == 0x34)
                // The count follows as a varint.
                let count = rest.reversed().reduce(UInt64(0)) { $0 << 7 | UInt64($1 & 0x7F) }
                #expect(count - (counts.last ?? 0) >= 50_000)
                #expect(count <= received)
                counts.append(count)
                try sender.receive(answer)
            }
        }
        // Of frames of 16 kB, four make more than 50,000 bytes.
        #expect(counts.count == 4)
    }

    @Test func `16: an acknowledgement of more than was sent, or of nothing, is ignored`() throws {
        let sender = BLIPConnection()
        try sender.send(Message(["Profile": "x"], body: [UInt8](repeating: 1, count: 1_000_000)), tag: 1)
        try sender.receive([1, 0x34, 0xFF, 0xFF, 0xFF, 0x7F])
        try sender.receive([9, 0x34, 0x10])
        try sender.receive([9, 0x35, 0x10])
        var bytes = 0
        while let frame = try sender.nextFrame() { bytes += frame.count }
        // It stalls as before.
        #expect((128_000..<160_000).contains(bytes))
    }

    @Test func `19 and 20: answers are as urgent as their requests, and errors have their parts`() throws {
        let (asking, answering) = (BLIPConnection(), BLIPConnection())
        for isUrgent in [true, false] {
            try asking.send(Message(["Profile": "x"], isUrgent: isUrgent), tag: isUrgent ? 1 : 2)
        }
        while let frame = try asking.nextFrame() { try answering.receive(frame) }
        for event in answering.drainEvents() {
            guard case .request(let number, let message) = event else { continue }
            try answering.reply(ReplyError("HTTP", 409, "no"), to: number, isUrgent: message.isUrgent)
        }
        while let frame = try answering.nextFrame() {
            let (number, flags, _) = try header(frame)
            #expect((flags & 0x10 != 0) == (number == 1))
            try asking.receive(frame)
        }
        let errors = asking.drainEvents().compactMap { event -> ReplyError? in
            if case .failure(_, let error) = event { error } else { nil }
        }
        #expect(errors == [ReplyError("HTTP", 409, "no"), ReplyError("HTTP", 409, "no")])
    }
}
