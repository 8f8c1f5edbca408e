public import Foundation
import LoveseatIdentity
import LoveseatModel

#if canImport(Security)
public import Security

extension SecCertificate {
    var engine: TLSCertificate { TLSCertificate(checked: Array(SecCertificateCopyData(self) as Data)) }

    /// The system's object for a certificate; nil if the system cannot read it.
    static func make(_ certificate: TLSCertificate) -> SecCertificate? {
        SecCertificateCreateWithData(nil, Data(certificate.derBytes) as CFData)
    }
}
#else
/// An X.509 certificate. On Apple's systems, it is the type of the framework Security.
public final class SecCertificate: Hashable, Sendable {
    let engine: TLSCertificate

    private init(_ engine: TLSCertificate) { self.engine = engine }

    static func make(_ certificate: TLSCertificate) -> SecCertificate? { SecCertificate(certificate) }

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
#endif
