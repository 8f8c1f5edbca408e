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
        let mailbox = Mailbox(limit: .max) {}
        let texts = Mailbox(limit: .max) {}

        init(isClient: Bool = false, acceptsText: Bool = false) throws {
            var settings = WebSocketSettings(isClient: isClient, heartbeat: 300)
            settings.acceptsText = acceptsText
            settings.largestMessage = 200
            channel = EmbeddedChannel(handlers: [
                ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: 200)),
                WebSocketHandler(mailbox: mailbox, texts: texts, settings: settings),
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
        #expect { _ = try end.mailbox.take() } throws: { ($0 as? LoveseatError)?.code.value == 10_000 + code }
    }

    @Test func `a server must not mask`() throws {
        let end = try End(isClient: true)
        try end.receive([0x82, 0x80] + Self.mask)
        #expect { _ = try end.mailbox.take() } throws: { ($0 as? LoveseatError)?.code.value == 11_002 }
    }

    @Test func `text is taken where it is wanted, and has to be UTF-8`() throws {
        let end = try End(acceptsText: true)
        try end.receive([0x01, 0x81] + Self.mask + [0xC3] + [0x80, 0x81] + Self.mask + [0xA9])
        #expect(try end.texts.take() == [Array("é".utf8)])
        try end.receive([0x81, 0x81] + Self.mask + [0xC3])
        #expect(throws: LoveseatError.self) { try end.texts.take() }
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
        #expect(try end.mailbox.take() == nil)
        #expect(try end.sent() == [0x88, 2, 0x03, 0xE8])
        #expect(!end.channel.isActive)
    }
}
