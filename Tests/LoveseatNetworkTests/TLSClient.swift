import LoveseatIdentity
import LoveseatModel
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import NIOSSL

/// A TLS connection that believes any server, shows a certificate, and says whatever a test wants.
final class TLSClient: Sendable {
    private let channel: any Channel
    private let collector = Collector()

    init(port: Int, as identity: TLSIdentity) async throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.certificateChain = try identity.certs.map {
            .certificate(try NIOSSLCertificate(bytes: $0.derBytes, format: .der))
        }
        configuration.privateKey = .privateKey(try identity.sslPrivateKey())
        let context = try NIOSSLContext(configuration: configuration)
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { [collector] channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
                    try pipeline.addHandler(collector.handler())
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
    }

    deinit { channel.close(promise: nil) }

    /// Sends text, and returns what the server says to it: a whole response, or nothing from a server that has hung up.
    func exchange(_ text: String) async throws -> String {
        do { try await channel.writeAndFlush(ByteBuffer(string: text)) } catch { return "" }
        return await collector.next()
    }

    /// Cuts what comes into responses.
    private final class Collector: Sendable {
        private let (responses, pushes) = AsyncStream<String>.makeStream()
        private let received = NIOLockedValueBox("")

        func handler() -> Handler { Handler(self) }

        func next() async -> String {
            for await response in responses { return response }
            return ""
        }

        func take(_ text: String) {
            received.withLockedValue { rest in
                rest += text
                while let end = rest.firstRange(of: "\r\n\r\n") {
                    let head = rest[..<end.upperBound]
                    let length =
                        head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length: ") }
                        .flatMap { Int($0.dropFirst(16)) } ?? 0
                    guard rest[end.upperBound...].utf8.count >= length else { return }
                    let body = rest[end.upperBound...].prefix(length)
                    pushes.yield(String(head + body))
                    rest = String(rest[body.endIndex...])
                }
            }
        }

        func end() { pushes.finish() }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let collector: Collector

        init(_ collector: Collector) { self.collector = collector }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            collector.take(String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self))
        }

        func channelInactive(context: ChannelHandlerContext) { collector.end() }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
