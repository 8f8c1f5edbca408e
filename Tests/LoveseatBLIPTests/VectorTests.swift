import LoveseatBLIP
import Testing

/// The vectors of blip.md §14.
@Suite struct VectorTests {
    static func bytes(_ hex: String) -> [UInt8] {
        hex.split(separator: " ").compactMap { UInt8($0, radix: 16) }
    }

    static let a1 =
        "01 00 25 50 72 6f 66 69 6c 65 00 67 65 74 43 68 65 63 6b 70 6f 69 6e 74 00 63 6c 69 65 6e 74 00 63 70 2d 54 45 53 54 00 31 fd d6 6a"
    static let a2 = "02 30 10 50 72 6f 66 69 6c 65 00 63 68 61 6e 67 65 73 00 5b 5d e6 79 1c 37"
    static let a3 =
        "03 58 12 08 28 ca 4f cb cc 49 65 48 ce 48 cc 4b 4f 2d 66 88 8e 56 32 54 d2 51 4a c9 4f 06 51 86 ba c9 29 16 06 96 49 a9 c9 c9 86 66 96 46 86 a6 06 e6 46 69 29 a6 66 e6 a9 a9 49 29 00 00 60 f7 3c 24"
    static let a4 = "07 34 cb 87 03"
    static let a5 =
        "04 00 46 50 72 6f 66 69 6c 65 00 72 65 76 00 69 64 00 64 6f 63 31 00 72 65 76 00 31 2d 63 64 38 30 39 62 65 63 63 31 36 39 32 31 35 30 37 32 66 64 35 36 37 65 65 62 64 38 62 38 64 65 00 73 65 71 75 65 6e 63 65 00 31 00 7b 22 61 22 3a 31 7d 68 55 32 53"
    static let a6 = "03 18 b2 48 b2 48 49 55 8a d5 89 56 32 82 e8 30 22 52 47 2c 00 52 9a b7 fb"
    static let a7 =
        "05 08 72 83 d9 5a 94 5a c6 90 99 c2 00 b2 0d cc 26 ac 9b a1 38 b5 b0 34 35 2f 39 95 c1 90 a1 5a 29 51 c9 ca b0 16 00 31 dd 36 de"
    static let b1 =
        "01 02 21 45 72 72 6f 72 2d 44 6f 6d 61 69 6e 00 48 54 54 50 00 45 72 72 6f 72 2d 43 6f 64 65 00 34 30 34 00 6d 69 73 73 69 6e 67 92 10 de bc"
    static let b2 =
        "03 19 52 cd 4d ac f0 c8 2c 2e c9 2f aa 64 30 35 60 48 ca c9 4f 2a 66 28 29 2a 4d 65 48 49 cd 29 49 84 b2 a3 a3 63 75 a2 95 0c 75 13 13 95 62 63 01 00 98 25 fc 56"
    static let b3 = "04 01 00 50 92 3e b0"
    static let b4 =
        "01 00 3f 50 72 6f 66 69 6c 65 00 67 65 74 41 74 74 61 63 68 6d 65 6e 74 00 64 69 67 65 73 74 00 73 68 61 31 2d 32 6a 6d 6a 37 6c 35 72 53 77 30 79 56 62 2f 76 6c 57 41 59 6b 4b 2f 59 42 77 6b 3d 00 fd 32 be 43"
    static let b5 = "ac 02 35 80 e8 07"
    static let c1 =
        "01 38 00 13 00 ec ff 10 50 72 6f 66 69 6c 65 00 63 68 61 6e 67 65 73 00 5b 5d 00 57 2f 99 f8"
    static let changesBody =
        #"[["1","doc1","1-cd809becc169215072fd567eebd8b8de"],["2","doc2","1-cd809becc169215072fd567eebd8b8de"]]"#

    private func requests(_ frames: [String]) throws -> [(UInt64, Message)] {
        let connection = BLIPConnection()
        for frame in frames { try connection.receive(Self.bytes(frame)) }
        return connection.drainEvents().compactMap {
            if case .request(let number, let message) = $0 { (number, message) } else { nil }
        }
    }

