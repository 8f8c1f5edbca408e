import Logging
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import NIOConcurrencyHelpers
import NIOCore
import NIOSSL

/// TLS towards clients, with one identity for all of them.
struct ListenerTLS: Sendable {
    /// Whether clients are asked for a certificate, and which are good.
    enum ClientCertificates: Sendable {
        case notAsked
        case required(@Sendable ([TLSCertificate]) async -> Bool)
        /// Those that are shown are noted; somebody else judges them.
        case noted
    }

    private let context: NIOSSLContext
    private let clients: ClientCertificates

    init(identity: TLSIdentity, clients: ClientCertificates) throws(LoveseatError) {
        do {
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: [],
                privateKey: .privateKey(try identity.sslPrivateKey())
            )
            try configuration.show(identity)
            configuration.minimumTLSVersion = .tlsv12
            switch clients {
            case .notAsked: configuration.certificateVerification = .none
            case .required: configuration.certificateVerification = .noHostnameVerification
            case .noted: configuration.certificateVerification = .optionalVerification
            }
            configuration.trustRoots = .certificates([])
            context = try NIOSSLContext(configuration: configuration)
        } catch { throw LoveseatError(.crypto, "the listener's identity cannot be used: \(error)") }
        self.clients = clients
    }

    /// The handlers to put in front of all others, and where the client's certificates are noted.
    func makeHandlers() -> (handlers: [any ChannelHandler], shown: ShownCertificates) {
        let shown = ShownCertificates()
        guard case .notAsked = clients else {
            let clients = clients
            let handler = NIOSSLServerHandler(context: context) { chain, answer in
                let chain = chain.compactMap { try? TLSCertificate(der: $0.toDERBytes()) }
                Task(executorPreference: HandshakeExecutor.shared) {
                    if case .required(let isGood) = clients, await !isGood(chain) {
                        return answer.succeed(.failed)
                    }
                    shown.note(chain)
                    answer.succeed(.certificateVerified)
                }
            }
            return ([PlainTextRefusal(), handler], shown)
        }
        return ([PlainTextRefusal(), NIOSSLServerHandler(context: context)], shown)
    }
}

/// The certificates that a client showed in its handshake.
final class ShownCertificates: Sendable {
    private let chain = NIOLockedValueBox<[TLSCertificate]>([])
    var all: [TLSCertificate] { chain.withLockedValue { $0 } }
    func note(_ certificates: [TLSCertificate]) { chain.withLockedValue { $0 = certificates } }
}

/// Tells clients that speak HTTP in the clear to a TLS port so, as web servers do.
private final class PlainTextRefusal: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let handshakeRecord: UInt8 = 22
    private static let answer =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 39\r\n"
        + "Connection: close\r\n\r\nthis port speaks TLS: use a wss:// URL\n"
    private var hasSeen = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if hasSeen { return context.fireChannelRead(data) }
        let bytes = unwrapInboundIn(data)
        guard let first = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) else { return }
        hasSeen = true
        guard first != Self.handshakeRecord else { return context.fireChannelRead(data) }
        LogDomain.listener.log(
            .notice,
            "refused \(context.remoteAddress?.description ?? "a client"): it does not speak TLS"
        )
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(string: Self.answer)))
            .whenComplete { _ in
                // Past the TLS handler, which has nothing to say goodbye to.
                channel.pipeline.close(mode: .all, promise: nil)
            }
    }
}
