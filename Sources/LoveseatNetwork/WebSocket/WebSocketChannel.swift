import LoveseatCore
import LoveseatModel
import LoveseatReplication
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import NIOWebSocket

/// A WebSocket connection that carries BLIP frames, one in each binary message (blip.md §2).
final class WebSocketChannel: MessageChannel {
    /// Received bytes that nobody has taken before reading stops.
    private static let receiveLimit = 256 << 10

    private let channel: any Channel
    private let mailbox: Mailbox
    private let handler: NIOLoopBound<WebSocketHandler>

    private init(channel: any Channel, mailbox: Mailbox, handler: NIOLoopBound<WebSocketHandler>) {
        self.channel = channel
        self.mailbox = mailbox
        self.handler = handler
    }

    /// Puts the WebSocket handlers at the end of a channel's pipeline. Called on its event loop.
    static func install(on channel: any Channel, isClient: Bool, heartbeat: Double) throws -> WebSocketChannel
    {
        let relay = Relay()
        let mailbox = Mailbox(limit: receiveLimit) { relay.resume() }
        let handler = WebSocketHandler(
            mailbox: mailbox,
            isClient: isClient,
            heartbeat: .milliseconds(Int64(min(heartbeat, 1e9) * 1_000))
        )
        let bound = NIOLoopBound(handler, eventLoop: channel.eventLoop)
        relay.target.withLockedValue { $0 = (channel.eventLoop, bound) }
        try channel.pipeline.syncOperations.addHandlers([
            ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: WebSocketHandler.largestMessage)),
            handler,
        ])
        return WebSocketChannel(channel: channel, mailbox: mailbox, handler: bound)
    }

    /// WebSocket frames, without a handshake, on a connected socket that it takes over.
    static func adopting(_ descriptor: Int32, isClient: Bool, heartbeat: Double) async throws
        -> WebSocketChannel
    {
        let installed = NIOLockedValueBox<WebSocketChannel?>(nil)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let webSocket = try install(on: channel, isClient: isClient, heartbeat: heartbeat)
                    installed.withLockedValue { $0 = webSocket }
                }
            }
            .withConnectedSocket(descriptor).get()
        guard let webSocket = installed.withLockedValue({ $0 }) else {
            try await channel.close()
            throw LoveseatError(.webSocketAbnormalClose, "the connection ended before it began")
        }
        return webSocket
    }

    /// Takes the word that there is room from whatever thread to the event loop.
    private final class Relay: Sendable {
        let target = NIOLockedValueBox<(any EventLoop, NIOLoopBound<WebSocketHandler>)?>(nil)

        func resume() {
            guard let (loop, handler) = target.withLockedValue({ $0 }) else { return }
            loop.execute { handler.value.resumeReading() }
        }
    }

    func send(_ messages: [[UInt8]]) async throws {
        guard !messages.isEmpty else { return }
        let promise = channel.eventLoop.makePromise(of: Void.self)
        channel.eventLoop.execute { self.handler.value.send(messages, promise: promise) }
        do { try await promise.futureResult.get() } catch { throw LoveseatError(network: error) }
    }

    func receive() async throws -> [[UInt8]]? { try await mailbox.receive() }

    func close(code: Int, reason: String) async {
        channel.eventLoop.execute { self.handler.value.sendClose(code, reason) }
        // The handler gives up on a peer that does not answer.
        try? await channel.closeFuture.get()
    }
}
