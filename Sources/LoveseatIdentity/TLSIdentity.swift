public import Foundation
public import LoveseatModel
private import NIOSSL
import SwiftASN1
import X509

/// The purposes of an identity's key, as a certificate states them.
public struct KeyUsages: OptionSet, Hashable, Sendable {
    /// The purposes as a bit mask.
    public let rawValue: Int
    /// Creates a set of purposes from a bit mask.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Authenticating a client, which is a replicator.
    public static let clientAuth = KeyUsages(rawValue: 1)
    /// Authenticating a server, which is a listener.
    public static let serverAuth = KeyUsages(rawValue: 2)
    /// Issuing certificates for other identities, as an authority of your own.
    public static let certificateAuthority = KeyUsages(rawValue: 4)
}

/// A private key with its certificate, and the certificates of those that issued it.
///
/// An identity that is created or imported with a label is kept in an ``IdentityStore``, and ``identity(withLabel:in:)`` returns it
/// later. An identity is safe to use from any thread. The calls that use a store block the thread.
public final class TLSIdentity: Sendable {
    /// The certificates: the key's own first, then that of its issuer, and so on. Never empty.
    public let certs: [TLSCertificate]
    let key: X509.Certificate.PrivateKey

    /// The date when the key's own certificate expires.
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

    /// Creates an identity with a new P-256 key, and stores it under a label.
    ///
    /// - Parameters:
    ///   - usages: The purposes of the key.
    ///   - attributes: The owner of the certificate, under keys such as ``certAttrCommonName``, which is required.
    ///   - expiration: When the certificate expires. Nil means a year from now.
    ///   - issuer: The identity that signs the certificate. Nil makes it self-signed.
    ///   - label: The label under which to store the identity. Nil means not to store it.
    ///   - store: The store.
    /// - Returns: The identity.
    /// - Throws: ``LoveseatError``: `crypto` for a label that is in use, a missing common name, or attributes that are not allowed;
    ///   `invalidParameter` for a host name, mail address or URL that is not ASCII; an error of the store.
    public static func createIdentity(
        for usages: KeyUsages,
        attributes: [String: String],
        expiration: Date? = nil,
        issuer: TLSIdentity? = nil,
        label: String?,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity {
        guard !usages.isEmpty else {
            throw LoveseatError(.crypto, "the identity has no usages: name at least one")
        }
        let made = try CertificateMaker.make(
            usages: usages,
            attributes: try CertificateAttributes(attributes),
            expiration: expiration,
            issuer: issuer
        )
        return try TLSIdentity(certs: made.chain, key: made.key).kept(under: label, in: store)
    }

    /// Creates an identity from a PKCS#8 key and a certificate, both in DER, to issue others with. It is not stored.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the key or the certificate is damaged, or if they do not belong together.
    public static func createIssuer(
        withPrivateKey privateKey: Data,
        certificate: Data
    ) throws(LoveseatError) -> TLSIdentity {
        try TLSIdentity(
            certs: [TLSCertificate(der: certificate)],
            key: try readingKey { try X509.Certificate.PrivateKey(derBytes: Array(privateKey)) }
        )
    }

    /// Creates an identity from PEM texts, and stores it under a label.
    ///
    /// - Parameters:
    ///   - certificates: The certificates, the key's own first.
    ///   - privateKey: A text with one key, as PKCS#8 (encrypted or not), SEC 1 or PKCS#1. It may be the same text as `certificates`.
    ///   - password: The password of an encrypted key.
    ///   - label: The label under which to store the identity. Nil means not to store it.
    ///   - store: The store.
    /// - Returns: The identity.
    /// - Throws: ``LoveseatError``: `crypto` if something is missing or damaged, the password is wrong, or the label is in use; an error
    ///   of the store.
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

    /// Creates an identity from the content of a PKCS#12 file of up to 1 MB, and stores it under a label.
    ///
    /// - Parameters:
    ///   - data: The content of the file.
    ///   - password: The file's password. Nil means an empty one.
    ///   - label: The label under which to store the identity. Nil means not to store it.
    ///   - store: The store.
    /// - Returns: The identity.
    /// - Throws: ``LoveseatError``: `crypto` if the content is damaged, the password is wrong, or the label is in use; an error of the
    ///   store.
    public static func importIdentity(
        withData data: Data,
        password: String?,
        label: String?,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity {
        guard data.count <= 1 << 20 else {
            throw LoveseatError(.crypto, "the PKCS#12 file is too large: it has \(data.count) bytes")
        }
        do {
            let bundle = try NIOSSLPKCS12Bundle(buffer: Array(data), passphrase: (password ?? "").utf8)
            // BoringSSL reads certificates that X509 does not.
            let certs = try bundle.certificateChain.map { try TLSCertificate(der: $0.toDERBytes()) }
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

    /// Returns the identity that is stored under a label, or nil if there is none.
    ///
    /// - Throws: ``LoveseatError``: an error of the store; `crypto` if what it keeps is damaged.
    public static func identity(
        withLabel label: String,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) -> TLSIdentity? {
        try store.identity(label: label)
    }

    /// Removes the identity that is stored under a label. Does nothing if there is none.
    ///
    /// - Throws: ``LoveseatError``: an error of the store.
    public static func deleteIdentity(
        withLabel label: String,
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) {
        try store.remove(label: label)
    }

    /// Returns the labels of all stored identities, sorted.
    ///
    /// - Throws: ``LoveseatError``: an error of the store.
    public static func labels(in store: any IdentityStore = TLSIdentity.standardStore) throws(LoveseatError)
        -> [String]
    {
        try store.labels().sorted()
    }

    /// Returns the identity that a listener uses by default: self-signed, created once and kept in the store.
    ///
    /// Its certificate is valid for ten years. Within the last 30 days it is replaced by a new one, which clients have to pin anew.
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
            // Another process may have created it meanwhile.
            guard let kept = try store.identity(label: anonymousLabel) else { throw error }
            return kept
        }
    }

    /// Removes the identity that listeners use by default. The next call of ``anonymousIdentity(in:)`` creates another one.
    ///
    /// - Throws: ``LoveseatError``: an error of the store.
    public static func deleteAnonymousIdentity(
        in store: any IdentityStore = TLSIdentity.standardStore
    ) throws(LoveseatError) {
        try store.remove(label: anonymousLabel)
    }

    static let anonymousLabel = "anonymous"
    /// Ten years, because every client that pinned the certificate has to pin its successor.
    private static let anonymousValidity: TimeInterval = 3_650 * 24 * 3_600
    private static let renewalPeriod: TimeInterval = 30 * 24 * 3_600

    // MARK: Exporting

    /// Returns the certificates and the key as PEM. The key is encrypted if there is a passphrase; otherwise keep the text secret.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the key cannot be exported.
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
    /// Reads a key in any DER form: PKCS#8, SEC 1 or PKCS#1.
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
