private import Crypto
public import Foundation
public import LoveseatModel
import SwiftASN1
import X509

extension TLSCertificate {
    /// Creates a certificate from its DER encoding.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the bytes are not an X.509 certificate.
    public init(der: some Sequence<UInt8>) throws(LoveseatError) {
        let bytes = Array(der)
        do { _ = try X509.Certificate(derEncoded: bytes) } catch {
            throw LoveseatError(.crypto, "this is not an X.509 certificate: \(error)")
        }
        self.init(checked: bytes)
    }

    /// Creates a certificate from a PEM text that contains exactly one.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the text contains none, or more than one.
    public init(pem: String) throws(LoveseatError) {
        let all = try Self.all(pem: pem)
        guard all.count == 1 else {
            throw LoveseatError(.crypto, "the PEM text has \(all.count) certificates where one is expected")
        }
        self = all[0]
    }

    /// Returns every certificate of a PEM text, in order. The text may contain other things, such as keys.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the text contains no certificate, or is damaged.
    public static func all(pem: String) throws(LoveseatError) -> [TLSCertificate] {
        let documents = try PEMText.documents(pem).filter { $0.discriminator == "CERTIFICATE" }
        guard !documents.isEmpty else {
            throw LoveseatError(.crypto, "there is no \"-----BEGIN CERTIFICATE-----\" in the PEM text")
        }
        var certificates: [TLSCertificate] = []
        for document in documents { certificates.append(try TLSCertificate(der: document.derBytes)) }
        return certificates
    }

    init(_ certificate: X509.Certificate) throws {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        self.init(checked: serializer.serializedBytes)
    }

    /// Nil for bytes that are not a certificate, which no initializer for apps and peers accepts.
    var parsed: X509.Certificate? { try? X509.Certificate(derEncoded: derBytes) }

    /// The subject's common name, or nil if there is none.
    public var commonName: String? {
        parsed?.subject.lazy.flatMap { $0 }
            .first { $0.type == .RDNAttributeType.commonName }
            .map { String(describing: $0.value) }
    }

    /// The DNS names that the certificate is for.
    package var serverNames: [String] { parsed?.serverNames ?? [] }

    /// The subject, as in `CN=Ana,O=Sofa`.
    public var subject: String { parsed.map { String(describing: $0.subject) } ?? "" }

    /// The issuer, as in `CN=Ana,O=Sofa`.
    public var issuer: String { parsed.map { String(describing: $0.issuer) } ?? "" }

    /// The date from which the certificate is valid.
    public var notValidBefore: Date { parsed?.notValidBefore ?? .distantPast }

    /// The date until which the certificate is valid.
    public var notValidAfter: Date { parsed?.notValidAfter ?? .distantPast }

    /// Whether the certificate was signed with its own key.
    public var isSelfSigned: Bool {
        guard let parsed else { return false }
        return parsed.issuer == parsed.subject
            && parsed.publicKey.isValidSignature(parsed.signature, for: parsed)
    }

    /// The certificate's SHA-256 fingerprint: 64 lower-case hexadecimal digits, as `openssl x509 -fingerprint -sha256`
    /// prints them, without colons. People can compare it to verify a pin.
    public var fingerprint: String { SHA256.hash(data: derBytes).hexadecimalText }
}

extension TLSCertificate: CustomStringConvertible {
    /// The subject and the first 16 digits of the fingerprint.
    public var description: String { "\(subject) (\(fingerprint.prefix(16))…)" }
}

/// PEM texts, whose parts are read in order.
enum PEMText {
    /// The maximum length of a text, in bytes.
    private static let maximumBytes = 1 << 20

    static func documents(_ text: String) throws(LoveseatError) -> [PEMDocument] {
        guard text.utf8.count <= maximumBytes else {
            throw LoveseatError(.crypto, "the PEM text is longer than \(maximumBytes) bytes")
        }
        do { return try PEMDocument.parseMultiple(pemString: text) } catch {
            throw LoveseatError(.crypto, "the PEM text is damaged: \(error)")
        }
    }
}