    @Test func `group A decodes in order`() throws {
        let got = try requests([Self.a1, Self.a2, Self.a3, Self.a4, Self.a5, Self.a6, Self.a7])
        #expect(got.map(\.0) == [1, 2, 4, 3, 5])
        #expect(got[0].1.properties == ["Profile": "getCheckpoint", "client": "cp-TEST"])
        #expect(got[1].1.isUrgent)
        #expect(got[1].1.noReply)
        #expect(got[1].1.body == Array("[]".utf8))
        #expect(got[2].1.properties["sequence"] == "1")
        #expect(got[2].1.body == Array("{\"a\":1}".utf8))
        #expect(String(decoding: got[3].1.body, as: UTF8.self) == Self.changesBody)
        #expect(got[4].1.properties == got[2].1.properties)
        #expect(got[4].1.body == got[2].1.body)
    }

    @Test func `group B decodes as answers`() throws {
        let connection = BLIPConnection()
        for tag in UInt64(1)...4 { try connection.send(Message(["Profile": "x"]), tag: tag) }
        while try connection.nextFrame() != nil {}
        _ = connection.drainEvents()
        for frame in [Self.b1, Self.b2, Self.b3, Self.b4, Self.b5] {
            try connection.receive(Self.bytes(frame))
        }
        let events = connection.drainEvents()
        #expect(events.count == 4)
        #expect(events[0] == .failure(1, ReplyError("HTTP", 404, "missing")))
        if case .response(3, let message) = events[1] {
            #expect(message.properties == ["maxHistory": "50", "blobs": "true", "deltas": "true"])
            #expect(String(decoding: message.body, as: UTF8.self) == #"[[],["1-aa"]]"#)
        } else {
            Issue.record("no answer to request 3")
        }
        #expect(events[2] == .response(4, Message()))
        if case .request(1, let message) = events[3] {
            #expect(message.properties["digest"] == "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=")
        } else {
            Issue.record("no request")
        }
    }

    @Test func `group C decodes`() throws {
        let got = try requests([Self.c1])
        #expect(got[0].1.body == Array("[]".utf8))
        #expect(got[0].1.noReply)
        #expect(got[0].1.isUrgent)
    }

