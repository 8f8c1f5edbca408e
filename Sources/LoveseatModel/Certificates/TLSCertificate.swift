/// An X.509 certificate: its bytes, which are what pins compare.
///
/// What is in it is read by `LoveseatIdentity`, which also makes certificates.
public struct TLSCertificate: Hashable, Sendable {
    /// The DER encoding.
    public let derBytes: [UInt8]

    /// Takes bytes that were found to be a certificate.
    package init(checked derBytes: [UInt8]) { self.derBytes = derBytes }

    /// The PEM encoding (RFC 7468).
    public var pem: String {
        var text = "-----BEGIN CERTIFICATE-----\n"
        var rest = Base64.encode(derBytes)[...]
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return text + "-----END CERTIFICATE-----\n"
    }
}
