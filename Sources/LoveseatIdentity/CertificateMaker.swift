private import Crypto
import Foundation
import LoveseatModel
import SwiftASN1
import X509

/// Creates certificates with new keys.
enum CertificateMaker {
    /// A year.
    static let defaultValidity: TimeInterval = 365 * 24 * 3_600
    /// How much the clocks of peers may be behind ours, in seconds.
    private static let clockTolerance: TimeInterval = 3_600

    /// Creates a key and its certificate, signed by itself or by the issuer.
    static func make(
        usages: KeyUsages,
        attributes: CertificateAttributes,
        expiration: Date?,
        issuer: TLSIdentity?
    ) throws(LoveseatError) -> (chain: [TLSCertificate], key: Certificate.PrivateKey) {
        let now = Date()
        let end = expiration ?? now.addingTimeInterval(defaultValidity)
        guard end > now, end.timeIntervalSince1970 < 253_402_300_800 else {
            throw LoveseatError(
                .crypto,
                "the expiration \(end) is not possible: use a time in the future, before the year 10000"
            )
        }
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        do {
            let issuerName = try issuer.map { try $0.leaf().subject } ?? attributes.subject
            let issuerKey = SubjectKeyIdentifier(hash: (issuer?.key ?? key).publicKey)
            let extensions = try Certificate.Extensions {
                if usages.contains(.certificateAuthority) {
                    Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                    Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                } else {
                    Critical(BasicConstraints.notCertificateAuthority)
                    Critical(KeyUsage(digitalSignature: true))
                    try ExtendedKeyUsage(usages.extended)
                }
                SubjectKeyIdentifier(hash: key.publicKey)
                AuthorityKeyIdentifier(keyIdentifier: issuerKey.keyIdentifier)
                if !attributes.alternativeNames.isEmpty {
                    SubjectAlternativeNames(attributes.alternativeNames)
                }
            }
            let certificate = try Certificate(
                version: .v3,
                serialNumber: Certificate.SerialNumber(),
                publicKey: key.publicKey,
                notValidBefore: now.addingTimeInterval(-clockTolerance),
                notValidAfter: end,
                issuer: issuerName,
                subject: attributes.subject,
                extensions: extensions,
                issuerPrivateKey: issuer?.key ?? key
            )
            return ([try TLSCertificate(certificate)] + (issuer?.certs ?? []), key)
        } catch { throw LoveseatError(.crypto, "the certificate cannot be created: \(error)") }
    }
}

extension KeyUsages {
    fileprivate var extended: [ExtendedKeyUsage.Usage] {
        (contains(.serverAuth) ? [.serverAuth] : []) + (contains(.clientAuth) ? [.clientAuth] : [])
    }
}
