import Foundation

/// The code of the original PhotoDrop of 2015: the URL of a CouchDB database, with a password.
///
/// ```
/// http://drop-5e551015e551015e:wJalrXUtnFEMI7K7MDENGb@192.168.1.7:55990/drop
/// ```
///
/// It does not name a certificate. Photos and the password are sent without encryption.
package struct LegacyCode: Hashable, Sendable {
    private static let scheme = "http"

    /// The URL of the database, without the password.
    package let url: URL
    package let username: String
    package let password: String

    /// Whether a text looks like such a code.
    package static func isPlausible(_ text: some StringProtocol) -> Bool {
        text.lowercased().hasPrefix("\(scheme)://")
    }

    /// - Throws: `data` if the text is not the URL of a database with a user name and a password.
    package init(text: String) throws(DropError) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count <= DropCode.maximumText, var parts = URLComponents(string: text),
            parts.scheme?.lowercased() == Self.scheme, parts.host?.isEmpty == false,
            parts.query == nil, parts.fragment == nil,
            parts.path.split(separator: "/").count == 1
        else { throw DropError(.data, "this is not a PhotoDrop code: it is not the URL of a database") }
        guard let username = parts.user, !username.isEmpty, let password = parts.password, !password.isEmpty
        else { throw DropError(.data, "this PhotoDrop code is damaged: it has no user name and password") }
        (parts.user, parts.password) = (nil, nil)
        guard let url = parts.url else {
            throw DropError(.data, "this PhotoDrop code is damaged: its address is not valid")
        }
        (self.url, self.username, self.password) = (url, username, password)
    }

    /// Creates the code of a receiver that listens without encryption.
    package init?(url: URL, username: String, password: String) {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: false) else { return nil }
        parts.scheme = Self.scheme
        guard let plain = parts.url else { return nil }
        (self.url, self.username, self.password) = (plain, username, password)
    }

    /// The text of the code.
    package var text: String {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: false) else { return "" }
        (parts.user, parts.password) = (username, password)
        return parts.string ?? ""
    }
}
