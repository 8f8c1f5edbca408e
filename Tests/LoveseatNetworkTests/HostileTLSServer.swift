import LoveseatIdentity
import LoveseatModel
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import NIOSSL

/// A TLS server of an attacker: it asks for a certificate and takes any, and answers as a script says, or stands between a client
/// and a listener and reads everything.
final class HostileTLSServer: Sendable {
    enum Conduct: Sendable {
        /// Answers each request, which ends in an empty line.
        case answers(@Sendable (String) -> String)
        /// Passes everything on to a listener on this host, under the attacker's own certificate.
        case relays(port: Int)
    }

    let port: Int
    /// Everything that went through, in both directions, decrypted.
    let heard = NIOLockedValueBox("")
    private let serving: Task<Void, any Error>

    private typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

    /// `chain`: the certificates to show instead of the identity's, the first of them for its key.
    init(_ identity: TLSIdentity, showing chain: [TLSCertificate]? = nil, _ conduct: Conduct) async throws {
        let certificates = try (chain ?? identity.certs).map {
            NIOSSLCertificateSource.certificate(try NIOSSLCertificate(bytes: $0.derBytes, format: .der))
        }
        let key = NIOSSLPrivateKeySource.privateKey(try identity.sslPrivateKey())
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates,
            privateKey: key
        )
        configuration.certificateVerification = .optionalVerification
        configuration.trustRoots = .certificates([])
        let context = try NIOSSLContext(configuration: configuration)
        var ours = TLSConfiguration.makeClientConfiguration()
        ours.certificateVerification = .none
        (ours.certificateChain, ours.privateKey) = (certificates, key)
        let outgoing = try NIOSSLContext(configuration: ours)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLServerHandler(context: context) { _, answer in
                            answer.succeed(.certificateVerified)
                        }
                    )
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        port = server.channel.localAddress?.port ?? 0
        serving = Task { [heard] in
            try await server.executeThenClose { clients in
                try await withThrowingDiscardingTaskGroup { group in
                    for try await client in clients {
                        group.addTask {
                            switch conduct {
                            case .answers(let answer): try? await Self.answer(client, heard, answer)
                            case .relays(let port): try? await Self.relay(client, to: port, outgoing, heard)
                            }
                        }
                    }
                }
            }
        }
    }

    deinit { serving.cancel() }

    private static func answer(
        _ client: Connection,
        _ heard: NIOLockedValueBox<String>,
        _ answer: @Sendable (String) -> String
    ) async throws {
        try await client.executeThenClose { inbound, outbound in
            var request = ""
            for try await part in inbound {
                request += String(decoding: part.readableBytesView, as: UTF8.self)
                guard request.hasSuffix("\r\n\r\n") else { continue }
                heard.withLockedValue { [request] in $0 += request }
                try await outbound.write(ByteBuffer(string: answer(request)))
                request = ""
            }
        }
    }

    private static func relay(
        _ client: Connection,
        to port: Int,
        _ context: NIOSSLContext,
        _ heard: NIOLockedValueBox<String>
    ) async throws {
        let listener = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLClientHandler(context: context, serverHostname: nil)
                    )
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        try await client.executeThenClose { fromClient, toClient in
            try await listener.executeThenClose { fromListener, toListener in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await pass(fromClient, to: toListener, heard) }
                    group.addTask { try await pass(fromListener, to: toClient, heard) }
                    try await group.next()
                    group.cancelAll()
                }
            }
        }
    }

    private static func pass(
        _ source: NIOAsyncChannelInboundStream<ByteBuffer>,
        to target: NIOAsyncChannelOutboundWriter<ByteBuffer>,
        _ heard: NIOLockedValueBox<String>
    ) async throws {
        for try await part in source {
            heard.withLockedValue { $0 += String(decoding: part.readableBytesView, as: UTF8.self) }
            try await target.write(part)
        }
    }
}
