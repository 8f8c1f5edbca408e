private import Crypto
public import Foundation
public import LoveseatModel
import SwiftASN1
import X509

extension TLSCertificate {
    /// Reads a certificate from its DER encoding.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if it is none.
    public init(der: some Sequence<UInt8>) throws(LoveseatError) {
        let bytes = Array(der)
        do { _ = try X509.Certificate(derEncoded: bytes) } catch {
            throw LoveseatError(.crypto, "this is no X.509 certificate: \(error)")
        }
        self.init(checked: bytes)
    }

    /// Reads the one certificate of a PEM text.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if there is none, or more than one.
    public init(pem: String) throws(LoveseatError) {
        let all = try Self.all(pem: pem)
        guard all.count == 1 else {
            throw LoveseatError(.crypto, "the PEM text has \(all.count) certificates where one is expected")
        }
        self = all[0]
    }

    /// Reads every certificate of a PEM text, which may hold other things too.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if there is none, or the text is damaged.
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

    /// Nil for bytes that nobody checked, which does not happen.
    var parsed: X509.Certificate? { try? X509.Certificate(derEncoded: derBytes) }

    /// The common name of the subject; nil if it has none.
    public var commonName: String? {
        parsed?.subject.lazy.flatMap { $0 }
            .first { $0.type == .RDNAttributeType.commonName }
            .map { String(describing: $0.value) }
    }

    /// The subject, as in `CN=Ana,O=Sofa`.
    public var subject: String { parsed.map { String(describing: $0.subject) } ?? "" }

    /// The issuer, as in `CN=Ana,O=Sofa`.
    public var issuer: String { parsed.map { String(describing: $0.issuer) } ?? "" }

    /// From when it is valid.
    public var notValidBefore: Date { parsed?.notValidBefore ?? .distantPast }

    /// Until when it is valid.
    public var notValidAfter: Date { parsed?.notValidAfter ?? .distantPast }

    /// Whether its own key signed it.
    public var isSelfSigned: Bool {
        guard let parsed else { return false }
        return parsed.issuer == parsed.subject
            && parsed.publicKey.isValidSignature(parsed.signature, for: parsed)
    }

    /// SHA-256 of the bytes in hexadecimal, as `openssl x509 -fingerprint -sha256` shows it but without colons. Two
    /// people can compare it to be sure of a pin.
    public var fingerprint: String { SHA256.hash(data: derBytes).hexadecimalText }
}

extension TLSCertificate: CustomStringConvertible {
    /// The subject and the fingerprint.
    public var description: String { "\(subject) (\(fingerprint.prefix(16))…)" }
}

/// PEM texts, whose parts are read in the order in which they stand.
enum PEMText {
    /// Texts above this are refused, in bytes.
    private static let longest = 1 << 20

    static func documents(_ text: String) throws(LoveseatError) -> [PEMDocument] {
        guard text.utf8.count <= longest else {
            throw LoveseatError(.crypto, "a PEM text of more than \(longest) bytes is refused")
        }
        do { return try PEMDocument.parseMultiple(pemString: text) } catch {
            throw LoveseatError(.crypto, "the PEM text is damaged: \(error)")
        }
    }
}
