/// An X.509 certificate. Two certificates are equal if their DER encodings are.
public struct TLSCertificate: Hashable, Sendable {
    /// The certificate's DER encoding.
    public let derBytes: [UInt8]

    /// Takes bytes that are known to be a certificate.
    package init(checked derBytes: [UInt8]) { self.derBytes = derBytes }

    /// The certificate as PEM text (RFC 7468).
    public var pem: String {
        var text = "-----BEGIN CERTIFICATE-----\n"
        var rest = Base64.encode(derBytes)[...]
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return text + "-----END CERTIFICATE-----\n"
    }

    /// Reads a SHA-256 fingerprint, written with or without colons, in either case; nil if the text is not one.
    package static func fingerprint(reading text: String) -> String? {
        pin(reading: text).flatMap { $0.utf8.count == 64 ? $0 : nil }
    }

    /// Reads a SHA-256 or SHA-1 fingerprint, written in the same forms; nil if the text is neither.
    package static func pin(reading text: String) -> String? {
        let digits = text.lowercased().filter { $0 != ":" }
        let isHexadecimal = digits.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
        }
        return isHexadecimal && [40, 64].contains(digits.utf8.count) ? digits : nil
    }
}
