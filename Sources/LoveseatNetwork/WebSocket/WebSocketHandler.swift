import LoveseatCore
import LoveseatModel
import NIOCore
import NIOWebSocket

/// Turns WebSocket frames into the messages of a ``WebSocketChannel``, on the channel's event loop (blip.md §2).
///
/// Puts fragments together, answers pings, asks a silent peer for a sign of life, does the closing handshake, and
/// stops reading while nobody takes what has arrived.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The largest message that is accepted, in bytes.
    static let largestMessage = 1 << 20
    private static let closingSeconds: Int64 = 5
    /// What a peer may still say after we have said goodbye, in bytes: about what was on its way.
    private static let mostAfterClose = 4 << 20

    private let mailbox: Mailbox
    private let isClient: Bool
    private let heartbeat: TimeAmount
    private var batch: [[UInt8]] = []
    private var fragments: [UInt8]?
    private var heldRead = false
    private var hasHeard = false
    private var sentClose = false
    private var bytesAfterClose = 0
    private var timer: Scheduled<Void>?
    private var closing: Scheduled<Void>?
    private var context: ChannelHandlerContext?

    init(mailbox: Mailbox, isClient: Bool, heartbeat: TimeAmount) {
        self.mailbox = mailbox
        self.isClient = isClient
        self.heartbeat = heartbeat
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        watch(for: heartbeat)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        closing?.cancel()
        self.context = nil
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        hasHeard = true
        if sentClose, frame.opcode != .connectionClose { return ignore(frame, context) }
        switch frame.opcode {
        case .binary, .continuation: receive(frame)
        case .text: fail(1003, "text messages are no BLIP")
        case .ping: write(.pong, Array(frame.unmaskedData.readableBytesView))
        case .pong: break
        case .connectionClose: receiveClose(frame.unmaskedData)
        default: fail(1002, "unknown frame")
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        deliverBatch()
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if mailbox.isFull, !sentClose { heldRead = true } else { context.read() }
    }

    /// The mailbox was emptied.
    func resumeReading() {
        guard heldRead, let context else { return }
        heldRead = false
        context.read()
    }

    /// Nobody waits for it any more.
    private func ignore(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
        bytesAfterClose += frame.data.readableBytes
        if bytesAfterClose > Self.mostAfterClose { context.close(promise: nil) }
    }

    private func receive(_ frame: WebSocketFrame) {
        guard (frame.opcode == .binary) == (fragments == nil) else { return fail(1002, "misplaced fragment") }
        let bytes = frame.unmaskedData.readableBytesView
        guard (fragments?.count ?? 0) + bytes.count <= Self.largestMessage else {
            return fail(1009, "a message is longer than \(Self.largestMessage) bytes")
        }
        if frame.fin {
            batch.append(fragments.map { $0 + bytes } ?? Array(bytes))
            fragments = nil
        } else {
            fragments = (fragments ?? []) + bytes
        }
    }

    private func receiveClose(_ data: ByteBuffer) {
        var data = data
        let code = data.readInteger(as: UInt16.self).map(Int.init) ?? 1005
        let reason = data.readString(length: min(data.readableBytes, 123)) ?? ""
        deliverBatch()
        // The normal ends are for the session to judge; any other is an error of the peer's.
        mailbox.finish(
            [1000, 1001, 1005].contains(code)
                ? nil
                : LoveseatError(.init(10_000 + code), "the peer closed the connection: \(reason) (\(code))")
        )
        sendClose(code == 1005 ? 1000 : code, "")
        if !isClient { context?.close(promise: nil) }
    }

    private func deliverBatch() {
        if !batch.isEmpty { mailbox.deliver(batch) }
        batch = []
    }

    // MARK: Writing

    /// Writes messages; the promise is kept when they are handed to the operating system.
    func send(_ messages: [[UInt8]], promise: EventLoopPromise<Void>) {
        guard let context, !sentClose else {
            return promise.fail(LoveseatError(.webSocketAbnormalClose, "the connection is closed"))
        }
        var data = context.channel.allocator.buffer(capacity: messages.reduce(0) { $0 + $1.count + 14 })
        for message in messages { WebSocketFrames.append(.binary, message, masked: isClient, to: &data) }
        context.writeAndFlush(wrapOutboundOut(data), promise: promise)
    }

    /// Sends a frame that is not a message.
    private func write(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        guard let context else { return }
        var data = context.channel.allocator.buffer(capacity: payload.count + 14)
        WebSocketFrames.append(opcode, payload, masked: isClient, to: &data)
        context.writeAndFlush(wrapOutboundOut(data), promise: nil)
    }

    // MARK: Ending

    /// Sends a close frame, once, and gives the peer a few seconds to answer.
    func sendClose(_ code: Int, _ reason: String) {
        guard !sentClose, let context else { return }
        // Codes that are not for the wire (RFC 6455 §7.4) stand for a normal end.
        let sent = [1004, 1005, 1006, 1015].contains(code) ? 1000 : code
        let text = String(decoding: reason.utf8.prefix(120), as: UTF8.self)
        write(
            .connectionClose,
            [UInt8(truncatingIfNeeded: sent >> 8), UInt8(truncatingIfNeeded: sent)] + text.utf8
        )
        sentClose = true
        timer?.cancel()
        closing = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(Self.closingSeconds)) {
            self.context?.close(promise: nil)
        }
        // The peer's answer has to be read whether or not anybody reads messages.
        heldRead = false
        context.read()
    }

    private func fail(_ code: Int, _ reason: String) {
        deliverBatch()
        mailbox.finish(
            LoveseatError(.init(10_000 + code), "the peer broke the WebSocket protocol: \(reason)")
        )
        sendClose(code, reason)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is NIOWebSocketError {
            fail((error as? NIOWebSocketError) == .invalidFrameLength ? 1009 : 1002, "\(error)")
        } else {
            mailbox.finish(LoveseatError(network: error))
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        deliverBatch()
        mailbox.finish(LoveseatError(.webSocketAbnormalClose, "the connection broke without a goodbye"))
        context.fireChannelInactive()
    }

    // MARK: Heartbeat

    private func watch(for delay: TimeAmount) {
        guard let context else { return }
        hasHeard = false
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: delay) { self.checkPulse() }
    }

    private func checkPulse() {
        // Nothing is read while nobody takes it, so that nothing was heard means nothing.
        if hasHeard || heldRead { return watch(for: heartbeat) }
        guard let context else { return }
        write(.ping, [])
        let patience = min(TimeAmount.seconds(20), max(heartbeat - .seconds(1), .milliseconds(500)))
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: patience) {
            if self.hasHeard || self.heldRead { return self.watch(for: self.heartbeat) }
            self.mailbox.finish(LoveseatError(.timeout, "the peer has been silent for \(self.heartbeat)"))
            self.context?.close(promise: nil)
        }
    }
}
