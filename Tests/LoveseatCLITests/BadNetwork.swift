import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A network between two processes that does what networks do: delay, dribble, break, and deliver twice.
final class BadNetwork: Sendable {
    enum Mood: Hashable {
        case fair
        /// Breaks the connection when so many messages have gone by in both directions together, in the middle of the
        /// next one or before it.
        case cut(afterMessages: Int, isInside: Bool)
        /// Holds everything back for so many milliseconds.
        case slow(Int64)
        /// Delivers so many bytes at a time.
        case dribble(Int)
        /// Opens a second connection that says all that the client says, and answers to nobody.
        case double
    }

    let port: Int
    let mood = NIOLockedValueBox(Mood.fair)
    let target = NIOLockedValueBox(0)
    /// The messages of the last connection.
    let messages = NIOLockedValueBox(0)
    private let channel: any Channel

    init() async throws {
        let (mood, target, messages) = (mood, target, messages)
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                messages.withLockedValue { $0 = 0 }
                let (mood, port) = (mood.withLockedValue { $0 }, target.withLockedValue { $0 })
                func connect() -> EventLoopFuture<any Channel> {
                    ClientBootstrap(group: client.eventLoop).channelOption(.autoRead, value: false)
                        .connect(host: "127.0.0.1", port: port)
                }
                let shadow =
                    mood == .double
                    ? connect().map { Optional($0) } : client.eventLoop.makeSucceededFuture(nil)
                return connect().and(shadow).flatMapThrowing { server, shadow in
                    let count = NIOLoopBoundBox(0, eventLoop: client.eventLoop)
                    let forth = Relay(to: server, and: shadow, mood: mood, count: count, messages: messages)
                    let back = Relay(to: client, and: nil, mood: mood, count: count, messages: messages)
                    try client.pipeline.syncOperations.addHandler(forth)
                    try server.pipeline.syncOperations.addHandler(back)
                    _ = shadow?.setOption(.autoRead, value: true)
                    _ = server.setOption(.autoRead, value: true)
                    client.closeFuture.whenComplete { _ in shadow?.close(promise: nil) }
                }.map { _ = client.setOption(.autoRead, value: true) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    deinit { channel.close(promise: nil) }

    /// Passes bytes on in one direction.
    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let next: any Channel
        private let shadow: (any Channel)?
        private let mood: Mood
        private let count: NIOLoopBoundBox<Int>
        private let messages: NIOLockedValueBox<Int>
        private var counter = MessageCounter()
        private var isBroken = false

        init(
            to next: any Channel,
            and shadow: (any Channel)?,
            mood: Mood,
            count: NIOLoopBoundBox<Int>,
            messages: NIOLockedValueBox<Int>
        ) {
            (self.next, self.shadow, self.mood, self.count, self.messages) = (
                next, shadow, mood, count, messages
            )
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !isBroken else { return }
            let bytes = Array(unwrapInboundIn(data).readableBytesView)
            var start = 0
            for end in counter.ends(in: bytes) {
                count.value += 1
                messages.withLockedValue { $0 += 1 }
                if case .cut(let limit, let isInside) = mood, count.value > limit {
                    // Up to the beginning of this message, or half of it.
                    isBroken = true
                    write(Array(bytes[..<(isInside ? (start + end) / 2 : start)]), context)
                    next.close(promise: nil)
                    return context.close(promise: nil)
                }
                start = end
            }
            write(bytes, context)
        }

        private func write(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
            let (next, shadow) = (next, shadow)
            let buffer = ByteBuffer(bytes: bytes)
            switch mood {
            case .slow(let milliseconds):
                context.eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
                    next.writeAndFlush(buffer, promise: nil)
                }
            case .dribble(let size):
                for start in stride(from: 0, to: bytes.count, by: size) {
                    let piece = ByteBuffer(bytes: bytes[start..<min(bytes.count, start + size)])
                    next.writeAndFlush(piece, promise: nil)
                }
            default: next.writeAndFlush(buffer, promise: nil)
            }
            shadow?.writeAndFlush(buffer, promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            guard case .slow(let milliseconds) = mood else { return next.close(promise: nil) }
            let next = next
            context.eventLoop.scheduleTask(in: .milliseconds(milliseconds + 1)) { next.close(promise: nil) }
        }
    }

    /// Finds the ends of HTTP heads and WebSocket messages in a stream.
    struct MessageCounter {
        private var head: [UInt8] = []
        private var isInHead = true
        private var frame: [UInt8] = []
        private var bodyLeft = 0

        /// Where messages end in this piece.
        mutating func ends(in bytes: [UInt8]) -> [Int] {
            var ends: [Int] = []
            var index = 0
            while index < bytes.count {
                if isInHead {
                    head.append(bytes[index])
                    index += 1
                    if head.suffix(4) == Array("\r\n\r\n".utf8)[...] {
                        isInHead = false
                        ends.append(index)
                    }
                } else if bodyLeft > 0 {
                    let count = min(bodyLeft, bytes.count - index)
                    bodyLeft -= count
                    index += count
                    if bodyLeft == 0 { ends.append(index) }
                } else {
                    frame.append(bytes[index])
                    index += 1
                    guard let length = Self.bodyLength(frame) else { continue }
                    frame = []
                    bodyLeft = length
                    if length == 0 { ends.append(index) }
                }
            }
            return ends
        }

        /// The bytes that follow a frame's header, once it is whole.
        private static func bodyLength(_ header: [UInt8]) -> Int? {
            guard header.count >= 2 else { return nil }
            let (short, mask) = (Int(header[1] & 0x7F), header[1] & 0x80 != 0 ? 4 : 0)
            let extra = short == 127 ? 8 : short == 126 ? 2 : 0
            guard header.count == 2 + extra + mask else { return nil }
            return extra == 0 ? short : header[2..<2 + extra].reduce(0) { $0 << 8 | Int($1) }
        }
    }
}
