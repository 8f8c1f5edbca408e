public import LoveseatModel

/// A store of identities under labels. An app can conform to this protocol with its own type.
///
/// Its methods are called from any thread, and block it.
public protocol IdentityStore: Sendable {
    /// Returns the identity with a label, or nil if there is none.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if what is stored is damaged or not protected; `ioError`.
    func identity(label: String) throws(LoveseatError) -> TLSIdentity?
    /// Stores an identity under a label. It is stored permanently when this returns.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the label is in use; `ioError`.
    func add(_ identity: TLSIdentity, label: String) throws(LoveseatError)
    /// Removes the identity with a label. Does nothing if there is none.
    ///
    /// - Throws: ``LoveseatError``: `crypto` or `ioError`.
    func remove(label: String) throws(LoveseatError)
    /// Returns the labels of all identities, in any order.
    ///
    /// - Throws: ``LoveseatError``: `crypto` or `ioError`.
    func labels() throws(LoveseatError) -> [String]
}

extension TLSIdentity {
    /// The default store: the keychain on Apple's systems, otherwise a ``FileIdentityStore`` in its
    /// ``FileIdentityStore/standardFolder``, without a passphrase.
    public static var standardStore: any IdentityStore {
        #if canImport(Security)
        KeychainIdentityStore()
        #else
        FileIdentityStore(folder: FileIdentityStore.standardFolder)
        #endif
    }
}
