#if canImport(Security)
private import Foundation
public import LoveseatModel
private import Security

/// An identity store that uses the app's keychain. Each identity is one item that does not leave the device.
public struct KeychainIdentityStore: IdentityStore {
    private static let service = "org.loveseat.identities"

    /// Creates a store. All instances use the same items.
    public init() {}

    /// Returns the identity with a label, or nil if there is none.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the keychain refuses, or the item is damaged.
    public func identity(label: String) throws(LoveseatError) -> TLSIdentity? {
        var found: CFTypeRef?
        let status = SecItemCopyMatching(
            query(label, [kSecReturnData as String: true, kSecMatchLimit as String: kSecMatchLimitOne]),
            &found
        )
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess, let data = found as? Data else { throw failure("read", label, status) }
        let pem = String(decoding: data, as: UTF8.self)
        return try TLSIdentity.importIdentity(withCertificates: pem, privateKey: pem, label: nil, in: self)
    }

    /// Stores an identity under a label.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the label is in use, or the keychain refuses.
    public func add(_ identity: TLSIdentity, label: String) throws(LoveseatError) {
        let status = SecItemAdd(
            query(
                label,
                [
                    kSecValueData as String: Data(try identity.pem(passphrase: nil).utf8),
                    kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
                ]
            ),
            nil
        )
        guard status != errSecDuplicateItem else {
            throw LoveseatError(
                .crypto,
                "an identity \"\(label)\" exists already: delete it first, or use another label"
            )
        }
        guard status == errSecSuccess else { throw failure("keep", label, status) }
    }

    /// Removes the identity with a label. Does nothing if there is none.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the keychain refuses.
    public func remove(label: String) throws(LoveseatError) {
        let status = SecItemDelete(query(label, [:]))
        guard status == errSecSuccess || status == errSecItemNotFound else {
            throw failure("delete", label, status)
        }
    }

    /// Returns the labels of all identities, in any order.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the keychain refuses.
    public func labels() throws(LoveseatError) -> [String] {
        var found: CFTypeRef?
        let status = SecItemCopyMatching(
            query(nil, [kSecReturnAttributes as String: true, kSecMatchLimit as String: kSecMatchLimitAll]),
            &found
        )
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess, let items = found as? [[String: Any]] else {
            throw failure("list", "", status)
        }
        return items.compactMap { $0[kSecAttrAccount as String] as? String }
    }

    private func query(_ label: String?, _ more: [String: Any]) -> CFDictionary {
        var query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: Self.service,
        ]
        if let label { query[kSecAttrAccount as String] = label }
        return query.merging(more) { $1 } as CFDictionary
    }

    private func failure(_ verb: String, _ label: String, _ status: OSStatus) -> LoveseatError {
        LoveseatError(.crypto, "the keychain does not \(verb) the identity \"\(label)\" (status \(status))")
    }
}
#endif
