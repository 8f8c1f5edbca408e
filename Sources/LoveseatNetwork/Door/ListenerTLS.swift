import Logging
package import LoveseatCore
package import LoveseatIdentity
package import LoveseatModel
import NIOConcurrencyHelpers
package import NIOCore
import NIOSSL

/// A version of TLS that a listener accepts at least.
public enum ListenerTLSVersion: Hashable, Sendable, Comparable, CaseIterable {
    case tlsv10, tlsv11, tlsv12, tlsv13

    fileprivate var version: TLSVersion {
        switch self {
        case .tlsv10: .tlsv1
        case .tlsv11: .tlsv11
        case .tlsv12: .tlsv12
        case .tlsv13: .tlsv13
        }
    }
}

/// TLS of a listener, with one identity for all clients.
package struct ListenerTLS: Sendable {
    private let configuration: TLSConfiguration
    private let authenticator: (any ListenerAuthenticator)?
    /// Nil where clients show certificates: a session of one context cannot be resumed in another, so that no client comes
    /// in by a handshake in which its certificate was not checked.
    private let shared: NIOSSLContext?

    package init(
        identity: TLSIdentity,
        authenticator: (any ListenerAuthenticator)? = nil,
        minimum: ListenerTLSVersion = .tlsv12
    ) throws(LoveseatError) {
        do {
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: [],
                privateKey: .privateKey(try identity.sslPrivateKey())
            )
            try configuration.show(identity)
            configuration.minimumTLSVersion = minimum.version
            configuration.certificateVerification =
                authenticator?.requestsClientCertificates != true
                ? .none
                : authenticator is ListenerCertificateAuthenticator
                    ? .noHostnameVerification : .optionalVerification
            configuration.trustRoots = .certificates([])
            self.configuration = configuration
            // Made in either case, to report what is wrong with the identity.
            let context = try NIOSSLContext(configuration: configuration)
            shared = authenticator?.requestsClientCertificates == true ? nil : context
        } catch { throw LoveseatError(.crypto, "the listener's identity cannot be used: \(error)") }
        self.authenticator = authenticator
    }

    /// The handlers to put in front of all others, for clients that show no certificates.
    package func makeHandlers() throws -> [any ChannelHandler] { try makeHandlers(address: "").handlers }

    /// The handlers to put in front of all others, and where the client's certificates are noted.
    func makeHandlers(address: String) throws -> (handlers: [any ChannelHandler], shown: ShownCertificates) {
        let shown = ShownCertificates()
        if let shared { return ([PlainTextRefusal(), NIOSSLServerHandler(context: shared)], shown) }
        let certificateAuthenticator = authenticator as? ListenerCertificateAuthenticator
        let context = try NIOSSLContext(configuration: configuration)
        let handler = NIOSSLServerHandler(context: context) { chain, answer in
            let readable = chain.readable
            if readable.isEmpty, !chain.isEmpty {
                LogDomain.listener.log(
                    .notice,
                    "\(address) shows a certificate that cannot be read: it counts as none"
                )
            }
            Task(executorPreference: BlockingThreads.handshakes) {
                var peer: PeerIdentity?
                if let certificateAuthenticator {
                    let client = ConnectingClient(address: address, certificates: readable)
                    peer = await certificateAuthenticator.authenticate(client)
                    guard peer != nil else { return answer.succeed(.failed) }
                }
                shown.record(.init(certificates: readable, peer: peer))
                answer.succeed(.certificateVerified)
            }
        }
        return ([PlainTextRefusal(), handler], shown)
    }
}

/// The certificates that a client showed in the handshake of this connection.
package final class ShownCertificates: Sendable {
    package struct Outcome: Sendable {
        package var certificates: [TLSCertificate] = []
        /// The identity that they prove, if they were checked in the handshake.
        package var peer: PeerIdentity?
    }

    private let noted = NIOLockedValueBox(Outcome())
    package var outcome: Outcome { noted.withLockedValue { $0 } }
    func record(_ outcome: Outcome) { noted.withLockedValue { $0 = outcome } }
}

/// Answers unencrypted HTTP on a TLS port with an explanation, as web servers do.
private final class PlainTextRefusal: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let handshakeRecord: UInt8 = 22
    private static let answer =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 51\r\n"
        + "Connection: close\r\n\r\nthis port speaks TLS: use a wss:// or https:// URL\n"
    private var hasSeen = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if hasSeen { return context.fireChannelRead(data) }
        let bytes = unwrapInboundIn(data)
        // A channel may pass on a buffer without bytes.
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
                // Bypasses the TLS handler, which has no session to close.
                channel.pipeline.close(mode: .all, promise: nil)
            }
    }
}
