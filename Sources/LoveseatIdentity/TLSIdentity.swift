public import Foundation
public import LoveseatModel
private import NIOSSL
import SwiftASN1
import X509

/// What the key of an identity is for.
public struct KeyUsages: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: Int
    /// Makes a set of its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// To be a replicator's identity.
    public static let clientAuth = KeyUsages(rawValue: 1)
    /// To be a listener's identity.
    public static let serverAuth = KeyUsages(rawValue: 2)
    /// To issue certificates of other identities: an app's own authority.
    public static let certificateAuthority = KeyUsages(rawValue: 4)
}

/// A private key and the certificate that says whose it is, with those that vouch for it.
///
/// An identity made or imported under a label is kept in an ``IdentityStore`` and found again with
/// ``identity(withLabel:in:)``.
public final class TLSIdentity: Sendable {
    /// The certificates, the key's own first, each signed by the next.
    public let certs: [TLSCertificate]
    let key: X509.Certificate.PrivateKey

    /// When the first certificate expires.
    public var expiration: Date { certs.first?.notValidAfter ?? .distantPast }

    init(certs: [TLSCertificate], key: X509.Certificate.PrivateKey) throws(LoveseatError) {
        guard let leaf = certs.first?.parsed else {
            throw LoveseatError(.crypto, "an identity needs a certificate")
        }
        guard leaf.publicKey == key.publicKey else {
            throw LoveseatError(.crypto, "the private key does not belong to the certificate \(leaf.subject)")
        }
        self.certs = certs
        self.key = key
    }

    // MARK: Making and importing

