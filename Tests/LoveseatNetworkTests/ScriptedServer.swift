import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A TCP server that gives each connection the next of its answers, once the client has asked, and then hangs up or is
/// silent.
final class ScriptedServer: Sendable {
    let port: Int
    let requests = NIOLockedValueBox<[String]>([])
    private let channel: any Channel

    /// `answer`: what to say to the nth request, given its text; nil to hang up.
    init(hangsUp: Bool = true, answer: @escaping @Sendable (Int, String) -> String?) async throws {
        let requests = requests
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        Script(hangsUp: hangsUp, requests: requests, answer: answer)
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    deinit { channel.close(promise: nil) }

    private final class Script: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let hangsUp: Bool
        let requests: NIOLockedValueBox<[String]>
        let answer: @Sendable (Int, String) -> String?
        private var text = ""

        init(
            hangsUp: Bool,
            requests: NIOLockedValueBox<[String]>,
            answer: @escaping @Sendable (Int, String) -> String?
        ) {
            self.hangsUp = hangsUp
            self.requests = requests
            self.answer = answer
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !text.hasSuffix("\r\n\r\n") else { return }
            text += String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
            guard text.hasSuffix("\r\n\r\n") else { return }
            let number = requests.withLockedValue {
                $0.append(text)
                return $0.count
            }
            guard let reply = answer(number, text) else { return context.close(promise: nil) }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: reply)), promise: nil)
            if hangsUp { context.close(promise: nil) }
        }
    }
}
