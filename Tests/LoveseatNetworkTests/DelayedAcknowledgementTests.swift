import LoveseatCore
import LoveseatNetwork
import LoveseatTesting
import NIOCore
import NIOPosix
import Testing

// Group in ./test: alone
/// Clients that leave Nagle's algorithm on, as Couchbase Lite does.
struct DelayedAcknowledgementTests {
    /// Two frames, each in a segment of its own: one that needs no answer, and one that does. Nagle's algorithm holds the second back until
    /// the first is acknowledged, and Linux would delay that by 40 ms.
    @Test func `a client that sends two small messages in a row need not wait for a delayed acknowledgement`()
        async throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("db")
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 0)
            .connect(host: "127.0.0.1", port: Int(try #require(listener.port))) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let upgrade = """
            GET /db/_blipsync HTTP/1.1\r
            Host: 127.0.0.1\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r
            Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r
            \r

            """
        // With a mask of zeros.
        let pong: [UInt8] = [0x8A, 0x81, 0, 0, 0, 0, 1]
        let ping: [UInt8] = [0x89, 0x81, 0, 0, 0, 0, 2]
        let clock = ContinuousClock()
        var waits: [Duration] = []
        try await client.executeThenClose { inbound, outbound in
            var answers = inbound.makeAsyncIterator()
            try await outbound.write(ByteBuffer(string: upgrade))
            var head = ""
            while !head.contains("\r\n\r\n"), let part = try await answers.next() {
                head += String(decoding: part.readableBytesView, as: UTF8.self)
            }
            #expect(head.hasPrefix("HTTP/1.1 101"))
            for _ in 0..<100 {
                let start = clock.now
                try await outbound.write(ByteBuffer(bytes: pong))
                try await outbound.write(ByteBuffer(bytes: ping))
                _ = try await answers.next()
                waits.append(clock.now - start)
            }
        }
        // All 100 on an idle machine. A busy one makes some wait for a processor.
        #expect(waits.count { $0 < .milliseconds(20) } >= 80, "\(waits)")
        await listener.stop()
    }
}
