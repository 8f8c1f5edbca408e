import LoveseatBLIP
import LoveseatNetwork
import NIOCore
import NIOPosix
import Testing

/// What the command line advises when a gateway refuses what it asks for.
struct GatewayAdviceTests {
    /// Accepts any WebSocket, and answers requests as a test wants.
    private final class Gateway: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let refusals: [String: ReplyError]
        private let connection = BLIPConnection()
        private var bytes: [UInt8] = []
        private var isOpen = false

        /// `refusals`: the answers to requests by their profile; all others are accepted.
        init(_ refusals: [String: ReplyError]) { self.refusals = refusals }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes += unwrapInboundIn(data).readableBytesView
            if !isOpen { open(context) }
            guard isOpen else { return }
            do {
                while let frame = takeFrame() { try connection.receive(frame) }
                for case .request(let number, let message) in connection.drainEvents() where !message.noReply
                {
                    if let refusal = refusals[message.profile] {
                        try connection.reply(refusal, to: number)
                    } else {
                        try connection.reply(Message(), to: number)
                    }
                }
                while let frame = try connection.nextFrame() { send(frame, context) }
            } catch { context.close(promise: nil) }
        }

        private func open(_ context: ChannelHandlerContext) {
            let text = String(decoding: bytes, as: UTF8.self)
            guard text.hasSuffix("\r\n\r\n") else { return }
            bytes = []
            isOpen = true
            let field = "Sec-WebSocket-Key: "
            let line = text.split(separator: "\r\n").first { $0.hasPrefix(field) } ?? ""
            let accept = UpgradeHeaders.accept(key: String(line.dropFirst(field.count)))
            let answer = """
                HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Accept: \(accept)\r\nSec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\r\n
                """
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }

        /// The next binary message; others are skipped. A client's are masked.
        private func takeFrame() -> [UInt8]? {
            while bytes.count >= 6 {
                let short = Int(bytes[1] & 0x7F)
                let head = short == 126 ? 4 : 2
                let length = short == 126 ? Int(bytes[2]) << 8 | Int(bytes[3]) : short
                guard short < 127, bytes.count >= head + 4 + length else { return nil }
                let mask = bytes[head..<head + 4]
                let payload = bytes[(head + 4)...].prefix(length).enumerated()
                    .map { $0.element ^ mask[head + $0.offset % 4] }
                let isBinary = bytes[0] & 0x0F == 2
                bytes.removeFirst(head + 4 + length)
                if isBinary { return payload }
            }
            return nil
        }

        private func send(_ frame: [UInt8], _ context: ChannelHandlerContext) {
            let length =
                frame.count < 126
                ? [UInt8(frame.count)] : [126, UInt8(frame.count >> 8), UInt8(frame.count & 0xFF)]
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [0x82] + length + frame)), promise: nil)
        }
    }

    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("create", "a")
    }

    /// Pulls from a gateway that refuses requests of these profiles.
    private func pull(_ refusals: [String: ReplyError], _ arguments: String...) async throws
        -> CommandLineFolder.Outcome
    {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Gateway(refusals))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let url = "ws://127.0.0.1:\(server.localAddress?.port ?? 0)/db"
        let outcome = try folder.run(["pull", "a", url] + arguments)
        try await server.close()
        return outcome
    }

    @Test func `a list of documents that a gateway does not take with --continuous is wrong usage`()
        async throws
    {
        let refusals = [
            "getCheckpoint": ReplyError("HTTP", 404, "missing"),
            "subChanges": ReplyError("HTTP", 400, "DocIDs filter not supported for continuous subChanges"),
        ]
        let outcome = try await pull(refusals, "--continuous", "--doc-ids", "x,y")
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("--doc-ids only without --continuous"), "\(outcome.errors)")
    }

    @Test func `where a gateway has no default collection, --collections is advised`()
        async throws
    {
        let text =
            "Collection property not specified and default collection is not configured for this database"
        let outcome = try await pull(["getCheckpoint": ReplyError("HTTP", 400, text)])
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("--collections"), "\(outcome.errors)")
    }
}
