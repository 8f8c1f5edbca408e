import LoveseatAssertions
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import NIOConcurrencyHelpers
package import NIOCore
import NIOPosix
import NIOWebSocket

/// A WebSocket connection that carries BLIP frames, one in each binary message.
package final class WebSocketChannel: MessageChannel {
    /// The number of received bytes that were not consumed at which reading stops.
    private static let receiveLimit = 256 << 10

    private let channel: any Channel
    private let mailbox: Mailbox
    /// Nil if text messages are not accepted.
    private let texts: Mailbox?
    private let handler: NIOLoopBound<WebSocketHandler>

    private init(
        channel: any Channel,
        mailbox: Mailbox,
        texts: Mailbox?,
        handler: NIOLoopBound<WebSocketHandler>
    ) {
        self.channel = channel
        self.mailbox = mailbox
        self.texts = texts
        self.handler = handler
    }

    /// Puts the WebSocket handlers at the end of a channel's pipeline. Called on its event loop.
    package static func install(on channel: any Channel, _ settings: WebSocketSettings) throws
        -> WebSocketChannel
    {
        let relay = Relay()
        let mailbox = Mailbox(limit: receiveLimit) { relay.resume() }
        let texts = settings.acceptsText ? Mailbox(limit: receiveLimit) { relay.resume() } : nil
        let handler = WebSocketHandler(mailbox: mailbox, texts: texts, settings: settings)
        let bound = NIOLoopBound(handler, eventLoop: channel.eventLoop)
        relay.target.withLockedValue { $0 = (channel.eventLoop, bound) }
        try channel.pipeline.syncOperations.addHandlers([
            ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: settings.maximumMessageSize)),
            handler,
        ])
        return WebSocketChannel(channel: channel, mailbox: mailbox, texts: texts, handler: bound)
    }

    /// WebSocket frames, without a handshake, on a connected socket that it takes over.
    static func adopting(_ descriptor: Int32, _ settings: WebSocketSettings) async throws -> WebSocketChannel
    {
        let installed = NIOLockedValueBox<WebSocketChannel?>(nil)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let webSocket = try install(on: channel, settings)
                    installed.withLockedValue { $0 = webSocket }
                }
            }
            .withConnectedSocket(descriptor).get()
        guard let webSocket = installed.withLockedValue({ $0 }) else {
            try await channel.close()
            throw LoveseatError(.webSocketAbnormalClose, "the connection ended before it was ready")
        }
        return webSocket
    }

    /// Reports from any thread to the event loop that there is room.
    private final class Relay: Sendable {
        let target = NIOLockedValueBox<(any EventLoop, NIOLoopBound<WebSocketHandler>)?>(nil)

        func resume() {
            guard let (loop, handler) = target.withLockedValue({ $0 }) else {
                return impossible("a mailbox was filled before its handler was there")
            }
            loop.execute { handler.value.resumeReading() }
        }
    }

    package func send(_ messages: [[UInt8]]) async throws { try await send(messages, as: .binary) }

    package func receive() async throws -> [[UInt8]]? { try await mailbox.receive() }

    /// Sends text messages, in UTF-8. Replication has none: they are there for the Autobahn test-suite.
    package func sendText(_ messages: [[UInt8]]) async throws { try await send(messages, as: .text) }

    /// The text messages that have arrived, at least one, if the settings accept them; nil and errors as for
    /// ``receive()``.
    package func receiveText() async throws -> [[UInt8]]? { try await texts?.receive() }

    private func send(_ messages: [[UInt8]], as opcode: WebSocketOpcode) async throws {
        if messages.isEmpty { return }
        let promise = channel.eventLoop.makePromise(of: Void.self)
        channel.eventLoop.execute { self.handler.value.send(messages, as: opcode, promise: promise) }
        do { try await promise.futureResult.value() } catch { throw LoveseatError(network: error) }
    }

    package func close(code: Int, reason: String) async {
        channel.eventLoop.execute { self.handler.value.sendClose(code, reason) }
        // The handler closes the connection to a peer that does not answer. One that ends with an error is closed, too.
        try? await channel.closeFuture.value()
    }
}

extension EventLoopFuture where Value: Sendable {
    /// The future's value. The task goes on by way of the executor that it prefers.
    fileprivate func value() async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            whenComplete { continuation.resume(with: $0) }
        }
    }
}
