public import Foundation
public import LoveseatIdentity
import LoveseatModel

#if canImport(Security)
public import Security
#endif

/// A private key with its certificate, and the certificates of those that issued it.
///
/// Identities with labels are kept in the keychain on Apple's systems. Elsewhere they are files that only the user can read, in the folder
/// that the environment variable `LOVESEAT_IDENTITIES` names, or in `loveseat/identities` of the user's data.
///
/// It is safe to use from any thread. The calls that use a label block the thread.
public final class TLSIdentity: Sendable {
    let engine: EngineIdentity

    init(_ engine: EngineIdentity) { self.engine = engine }

    /// The certificates: the key's own first, then that of its issuer, and so on.
    public var certs: [SecCertificate] { engine.certs.compactMap(SecCertificate.make) }

    /// The date when the key's own certificate expires.
    public var expiration: Date { engine.expiration }

    // MARK: Creating

    /// Creates an identity with a new P-256 key, and keeps it under a label.
    ///
    /// - Parameters:
    ///   - usages: The purposes of the key.
    ///   - attributes: The owner of the certificate, under keys such as `certAttrCommonName`, which is required.
    ///   - expiration: When the certificate expires. Nil, the default, means a year from now.
    ///   - issuer: The identity that signs the certificate. Nil, the default, makes it self-signed.
    ///   - label: The label.
    /// - Returns: The identity.
    /// - Throws: `crypto` for a label that is in use, a missing common name, or attributes that are not allowed.
    public static func createIdentity(
        for usages: KeyUsages,
        attributes: [String: String],
        expiration: Date? = nil,
        issuer: TLSIdentity? = nil,
        label: String
    ) throws -> TLSIdentity {
        try wrapping {
            try EngineIdentity.createIdentity(
                for: usages,
                attributes: attributes,
                expiration: expiration,
                issuer: issuer?.engine,
                label: label
            )
        }
    }

    /// Creates an identity from a PKCS#8 key and a certificate, both in DER, to issue others with. It is not kept.
    ///
    /// - Throws: `crypto` if the key or the certificate is damaged, or if they do not belong together.
    public static func createIssuer(withPrivateKey privateKey: Data, certificate: Data) throws -> TLSIdentity
    {
        try wrapping { try EngineIdentity.createIssuer(withPrivateKey: privateKey, certificate: certificate) }
    }

    /// Creates an identity from the content of a PKCS#12 file, and keeps it under a label.
    ///
    /// - Throws: `crypto` if the content is damaged, the password is wrong, or the label is in use.
    public static func importIdentity(
        withData data: Data,
        password: String?,
        label: String
    ) throws -> TLSIdentity {
        try wrapping {
            try EngineIdentity.importIdentity(withData: data, password: password, label: label)
        }
    }

    #if canImport(Security)
    /// Makes an identity of one of the keychain, whose key Loveseat cannot use.
    @available(
        *,
        unavailable,
        message:
            "Loveseat needs the key itself: export it as PKCS#12, and use importIdentity(withData:password:label:)"
    )
    public static func identity(withIdentity identity: SecIdentity, certs: [SecCertificate]?) throws
        -> TLSIdentity
    {
        throw CBLError.make(CBLError.unsupported, "keys of the keychain cannot be used")
    }
    #endif

    // MARK: Keeping

    /// Returns the identity with a label, or nil if there is none.
    ///
    /// - Throws: `crypto` if what is kept is damaged.
    public static func identity(withLabel label: String) throws -> TLSIdentity? {
        try CBLError.converting { try EngineIdentity.identity(withLabel: label).map(TLSIdentity.init) }
    }

    /// Removes the identity with a label. Does nothing if there is none.
    public static func deleteIdentity(withLabel label: String) throws {
        try CBLError.converting { try EngineIdentity.deleteIdentity(withLabel: label) }
    }

    /// Removes this identity under every label that it has. Does nothing if it is not kept.
    public func deleteFromKeyChain() throws {
        try CBLError.converting {
            for label in try EngineIdentity.labels()
            where try EngineIdentity.identity(withLabel: label)?.certs == engine.certs {
                try EngineIdentity.deleteIdentity(withLabel: label)
            }
        }
    }

    private static func wrapping(_ body: () throws -> EngineIdentity) throws -> TLSIdentity {
        TLSIdentity(try CBLError.converting(body))
    }
}