    @Test func `encoding from scratch gives the same bytes`() throws {
        var encoder = FrameEncoder(compressionLevel: 6)
        func frame(_ number: UInt64, _ type: MessageType, _ flags: FrameFlags, _ message: Message) throws
            -> [UInt8]
        {
            try encoder.frame(number: number, type: type, flags: flags, payload: plain(message)[...])
        }
        let rev: Message = Message(
            [
                "Profile": "rev", "id": "doc1", "rev": "1-cd809becc169215072fd567eebd8b8de", "sequence": "1",
            ],
            body: Array("{\"a\":1}".utf8)
        )
        let changes = Message(["Profile": "changes"], body: Array("[]".utf8))
        #expect(
            try frame(1, .request, [], Message(["Profile": "getCheckpoint", "client": "cp-TEST"]))
                == Self.bytes(Self.a1)
        )
        #expect(try frame(2, .request, [.urgent, .noReply], changes) == Self.bytes(Self.a2))
        let long = plain(Message(["Profile": "changes"], body: Array(Self.changesBody.utf8)))
        _ = try encoder.frame(
            number: 3,
            type: .request,
            flags: [.urgent, .compressed, .moreComing],
            payload: long[..<60]
        )
        #expect(
            FrameEncoder.acknowledgement(number: 7, type: .acknowledgeRequest, bytes: 50_123)
                == Self.bytes(Self.a4)
        )
        // The checksum depends on the plain bytes only, so raw frames after compressed ones are the same too.
        #expect(try frame(4, .request, [], rev) == Self.bytes(Self.a5))

        encoder = FrameEncoder(compressionLevel: 6)
        #expect(try frame(1, .error, [], ReplyError("HTTP", 404, "missing").message) == Self.bytes(Self.b1))
        let answer = Message(
            ["maxHistory": "50", "blobs": "true", "deltas": "true"],
            body: Array("[[],[\"1-aa\"]]".utf8)
        )
        _ = try frame(3, .response, [.compressed, .urgent], answer)
        #expect(try frame(4, .response, [], Message()) == Self.bytes(Self.b3))
        let attachment = Message(["Profile": "getAttachment", "digest": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="])
        #expect(try frame(1, .request, [], attachment) == Self.bytes(Self.b4))
        #expect(
            FrameEncoder.acknowledgement(number: 300, type: .acknowledgeResponse, bytes: 128_000)
                == Self.bytes(Self.b5)
        )
    }

    private func plain(_ message: Message) -> [UInt8] {
        var bytes: [UInt8] = []
        let properties = message.properties.encoded
        bytes.appendVarInt(UInt64(properties.count))
        return bytes + properties + message.body
    }

    private func framed(_ payload: String, header: [UInt8] = [1, 0]) throws -> [UInt8] {
        var encoder = FrameEncoder(compressionLevel: 0)
        let frame = try encoder.frame(number: 1, type: .request, flags: [], payload: Self.bytes(payload)[...])
        return header + frame.dropFirst(2)
    }

    @Test func `negative vectors are fatal`() throws {
        let connection = { BLIPConnection() }
        var corrupt = Self.bytes(Self.a1)
        corrupt[corrupt.count - 1] ^= 1
        #expect(throws: BLIPError.checksum) { try connection().receive(corrupt) }
        for bit in 0..<8 * (corrupt.count - 2) {
            var flipped = Self.bytes(Self.a1)
            flipped[2 + bit / 8] ^= 1 << (bit % 8)
            #expect(throws: BLIPError.checksum) { try connection().receive(flipped) }
        }
        // The second frame of a connection comes first, and continues a checksum that this one never had.
        #expect(throws: BLIPError.checksum) { try connection().receive(Self.bytes(Self.a2)) }
        for (payload, error) in [
            ("05 61 62 63 64 65", BLIPError.message("the properties do not end with a NUL")),
            ("05 61 00", .message("it ends before its properties do")),
            ("02 61 00", .message("a property has a name and no value")),
            ("a1 a0 06 61 00", .tooLarge("102433 bytes of properties")),
        ] {
            #expect(throws: error) { try connection().receive(self.framed(payload)) }
        }
        #expect(throws: BLIPError.frame("a varint is cut off")) { try connection().receive([0x01]) }
        #expect(throws: BLIPError.frame("a varint is longer than 64 bits")) {
            try connection().receive([UInt8](repeating: 0xFF, count: 12))
        }
    }

    @Test func `what is to be ignored is ignored`() throws {
        let connection = BLIPConnection()
        for frame in ["01 03 00 01 02 03 04", "05 34 80", "05 34 01"] {
            try connection.receive(Self.bytes(frame))
        }
        try connection.receive(Self.bytes(Self.a1))
        #expect(connection.drainEvents().count == 1)
    }

    @Test(
        arguments: [
            (0, "00"), (1, "01"), (127, "7f"), (128, "80 01"), (300, "ac 02"), (16_384, "80 80 01"),
            (50_000, "d0 86 03"),
            (128_000, "80 e8 07"), (.max, "ff ff ff ff ff ff ff ff ff 01"),
        ] as [(UInt64, String)]
    )
    func `varints are those of the specification`(value: UInt64, hex: String) throws {
        var bytes: [UInt8] = []
        bytes.appendVarInt(value)
        #expect(bytes == Self.bytes(hex))
        var slice = bytes[...]
        #expect(try slice.readVarInt() == value)
    }

    @Test func `booleans are read as peers write them`() {
        for (text, expected) in [
            ("true", true), ("YES", true), ("1", true), ("7", true), ("false", false), ("NO", false),
            ("0", false), ("x", false),
        ] {
            #expect((["a": text] as MessageProperties).bool("a") == expected)
        }
        #expect(!([:] as MessageProperties).bool("a"))
        #expect((["a": "1", "a": "2"] as MessageProperties)["a"] == "1")
    }
}