    /// Makes an identity with a new P-256 key, and keeps it under a label.
    ///
    /// - Parameters:
    ///   - usages: what it is for.
    ///   - attributes: who it is for, under keys such as ``certAttrCommonName``, the one that must be there.
    ///   - expiration: until when it is valid; a year from now if nil.
    ///   - issuer: whose key signs the certificate; its own if nil.
    ///   - label: where to keep it; nowhere if nil.
    ///   - store: in which store.
    /// - Returns: the identity.
    /// - Throws: ``LoveseatError``: `crypto` for a label that is taken, no common name, or attributes that make no
    ///   certificate; an error of the store.
    public static func createIdentity(
        for usages: KeyUsages,
        attributes: [String: String],
        expiration: Date? = nil,
        issuer: TLSIdentity? = nil,
        label: String?,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity {
        guard !usages.isEmpty else { throw LoveseatError(.crypto, "say what the identity is for") }
        let made = try CertificateMaker.make(
            usages: usages,
            attributes: try CertificateAttributes(attributes),
            expiration: expiration,
            issuer: issuer
        )
        return try TLSIdentity(certs: made.chain, key: made.key).kept(under: label, in: store)
    }

    /// Makes an identity of a PKCS#8 key and a certificate, both in DER, to issue others with. It is not kept.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if they are damaged or do not belong together.
    public static func createIssuer(
        withPrivateKey privateKey: Data,
        certificate: Data
    ) throws(LoveseatError) -> TLSIdentity {
        try TLSIdentity(
            certs: [TLSCertificate(der: certificate)],
            key: try readingKey { try X509.Certificate.PrivateKey(derBytes: Array(privateKey)) }
        )
    }

    /// Makes an identity of PEM texts: certificates, the key's own first, and a key (PKCS#8, encrypted with the password
    /// or not, SEC 1, or PKCS#1). Both may stand in one text.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if something is missing or damaged, or the password wrong; an error of the
    ///   store.
    public static func importIdentity(
        withCertificates certificates: String,
        privateKey: String,
        password: String? = nil,
        label: String?,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity {
        let key = try privateKeyDocument(privateKey)
        return try TLSIdentity(
            certs: try TLSCertificate.all(pem: certificates),
            key: try readingKey {
                key.discriminator == EncryptedKey.discriminator
                    ? try EncryptedKey.open(key.derBytes, passphrase: password)
                    : try X509.Certificate.PrivateKey(pemDocument: key)
            }
        )
        .kept(under: label, in: store)
    }

    /// Makes an identity of a PKCS#12 file's content.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if it is damaged or the password wrong; an error of the store.
    public static func importIdentity(
        withData data: Data,
        password: String?,
        label: String?,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity {
        guard data.count <= 1 << 20 else {
            throw LoveseatError(.crypto, "a PKCS#12 file of \(data.count) bytes is refused")
        }
        do {
            let bundle = try NIOSSLPKCS12Bundle(buffer: Array(data), passphrase: (password ?? "").utf8)
            let certs = try bundle.certificateChain.map { TLSCertificate(checked: try $0.toDERBytes()) }
            let key = try X509.Certificate.PrivateKey(anyDER: bundle.privateKey.derBytes)
            return try TLSIdentity(certs: certs, key: key).kept(under: label, in: store)
        } catch let error as LoveseatError { throw error } catch {
            throw LoveseatError(.crypto, "the PKCS#12 data is damaged, or the password is wrong: \(error)")
        }
    }

    private func kept(under label: String?, in store: any IdentityStore) throws(LoveseatError) -> TLSIdentity
    {
        if let label { try store.add(self, label: label) }
        return self
    }

    private static func privateKeyDocument(_ pem: String) throws(LoveseatError) -> PEMDocument {
        let documents = try PEMText.documents(pem).filter { $0.discriminator.hasSuffix("PRIVATE KEY") }
        guard let document = documents.first, documents.count == 1 else {
            throw LoveseatError(
                .crypto,
                "the PEM text has \(documents.count) private keys where one is expected"
            )
        }
        return document
    }

    private static func readingKey(
        _ body: () throws -> X509.Certificate.PrivateKey
    ) throws(LoveseatError) -> X509.Certificate.PrivateKey {
        do { return try body() } catch let error as LoveseatError { throw error } catch {
            throw LoveseatError(.crypto, "the private key cannot be read: \(error)")
        }
    }

    // MARK: Keeping

    /// The identity that is kept under a label; nil if there is none.
    ///
    /// - Throws: ``LoveseatError``: an error of the store; `crypto` if what it keeps is damaged.
    public static func identity(
        withLabel label: String,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity? {
        try store.identity(label: label)
    }

    /// Forgets the identity under a label. That there is none is no error.
    ///
    /// - Throws: ``LoveseatError``: an error of the store.
    public static func deleteIdentity(
        withLabel label: String,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) {
        try store.remove(label: label)
    }

    /// The labels under which identities are kept, in order.
    ///
    /// - Throws: ``LoveseatError``: an error of the store.
    public static func labels(in store: any IdentityStore = TLSIdentity.standardStore) throws(LoveseatError)
        -> [String]
    {
        try store.labels().sorted()
    }

    /// The identity that a listener uses if it is given none: self-signed, made once and kept in the store. It is made
    /// anew when it is about to expire.
    ///
    /// - Throws: ``LoveseatError``: an error of the store.
    public static func anonymousIdentity(
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity {
        if let kept = try store.identity(label: anonymousLabel) {
            guard kept.expiration.timeIntervalSinceNow < renewalPeriod else { return kept }
            try store.remove(label: anonymousLabel)
        }
        do throws(LoveseatError) {
            return try createIdentity(
                for: [.serverAuth, .clientAuth],
                attributes: [certAttrCommonName: "Loveseat"],
                expiration: Date().addingTimeInterval(anonymousValidity),
                label: anonymousLabel,
                in: store
            )
        } catch {
            // Another process may have made it meanwhile.
            guard let kept = try store.identity(label: anonymousLabel) else { throw error }
            return kept
        }
    }

    /// Forgets the identity of listeners that are given none; the next one makes another.
    ///
    /// - Throws: ``LoveseatError``: an error of the store.
    public static func deleteAnonymousIdentity(
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) {
        try store.remove(label: anonymousLabel)
    }

    static let anonymousLabel = "anonymous"
    /// Ten years: whoever pinned the certificate has to be told of another.
    private static let anonymousValidity: TimeInterval = 3_650 * 24 * 3_600
    private static let renewalPeriod: TimeInterval = 30 * 24 * 3_600

    // MARK: Exporting

    /// The certificates and the key in PEM, the key encrypted if there is a passphrase.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the key cannot leave its place.
    public func pem(passphrase: String?) throws(LoveseatError) -> String {
        do {
            let key = try key.serializeAsPEM()
            let document = try passphrase.map { try EncryptedKey.seal(self.key, passphrase: $0) } ?? key
            return certs.map(\.pem).joined() + document.pemString + "\n"
        } catch { throw LoveseatError(.crypto, "the private key cannot be exported: \(error)") }
    }

    func leaf() throws(LoveseatError) -> X509.Certificate {
        guard let leaf = certs.first?.parsed else {
            throw LoveseatError(.crypto, "an identity needs a certificate")
        }
        return leaf
    }
}

extension X509.Certificate.PrivateKey {
    /// A key in whatever DER form it comes: PKCS#8, SEC 1 or PKCS#1.
    init(anyDER bytes: [UInt8]) throws {
        if let key = try? X509.Certificate.PrivateKey(derBytes: bytes) {
            self = key
        } else if let key = try? X509.Certificate.PrivateKey(
            pemDocument: PEMDocument(type: "EC PRIVATE KEY", derBytes: bytes)
        ) {
            self = key
        } else {
            self = try X509.Certificate.PrivateKey(
                pemDocument: PEMDocument(type: "RSA PRIVATE KEY", derBytes: bytes)
            )
        }
    }

    /// PKCS#8 in DER.
    func pkcs8() throws -> [UInt8] {
        let document = try serializeAsPEM()
        switch document.discriminator {
        case "PRIVATE KEY": return document.derBytes
        case "RSA PRIVATE KEY":
            var serializer = DER.Serializer()
            try serializer.appendConstructedNode(identifier: .sequence) { key in
                try key.serialize(0)
                try key.appendConstructedNode(identifier: .sequence) { algorithm in
                    try algorithm.serialize(ASN1ObjectIdentifier.AlgorithmIdentifier.rsaEncryption)
                    try algorithm.serialize(ASN1Null())
                }
                try key.serialize(ASN1OctetString(contentBytes: document.derBytes[...]))
            }
            return serializer.serializedBytes
        default:
            throw LoveseatError(
                .crypto,
                "a key of the form \"\(document.discriminator)\" cannot be encrypted"
            )
        }
    }
}
