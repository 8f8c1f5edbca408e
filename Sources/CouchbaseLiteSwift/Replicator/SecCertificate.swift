import LoveseatModel

#if canImport(Security)
import Foundation
import Security

extension SecCertificate {
    var engine: TLSCertificate { TLSCertificate(checked: Array(SecCertificateCopyData(self) as Data)) }

    /// The system's object for a certificate; nil if the system cannot read it.
    static func make(_ certificate: TLSCertificate) -> SecCertificate? {
        SecCertificateCreateWithData(nil, Data(certificate.derBytes) as CFData)
    }
}
#else

/// An X.509 certificate, where the system has no type of this name.
public final class SecCertificate: Hashable, Sendable {
    let engine: TLSCertificate

    private init(_ engine: TLSCertificate) { self.engine = engine }

    static func make(_ certificate: TLSCertificate) -> SecCertificate? { SecCertificate(certificate) }

    /// Returns whether both are the same certificate.
    public static func == (lhs: SecCertificate, rhs: SecCertificate) -> Bool { lhs.engine == rhs.engine }

    /// Hashes the certificate's bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(engine) }
}
#endif
