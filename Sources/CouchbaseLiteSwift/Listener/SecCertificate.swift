public import Foundation
import LoveseatIdentity
import LoveseatModel

#if canImport(Security)
public import Security

extension TLSCertificate {
    /// Nil for a certificate that is not X.509.
    init?(_ certificate: SecCertificate) {
        guard let made = try? TLSCertificate(der: SecCertificateCopyData(certificate) as Data) else {
            return nil
        }
        self = made
    }

    /// The certificate as the system's type; nil if the system cannot read it.
    var secCertificate: SecCertificate? { SecCertificateCreateWithData(nil, Data(derBytes) as CFData) }
}
#else
/// An X.509 certificate. On Apple's systems, it is the type of the framework Security.
public final class SecCertificate: Hashable, Sendable {
    let engine: TLSCertificate

    init(_ engine: TLSCertificate) { self.engine = engine }

    /// Creates a certificate from its DER encoding. Nil if the bytes are not an X.509 certificate.
    public init?(der: Data) {
        guard let engine = try? TLSCertificate(der: der) else { return nil }
        self.engine = engine
    }

    /// The certificate's DER encoding.
    public var der: Data { Data(engine.derBytes) }

    /// Returns whether both are the same certificate.
    public static func == (lhs: SecCertificate, rhs: SecCertificate) -> Bool { lhs.engine == rhs.engine }

    /// Hashes the certificate.
    public func hash(into hasher: inout Hasher) { hasher.combine(engine) }
}

/// The data that functions of the framework Security take, for apps that convert to it.
public typealias CFData = NSData

/// Creates a certificate from its DER encoding, as the framework Security does. The allocator is not used.
///
/// - Returns: The certificate; nil if the data is not an X.509 certificate.
public func SecCertificateCreateWithData(_ allocator: AnyObject?, _ data: CFData) -> SecCertificate? {
    SecCertificate(der: Data(referencing: data))
}

/// Returns a certificate's DER encoding, as the framework Security does.
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { NSData(data: certificate.der) }

extension TLSCertificate {
    /// Always a certificate here: on Apple's systems it may be nil.
    init?(_ certificate: SecCertificate) { self = certificate.engine }

    /// Always a certificate here: on Apple's systems it may be nil.
    var secCertificate: SecCertificate? { SecCertificate(self) }
}
#endif
