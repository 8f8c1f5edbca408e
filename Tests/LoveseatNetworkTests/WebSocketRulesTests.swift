import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import NIOCore
import NIOEmbedded
import NIOWebSocket
import Testing

/// What RFC 6455 asks of an endpoint, on top of the Autobahn test-suite (scripts/autobahn.sh).
struct WebSocketRulesTests {
    /// One end of a WebSocket, without a network.
    private struct End {
        let channel: EmbeddedChannel
        let handler: WebSocketHandler
        let mailbox = Mailbox(limit: .max) {}
        let texts = Mailbox(limit: .max) {}

        init(isClient: Bool = false, acceptsText: Bool = false) throws {
            var settings = WebSocketSettings(isClient: isClient, heartbeat: 300)
            settings.maximumMessageSize = 200
            handler = WebSocketHandler(
                mailbox: mailbox,
                texts: acceptsText ? texts : nil,
                settings: settings
            )
            channel = EmbeddedChannel(handlers: [
                ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: 200)), handler,
            ])
            try channel.connect(to: SocketAddress(unixDomainSocketPath: "x")).wait()
        }

        func receive(_ bytes: [UInt8]) throws { try channel.writeInbound(ByteBuffer(bytes: bytes)) }

        func sent() throws -> [UInt8] {
            var sent: [UInt8] = []
            while let data = try channel.readOutbound(as: ByteBuffer.self) { sent += data.readableBytesView }
            return sent
        }
    }

    private static let mask: [UInt8] = [0, 0, 0, 0]

    @Test(
        arguments: [
            ("no mask", [0x82, 1, 0], 1002),
            ("a reserved bit", [0xC2, 0x80] + mask, 1002),
            ("an unknown kind", [0x83, 0x80] + mask, 1002),
            ("a continuation of nothing", [0x80, 0x80] + mask, 1002),
            ("a message within another", [0x02, 0x80] + mask + [0x82, 0x80] + mask, 1002),
            ("a ping in fragments", [0x09, 0x80] + mask, 1002),
            ("a long ping", [0x89, 0xFE, 0, 126] + mask + [UInt8](repeating: 0, count: 126), 1002),
            ("half a code", [0x88, 0x81] + mask + [3], 1002),
            ("a code that is never sent", [0x88, 0x82] + mask + [0x03, 0xED], 1002),
            ("a reason that is no text", [0x88, 0x83] + mask + [0x03, 0xE8, 0xFF], 1007),
            ("a text", [0x81, 0x81] + mask + [0x61], 1003),
            ("a long frame", [0x82, 0xFE, 0, 201] + mask, 1009),
            (
                "a long message",
                ([0x02, 0xFE, 0, 150] + mask + [UInt8](repeating: 0, count: 150))
                    + ([0x80, 0xFE, 0, 150] + mask + [UInt8](repeating: 0, count: 150)), 1009
            ),
        ] as [(String, [UInt8], Int)]
    )
    func `a client that breaks a rule is told so`(_ name: String, _ bytes: [UInt8], _ code: Int) throws {
        let end = try End()
        try? end.receive(bytes)
        let sent = try end.sent()
        #expect(sent.first == 0x88)
        #expect(sent.dropFirst(2).prefix(2).elementsEqual([UInt8(code >> 8), UInt8(code & 255)]))
        #expect { _ = try end.mailbox.dequeueMessages() } throws: {
            ($0 as? LoveseatError)?.code.value == 10_000 + code
        }
    }

    /// blip.md §14, vector A1, and as D1 frames it.
    private static func bytes(_ text: String) -> [UInt8] {
        text.split(separator: " ").compactMap { UInt8($0, radix: 16) }
    }

    private static let plain = bytes(
        "01 00 25 50 72 6f 66 69 6c 65 00 67 65 74 43 68 65 63 6b 70 6f 69 6e 74 00 63 6c 69 65 6e 74 00 63 70 2d 54 45 53 54 00 31 fd d6 6a"
    )
    private static let masked = bytes(
        "82 ac 37 fa 21 3d 36 fa 04 6d 45 95 47 54 5b 9f 21 5a 52 8e 62 55 52 99 4a 4d 58 93 4f 49 37 99 4d 54 52 94 55 3d 54 8a 0c 69 72 a9 75 3d 06 07 f7 57"
    )

    @Test func `B31: frames are those of the specification's vectors, in whatever pieces`() throws {
        for size in [1, 3, 50] {
            let end = try End()
            for start in stride(from: 0, to: Self.masked.count, by: size) {
                try end.receive(Array(Self.masked[start..<min(start + size, Self.masked.count)]))
            }
            #expect(try end.mailbox.dequeueMessages() == [Self.plain])
        }
        let (server, client) = (try End(), try End(isClient: true))
        for end in [server, client] {
            let promise = end.channel.eventLoop.makePromise(of: Void.self)
            end.handler.send([Self.plain], as: .binary, promise: promise)
            try promise.futureResult.wait()
        }
        #expect(try server.sent() == [0x82, 0x2C] + Self.plain)
        let sent = try client.sent()
        #expect(sent.prefix(2) == [0x82, 0xAC])
        let unmasked = sent.dropFirst(6).enumerated().map { $1 ^ sent[2 + $0 % 4] }
        #expect(unmasked == Self.plain)
    }

    @Test func `masked messages of every length arrive as they were, also in fragments`() throws {
        let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        func frame(_ head: UInt8, _ payload: ArraySlice<UInt8>) -> [UInt8] {
            [head, 0x80 | UInt8(payload.count)] + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
        }
        for count in 0...100 {
            let message = (0..<count).map { UInt8($0 * 7 & 255) }
            let end = try End()
            try end.receive(frame(0x82, message[...]))
            let (start, rest) = (message.prefix(count / 3), message.dropFirst(count / 3))
            try end.receive(frame(0x02, start) + frame(0x80, rest))
            #expect(try end.mailbox.dequeueMessages() == [message, message])
        }
    }

    @Test func `a server must not mask`() throws {
        let end = try End(isClient: true)
        try end.receive([0x82, 0x80] + Self.mask)
        #expect { _ = try end.mailbox.dequeueMessages() } throws: {
            ($0 as? LoveseatError)?.code.value == 11_002
        }
    }

    @Test func `text is taken where it is wanted, and has to be UTF-8`() throws {
        let end = try End(acceptsText: true)
        try end.receive([0x01, 0x81] + Self.mask + [0xC3] + [0x80, 0x81] + Self.mask + [0xA9])
        #expect(try end.texts.dequeueMessages() == [Array("é".utf8)])
        try end.receive([0x81, 0x81] + Self.mask + [0xC3])
        let error = #expect(throws: LoveseatError.self) { try end.texts.dequeueMessages() }
        #expect(error?.code.value == 11_007)
    }

    @Test func `a peer that pings and does not read is answered once`() throws {
        let end = try End()
        end.channel.isWritable = false
        for number in 0..<100 { try end.receive([0x89, 0x81] + Self.mask + [UInt8(number)]) }
        #expect(try end.sent().isEmpty)
        end.channel.isWritable = true
        end.channel.pipeline.fireChannelWritabilityChanged()
        #expect(try end.sent() == [0x8A, 1, 99])
    }

    @Test func `no code is a normal end, and is answered as one`() throws {
        let end = try End()
        try end.receive([0x88, 0x80] + Self.mask)
        #expect(try end.mailbox.dequeueMessages() == nil)
        #expect(try end.sent() == [0x88, 2, 0x03, 0xE8])
        #expect(!end.channel.isActive)
    }
}
