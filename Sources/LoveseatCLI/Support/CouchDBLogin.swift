import ArgumentParser
import Foundation

/// How `import` and `export` reach a CouchDB.
struct CouchDBLogin: ParsableArguments {
    @OptionGroup var credentials: Credentials
    @OptionGroup var trust: TrustOptions

    /// Whether no option was given.
    var isEmpty: Bool {
        let texts = [
            credentials.user, credentials.passwordFile, trust.pin, trust.ca, trust.identity, trust.proxy,
            trust.proxyFile,
        ]
        return texts.allSatisfy { $0 == nil } && !trust.selfSigned
    }

    static func isURL(_ text: String) -> Bool {
        ["http", "https"].contains(URL(string: text)?.scheme?.lowercased())
    }

    /// The options of `push` and `pull` that mean this CouchDB.
    func options(_ database: String, _ url: String) throws -> SyncOptions {
        var options = try SyncOptions.parse([database, url])
        options.peer.credentials = credentials
        options.peer.trust = trust
        return options
    }
}
