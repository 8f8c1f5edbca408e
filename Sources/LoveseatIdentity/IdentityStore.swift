public import LoveseatModel

/// Keeps identities under labels.
public protocol IdentityStore: Sendable {
    /// The identity under a label; nil if there is none.
    func identity(label: String) throws(LoveseatError) -> TLSIdentity?
    /// Keeps an identity under a label.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the label is taken.
    func add(_ identity: TLSIdentity, label: String) throws(LoveseatError)
    /// Forgets an identity, if there is one.
    func remove(label: String) throws(LoveseatError)
    /// Every label.
    func labels() throws(LoveseatError) -> [String]
}

extension TLSIdentity {
    /// The store that is used where none is named: the keychain on Apple's systems, else the folder that the environment
    /// variable `LOVESEAT_IDENTITIES` names, or `~/.local/share/loveseat/identities`.
    public static var standardStore: any IdentityStore {
        #if canImport(Security)
        KeychainIdentityStore()
        #else
        FileIdentityStore(folder: FileIdentityStore.standardFolder)
        #endif
    }
}
