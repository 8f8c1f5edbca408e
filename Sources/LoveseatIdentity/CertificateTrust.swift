import Crypto
import Foundation
package import LoveseatModel
import SwiftASN1
import X509

/// Decides whether a certificate chain is trusted.
package enum CertificateTrust {
    /// A client's requirements for a server's certificate.
    package struct ServerRules: Sendable {
        /// The fingerprint of the pinned certificate; nothing else counts then.
        package var pin: String?
        /// The pinned certificate itself, where it is known: a server need not send the root of its chain.
        package var pinnedCertificate: TLSCertificate?
        /// Whether every certificate is accepted, because something else identifies the server.
        package var acceptsAny = false
        /// Whether only a single self-signed certificate is accepted.
        package var onlySelfSigned = false
        /// The authorities to trust; the system's if nil.
        package var roots: [TLSCertificate]?

        package init() {}
    }

    /// Validates a server's chain, its own certificate first; returns why it is not trusted.
    ///
    /// A certificate that names what it is for has to be for servers, unless it is itself pinned, or nothing identifies the server.
    package static func validate(
        server chain: [TLSCertificate],
        host: String,
        _ rules: ServerRules
    ) async -> LoveseatError? {
        guard let leaf = chain.first else {
            return LoveseatError(
                .tlsHandshakeFailed,
                "the server sent no certificate that can be read: give the server another certificate"
            )
        }
        if let pin = rules.pin {
            if await matches(chain, pin: pin, rules.pinnedCertificate) { return nil }
            return LoveseatError(
                .tlsCertUnknownRoot,
                "the server's certificate \(leaf.fingerprint) is not the pinned one \(pin): if the server has a new one, pin that"
            )
        }
        if rules.acceptsAny { return nil }
        if let error = expiry(leaf) { return error }
        if rules.onlySelfSigned {
            guard chain.count > 1 || !leaf.isSelfSigned else { return nil }
            return LoveseatError(
                .tlsCertUntrusted,
                "the server's certificate is signed by an authority, and only self-signed ones are accepted: do not set acceptOnlySelfSignedServerCertificate"
            )
        }
        let isAddress = IPAddress.bytes(host) != nil
        let names = ServerIdentityPolicy(
            serverHostname: isAddress ? nil : host,
            serverIP: isAddress ? host : nil
        )
        let failures: [CertificateValidationResult.PolicyFailure]?
        if let roots = rules.roots, roots.contains(leaf) {
            // A certificate that is itself among the roots needs no issuer, but it has to be for this host.
            failures = await Self.failures(
                of: [leaf],
                Verifier(rootCertificates: store([leaf])) {
                    TrustedLeafPolicy()
                    UsagePolicy.server
                    names
                    WildcardPolicy(host: isAddress ? nil : host)
                }
            )
        } else {
            failures = await Self.failures(
                of: chain,
                Verifier(rootCertificates: store(rules.roots)) {
                    RFC5280Policy()
                    UsagePolicy.server
                    names
                    WildcardPolicy(host: isAddress ? nil : host)
                }
            )
        }
        guard let failures else { return nil }
        // No chain to a root was found, so no contents were checked.
        guard failures.isEmpty else {
            return LoveseatError(
                .tlsCertUntrusted,
                "the server's certificate \(leaf.subject) is not valid for \(host): \(reasons(failures)): connect to a name that it contains, or pin it"
            )
        }
        let what = leaf.isSelfSigned ? "is self-signed" : "is of an unknown authority, \(leaf.issuer)"
        return LoveseatError(
            .tlsCertUnknownRoot,
            "the server's certificate \(leaf.subject) \(what): pin it (SHA-256 \(leaf.fingerprint)), or trust its authority"
        )
    }

    /// Validates a client's chain by the authorities that may issue client certificates; returns why it is not trusted.
    ///
    /// A certificate that names what it is for has to be for clients, unless it is itself among `roots`.
    package static func validate(client chain: [TLSCertificate], roots: [TLSCertificate]) async
        -> LoveseatError?
    {
        guard let leaf = chain.first else {
            return LoveseatError(.tlsClientCertRequired, "the client sent no certificate that can be read")
        }
        // A certificate that is itself among the roots needs no issuer.
        if roots.contains(leaf) { return expiry(leaf) }
        let verifier = Verifier(rootCertificates: store(roots)) {
            RFC5280Policy()
            UsagePolicy.client
        }
        guard let failures = await failures(of: chain, verifier) else { return nil }
        return LoveseatError(
            .tlsClientCertRejected,
            "the certificate \(leaf.subject) was not issued by a trusted authority: \(reasons(failures))"
        )
    }

    /// Whether the leaf is the pinned certificate, or the pinned certificate issued the chain, for a server.
    ///
    /// Certificates are public: the pinned one among those that the server sends proves nothing.
    private static func matches(
        _ chain: [TLSCertificate],
        pin: String,
        _ known: TLSCertificate?
    ) async -> Bool {
        func isPinned(_ certificate: TLSCertificate) -> Bool {
            pin.utf8.count == 40
                ? Insecure.SHA1.hash(data: certificate.derBytes).hexadecimalText == pin
                : certificate.fingerprint == pin
        }
        guard let leaf = chain.first, !isPinned(leaf) else { return !chain.isEmpty }
        guard let root = known ?? chain.first(where: isPinned) else { return false }
        let verifier = Verifier(rootCertificates: store([root])) {
            PinnedRootPolicy()
            UsagePolicy.server
        }
        return await failures(of: chain, verifier) == nil
    }

    /// Accepts a certificate that is trusted by itself.
    private struct TrustedLeafPolicy: VerifierPolicy {
        let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
            .X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage, .X509ExtensionID.extendedKeyUsage,
            .X509ExtensionID.nameConstraints,
        ]

        func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
            .meetsPolicy
        }
    }

    private static func expiry(_ leaf: TLSCertificate) -> LoveseatError? {
        let now = Date()
        guard leaf.notValidAfter < now || leaf.notValidBefore > now else { return nil }
        let what =
            leaf.notValidAfter < now
            ? "expired on \(leaf.notValidAfter)" : "is not valid before \(leaf.notValidBefore)"
        return LoveseatError(
            .tlsCertExpired,
            "the certificate \(leaf.subject) \(what): renew it, or set this host's clock"
        )
    }

    /// The reasons why no chain to a root is valid; nil if one is.
    private static func failures(
        of chain: [TLSCertificate],
        _ verifier: consuming sending Verifier<some VerifierPolicy>
    ) async -> [CertificateValidationResult.PolicyFailure]? {
        let parsed = chain.compactMap(\.parsed)
        guard parsed.count == chain.count, let leaf = parsed.first else { return [] }
        var verifier = verifier
        let result = await verifier.validate(
            leaf: leaf,
            intermediates: CertificateStore(parsed.dropFirst())
        )
        guard case .couldNotValidate(let failures) = result else { return nil }
        return failures
    }

    private static func store(_ roots: [TLSCertificate]?) -> CertificateStore {
        guard let roots else { return .systemTrustRoots }
        return CertificateStore(roots.compactMap(\.parsed))
    }

    private static func reasons(_ failures: [CertificateValidationResult.PolicyFailure]) -> String {
        failures.isEmpty
            ? "there is no chain to an authority"
            : failures.map { "\($0.policyFailureReason)" }.joined(separator: "; ")
    }
}
