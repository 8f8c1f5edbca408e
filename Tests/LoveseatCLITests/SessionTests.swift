import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

/// `--session` on the command line, and what goes over the wire for it.
struct SessionTests {
    /// Refuses every connection, and keeps what it was sent.
    private final class Refusing: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        let heard: NIOLockedValueBox<String>

        init(_ heard: NIOLockedValueBox<String>) { self.heard = heard }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let text = String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
            heard.withLockedValue { $0 += text }
            guard text.hasSuffix("\r\n\r\n") else { return }
            let answer = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
            context.close(promise: nil)
        }
    }

    @Test(arguments: [
        ("abc", "Cookie: SyncGatewaySession=abc\r\n"), ("Mine=abc=", "Cookie: Mine=abc=\r\n"), ("", nil),
        ("Mine=", nil), ("=abc", nil),
    ])
    func `a session goes in the cookie of its name, and an empty one is wrong usage`(
        _ session: String,
        _ cookie: String?
    ) async throws {
        let folder = try CommandLineFolder()
        try folder.run("create", "a")
        let heard = NIOLockedValueBox("")
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Refusing(heard))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let url = "ws://127.0.0.1:\(server.localAddress?.port ?? 0)/db"
        let outcome = try folder.run("pull", "a", url, "--session", session)
        try await server.close()
        guard let cookie else {
            #expect(outcome.status == 64)
            #expect(heard.withLockedValue { $0.isEmpty })
            return
        }
        #expect(outcome.status == 77)
        #expect(outcome.errors.contains("no such database, wrong user or password, or a disabled user"))
        #expect(heard.withLockedValue { $0.contains(cookie) })
    }
}
