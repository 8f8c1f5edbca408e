import LoveseatAssertions
package import LoveseatCore
import LoveseatModel
import LoveseatPlatform
package import NIOCore
package import NIOWebSocket

/// Turns WebSocket frames into the messages of a ``WebSocketChannel``, on the channel's event loop.
///
/// Assembles fragments, answers pings, sends pings to a silent peer, does the closing handshake, and
/// stops reading while received messages are not consumed.
package final class WebSocketHandler: ChannelDuplexHandler {
    package typealias InboundIn = WebSocketFrame
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// How long a peer may take to answer a close frame, normally and after a violation.
    private static let (closingSeconds, failingSeconds) = (Int64(5), Int64(2))
    /// How much a peer may still send after our close frame, in bytes: about as much as was in flight.
    private static let maximumAfterClose = 4 << 20

    private let mailbox: Mailbox
    /// Nil if text messages are refused.
    private let texts: Mailbox?
    private let settings: WebSocketSettings
    private var batch: [[UInt8]] = []
    /// The message that arrives in fragments.
    private var unfinished: (isText: Bool, bytes: [UInt8])?
    /// The content of the last ping that was not answered yet, because the peer does not read.
    private var unansweredPing: [UInt8]?
    private var keys = MaskKeys()
    private var heldRead = false
    private var hasHeard = false
    private var sentClose = false
    private var bytesAfterClose = 0
    private var timer: Scheduled<Void>?
    private var closing: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    /// The connection is TCP, and acknowledges at once what it receives.
    private var isTCP = false

    package init(mailbox: Mailbox, texts: Mailbox? = nil, settings: WebSocketSettings) {
        self.mailbox = mailbox
        self.texts = texts
        self.settings = settings
    }

    private var heartbeat: TimeAmount { settings.interval }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        isTCP = context.channel.remoteAddress?.protocol.isInternet == true
        watch(for: heartbeat)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        closing?.cancel()
        self.context = nil
    }

    // MARK: Reading

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        hasHeard = true
        if sentClose, frame.opcode != .connectionClose { return ignore(frame, context) }
        guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return fail(1002, "a reserved bit is set") }
        guard (frame.maskKey == nil) == settings.isClient else {
            return fail(1002, settings.isClient ? "a frame is masked" : "a frame is not masked")
        }
        switch frame.opcode {
        case .text where texts == nil: fail(1003, "text messages are not BLIP")
        case .binary, .text, .continuation: receive(frame)
        case .ping: answer(Array(frame.unmaskedData.readableBytesView), context)
        case .pong: break
        case .connectionClose: receiveClose(frame.unmaskedData)
        default: fail(1002, "unknown frame")
        }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        acknowledgeAtOnce(context)
        deliverBatch()
        context.fireChannelReadComplete()
    }

    /// Couchbase Lite leaves Nagle's algorithm on: when it sends two small messages in a row, the second one waits until the first
    /// one is acknowledged, which Linux delays by 40 ms. The kernel forgets the option, so it is set after every read.
    private func acknowledgeAtOnce(_ context: ChannelHandlerContext) {
        #if os(Linux)
        if !isTCP { return }
        let option = ChannelOptions.Types.SocketOption(
            level: .tcp,
            name: NIOBSDSocket.Option(rawValue: TCP_QUICKACK)
        )
        // A connection that is gone, or a kernel without the option, needs none.
        try? context.channel.syncOptions?.setOption(option, value: 1)
        #endif
    }

    package func read(context: ChannelHandlerContext) {
        if mailbox.isFull || texts?.isFull == true, !sentClose { heldRead = true } else { context.read() }
    }

    /// Called when a mailbox was emptied.
    func resumeReading() {
        // No read was held back, or the connection has ended since.
        guard heldRead, let context else { return }
        heldRead = false
        context.read()
    }

    /// Counts a frame after our close frame, without reading it.
    private func ignore(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
        bytesAfterClose += frame.data.readableBytes
        if bytesAfterClose > Self.maximumAfterClose { context.close(promise: nil) }
    }

    private func receive(_ frame: WebSocketFrame) {
        guard (frame.opcode == .continuation) == (unfinished != nil) else {
            return fail(1002, "a fragment is out of order")
        }
        var message = unfinished ?? (frame.opcode == .text, [])
        unfinished = nil
        guard message.bytes.count + frame.data.readableBytes <= settings.maximumMessageSize else {
            return fail(1009, "a message is longer than \(settings.maximumMessageSize) bytes")
        }
        WebSocketFrames.append(payloadOf: frame, to: &message.bytes)
        if !frame.fin {
            unfinished = message
        } else if !message.isText {
            batch.append(message.bytes)
        } else if String(validating: message.bytes, as: UTF8.self) != nil {
            texts?.deliver([message.bytes])
        } else {
            fail(1007, "a text message is not UTF-8")
        }
    }

    private func receiveClose(_ data: ByteBuffer) {
        var data = data
        // A frame without a code means a normal end; half a code is an error.
        let code = data.readableBytes == 0 ? 1000 : data.readInteger(as: UInt16.self).map(Int.init)
        guard let code, Self.isSendable(code) else {
            return fail(1002, "a close frame with the code \(code ?? 0)")
        }
        guard let reason = String(validating: data.readableBytesView, as: UTF8.self) else {
            return fail(1007, "the reason of a close frame is not UTF-8")
        }
        // The session decides about normal ends; any other is the peer's error.
        finish(
            [1000, 1001].contains(code)
                ? nil
                : LoveseatError(.init(10_000 + code), "the peer closed the connection: \(reason) (\(code))")
        )
        sendClose(code, "")
        if !settings.isClient { context?.close(promise: nil) }
    }

    /// Whether a close frame may say the code (RFC 6455 §7.4).
    private static func isSendable(_ code: Int) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// Ends receiving. Messages that have arrived can still be read.
    private func finish(_ error: LoveseatError?) {
        deliverBatch()
        mailbox.finish(error)
        texts?.finish(error)
    }

    private func deliverBatch() {
        if !batch.isEmpty { mailbox.deliver(batch) }
        batch = []
    }

    // MARK: Writing

    /// Writes messages; the promise succeeds when they were passed to the operating system.
    package func send(_ messages: [[UInt8]], as opcode: WebSocketOpcode, promise: EventLoopPromise<Void>) {
        guard let context, !sentClose else {
            return promise.fail(LoveseatError(.webSocketAbnormalClose, "the connection is closed"))
        }
        var data = context.channel.allocator.buffer(capacity: messages.reduce(0) { $0 + $1.count + 14 })
        for message in messages {
            WebSocketFrames.append(opcode, message, masked: settings.isClient, with: &keys, to: &data)
        }
        context.writeAndFlush(wrapOutboundOut(data), promise: promise)
    }

    /// Sends a frame that is not a message.
    private func write(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        guard let context else { return impossible("a \(opcode) frame is written outside of a pipeline") }
        var data = context.channel.allocator.buffer(capacity: payload.count + 14)
        WebSocketFrames.append(opcode, payload, masked: settings.isClient, with: &keys, to: &data)
        context.writeAndFlush(wrapOutboundOut(data), promise: nil)
    }

    /// Answers a ping: only the last one, if the peer does not read (RFC 6455 §5.5.3).
    private func answer(_ ping: [UInt8], _ context: ChannelHandlerContext) {
        if context.channel.isWritable { write(.pong, ping) } else { unansweredPing = ping }
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, !sentClose, let ping = unansweredPing {
            unansweredPing = nil
            write(.pong, ping)
        }
        context.fireChannelWritabilityChanged()
    }

    // MARK: Ending

    /// Sends a close frame, once, and gives the peer a few seconds to answer.
    func sendClose(_ code: Int, _ reason: String) {
        // Both sides may close at once, and the session may close a connection that has ended.
        guard !sentClose, let context else { return }
        // Codes that must not be sent are replaced by that of a normal end.
        let sent = Self.isSendable(code) ? code : 1000
        let text = String(decoding: reason.utf8.prefix(120), as: UTF8.self)
        write(
            .connectionClose,
            [UInt8(truncatingIfNeeded: sent >> 8), UInt8(truncatingIfNeeded: sent)] + text.utf8
        )
        sentClose = true
        timer?.cancel()
        let patience = [1000, 1001].contains(sent) ? Self.closingSeconds : Self.failingSeconds
        closing = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(patience)) {
            self.context?.close(promise: nil)
        }
        // The peer's answer has to be read even if messages are not consumed.
        heldRead = false
        context.read()
    }

    /// Closes the connection because of a violation. Bytes that the peer still sends are ignored.
    private func fail(_ code: Int, _ reason: String) {
        finish(LoveseatError(.init(10_000 + code), "the peer violated the WebSocket protocol: \(reason)"))
        sendClose(code, reason)
        context?.close(mode: .output, promise: nil)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is NIOWebSocketError {
            fail((error as? NIOWebSocketError) == .invalidFrameLength ? 1009 : 1002, "\(error)")
        } else {
            finish(LoveseatError(network: error))
            context.close(promise: nil)
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        finish(LoveseatError(.webSocketAbnormalClose, "the connection broke without a WebSocket close frame"))
        context.fireChannelInactive()
    }

    // MARK: Heartbeat

    private func watch(for delay: TimeAmount) {
        // The timer may fire in the turn of the event loop in which the connection ends.
        guard let context else { return }
        hasHeard = false
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: delay) { self.checkPulse() }
    }

    private func checkPulse() {
        // While messages are not consumed nothing is read, so silence means nothing.
        if hasHeard || heldRead { return watch(for: heartbeat) }
        // The timer may fire in the turn of the event loop in which the connection ends.
        guard let context else { return }
        write(.ping, [])
        let patience = min(TimeAmount.seconds(20), max(heartbeat - .seconds(1), .milliseconds(500)))
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: patience) {
            if self.hasHeard || self.heldRead { return self.watch(for: self.heartbeat) }
            self.finish(LoveseatError(.timeout, "the peer has been silent for \(self.heartbeat)"))
            self.context?.close(promise: nil)
        }
    }
}

extension NIOBSDSocket.ProtocolFamily {
    fileprivate var isInternet: Bool { self == .inet || self == .inet6 }
}
