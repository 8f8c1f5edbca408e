import LoveseatCore
package import LoveseatIdentity
import LoveseatModel
import NIOConcurrencyHelpers
import NIOCore
package import NIOSSL

/// TLS of a client: validates the server's certificate, and keeps the reason if it is not trusted.
package final class ClientTLS: Sendable {
    private let host: String
    private let options: ConnectionOptions
    private let verdict = NIOLockedValueBox<LoveseatError?>(nil)

    init(host: String, options: ConnectionOptions) {
        self.host = host
        self.options = options
    }

    /// Why the server was not trusted; nil if it was, or was not validated yet.
    var failure: LoveseatError? { verdict.withLockedValue { $0 } }

    func makeHandler() throws(LoveseatError) -> NIOSSLClientHandler {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.certificateVerification = .noHostnameVerification
        // The callback below validates, so the system's authorities need not be loaded here.
        configuration.trustRoots = .certificates([])
        do {
            if let identity = (options.authenticator as? ClientCertificateAuthenticator)?.identity {
                try configuration.show(identity)
            }
            let context = try NIOSSLContext(configuration: configuration)
            return try NIOSSLClientHandler(context: context, serverHostname: serverName) {
                [self] chain, answer in
                verify(chain, answer)
            }
        } catch { throw LoveseatError(.tlsHandshakeFailed, "TLS cannot be set up: \(error)") }
    }

    /// The name by which the server chooses its certificate; nil for addresses (RFC 6066 §3).
    private var serverName: String? {
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil || host.contains(":")
        return isAddress ? nil : host
    }

    private func verify(_ chain: [NIOSSLCertificate], _ answer: EventLoopPromise<NIOSSLVerificationResult>) {
        let chain = chain.readable
        if let leaf = chain.first { options.sawServerCertificate(leaf) }
        var rules = CertificateTrust.ServerRules()
        rules.pin = options.pinnedServerCertificate?.fingerprint ?? options.pinnedServerFingerprint
        rules.pinnedCertificate = options.pinnedServerCertificate
        rules.acceptsAny = options.acceptsAnyCertificate
        rules.onlySelfSigned = options.acceptsOnlySelfSigned
        rules.roots = options.rootCertificates
        Task(executorPreference: BlockingThreads.handshakes) { [self, rules] in
            let failure = await CertificateTrust.validate(server: chain, host: host, rules)
            verdict.withLockedValue { $0 = failure }
            answer.succeed(failure == nil ? .certificateVerified : .failed)
        }
    }
}

extension [NIOSSLCertificate] {
    /// The certificates that a peer shows, its own first, as far as they can be read; none if its own cannot be.
    ///
    /// A peer proves only that it has the key of its own certificate, so that no other one may take the first place.
    var readable: [TLSCertificate] {
        guard let own = first, let leaf = try? TLSCertificate(der: own.toDERBytes()) else { return [] }
        // The others only help to find an issuer.
        return [leaf] + dropFirst().compactMap { try? TLSCertificate(der: $0.toDERBytes()) }
    }
}

extension TLSConfiguration {
    /// Shows an identity to the peer.
    package mutating func show(_ identity: TLSIdentity) throws {
        certificateChain = try identity.certs.map {
            .certificate(try NIOSSLCertificate(bytes: $0.derBytes, format: .der))
        }
        privateKey = .privateKey(try identity.sslPrivateKey())
    }
}
