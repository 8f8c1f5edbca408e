import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import Testing

/// Versions of TLS, and what is offered over it.
struct ListenerTLSTests {
    private func serve(
        _ scratch: Scratch,
        _ minimum: ListenerTLSVersion?
    ) async throws -> CouchDBListener {
        var configuration = CouchDBListenerConfiguration(database: try scratch.database("main"))
        configuration.networkInterface = "127.0.0.1"
        configuration.identityStore = FileIdentityStore(
            folder: URL(filePath: scratch.path).appending(path: "identities")
        )
        if let minimum { configuration.minimumTLSVersion = minimum }
        configuration.authenticator = ListenerPasswordAuthenticator(secret: { _ in .password("secret") })
        let listener = CouchDBListener(configuration)
        try await listener.start()
        return listener
    }

    /// Sends a request with one version of TLS; returns the answer, or nil if the handshake fails.
    private func request(_ listener: CouchDBListener, _ version: NIOSSL.TLSVersion) async throws -> String? {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.minimumTLSVersion = version
        configuration.maximumTLSVersion = version
        let context = try NIOSSLContext(configuration: configuration)
        let answer = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String?.self)
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([
                        try NIOSSLClientHandler(context: context, serverHostname: nil), Collector(answer),
                    ])
                }
            }
        let channel = try await bootstrap.connect(
            host: "127.0.0.1",
            port: Int(try #require(listener.port))
        ).get()
        let text = "GET /main/_changes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
        let found = try await answer.futureResult.get()
        try? await channel.close().get()
        return found
    }

    @Test func `TLS 1_0 is for listeners that allow it`() async throws {
        let scratch = try Scratch()
        let strict = try await serve(scratch, nil)
        for version in [NIOSSL.TLSVersion.tlsv1, .tlsv11] {
            #expect(try await request(strict, version) == nil)
        }
        for version in [NIOSSL.TLSVersion.tlsv12, .tlsv13] {
            #expect(try await request(strict, version)?.hasPrefix("HTTP/1.1 401") == true)
        }
        await strict.stop()
        let lenient = try await serve(scratch, .tlsv10)
        for version in [NIOSSL.TLSVersion.tlsv1, .tlsv11, .tlsv12, .tlsv13] {
            #expect(try await request(lenient, version)?.hasPrefix("HTTP/1.1 401") == true, "\(version)")
        }
        await lenient.stop()
    }

    @Test func `over TLS Basic is offered and Digest is not`() async throws {
        let scratch = try Scratch()
        let listener = try await serve(scratch, nil)
        let answer = try #require(try await request(listener, .tlsv13)).lowercased()
        #expect(answer.contains("www-authenticate: basic "))
        #expect(!answer.contains("digest"))
        await listener.stop()
    }
}

/// Collects what comes until the connection ends.
private final class Collector: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private let answer: EventLoopPromise<String?>
    private let text = Mutex("")

    init(_ answer: EventLoopPromise<String?>) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        text.withLock { $0 += String(buffer: unwrapInboundIn(data)) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        let all = text.withLock { $0 }
        answer.succeed(all.isEmpty ? nil : all)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
