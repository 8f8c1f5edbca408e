import Foundation

/// What a receiver's QR code says: where it listens, its certificate, and the session's secret.
///
/// ```
/// photodrop:1?u=wss://192.168.1.7:55990/drop&p=<64 hexadecimal digits>&s=<22 characters>&i=<16 digits>&n=Ana%27s%20laptop
/// PHOTODROP:1:192.168.1.7:55990:<32 characters>:<20 characters>
/// ```
package struct DropCode: Hashable, Sendable {
    package static let databaseName = "drop"
    private static let scheme = "photodrop"
    private static let version = "1"
    private static let maximumURLs = 3
    private static let maximumName = 32
    private static let sessionDigits = 16
    /// The longest text that is read, in bytes.
    package static let maximumText = 2_048

    /// The receiver's URLs, the best first.
    package let urls: [URL]
    package let pin: DropPin
    /// The password of the session.
    package let secret: String
    /// The session's ID; nil in a compact code.
    package let session: String?
    /// The receiver's name; nil if the code does not contain it.
    package let name: String?
    /// Whether CouchDB's wire is served on the same port.
    package let hasCouchDB: Bool

    package init(
        urls: [URL],
        pin: DropPin,
        secret: String,
        session: String?,
        name: String?,
        hasCouchDB: Bool = false
    ) {
        self.urls = Array(urls.prefix(Self.maximumURLs))
        self.pin = pin
        self.secret = secret
        self.session = session
        self.name = name.map(Self.cleaned).flatMap { $0.isEmpty ? nil : $0 }
        self.hasCouchDB = hasCouchDB
    }

    private static func cleaned(_ name: String) -> String {
        let scalars = name.unicodeScalars.filter { $0.properties.generalCategory != .control }
        return String(String(String.UnicodeScalarView(scalars)).prefix(maximumName))
    }

    /// The hosts of the URLs, as URLs have them.
    package var hosts: [String] {
        urls.compactMap { url in
            url.host(percentEncoded: true).map { $0.contains(":") && !$0.hasPrefix("[") ? "[\($0)]" : $0 }
        }
    }

    /// The user name that belongs to the secret.
    package var username: String { Self.username(session: session) }

    /// The user name of a session. A compact code does not contain the session's ID.
    package static func username(session: String?) -> String {
        session.map { "drop-\($0)" } ?? "drop"
    }

    // MARK: Writing

    /// The full form: one line of printable ASCII.
    package var text: String {
        var parts = URLComponents()
        parts.scheme = Self.scheme
        parts.path = Self.version
        var items = urls.map { URLQueryItem(name: "u", value: $0.absoluteString) }
        items.append(URLQueryItem(name: "p", value: TextCoding.hexadecimal(pin.bytes)))
        items.append(URLQueryItem(name: "s", value: secret))
        if let session { items.append(URLQueryItem(name: "i", value: session)) }
        if let name { items.append(URLQueryItem(name: "n", value: name)) }
        if hasCouchDB { items.append(URLQueryItem(name: "c", value: "1")) }
        parts.queryItems = items
        // So that the text can stand between single quotation marks in a shell.
        parts.percentEncodedQuery = parts.percentEncodedQuery?.replacing("'", with: "%27")
        return parts.string ?? ""
    }

    /// The compact form of a receiver's own code, with the first URL only; nil if that has no host and port.
    package func compactText(secret: DropSecret) -> String? {
        guard let url = urls.first, let host = url.host(percentEncoded: false), let port = url.port else {
            return nil
        }
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return "PHOTODROP:1:\(bare.uppercased()):\(port):\(pin.compact):\(secret.compact)"
    }

    // MARK: Reading

    /// Creates a code from either form.
    ///
    /// - Throws: `data` if the text is not a code, is damaged, or was made by a newer version.
    package init(text: String) throws(DropError) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count <= Self.maximumText, text.lowercased().hasPrefix("\(Self.scheme):") else {
            throw DropError(.data, "this is not a PhotoDrop code: it does not begin with \(Self.scheme):")
        }
        let rest = text.dropFirst(Self.scheme.count + 1)
        let version = rest.prefix { $0.isASCII && $0.isNumber }
        guard version == Self.version else {
            throw DropError(
                .data,
                version.isEmpty
                    ? "this is not a PhotoDrop code: it has no version"
                    : "a newer version of PhotoDrop made this code: update this one"
            )
        }
        switch rest.dropFirst(version.count).first {
        case "?": try self.init(full: text)
        case ":": try self.init(compact: rest.dropFirst(version.count + 1))
        default: throw DropError(.data, "this PhotoDrop code is damaged: it ends after the version")
        }
    }

    private init(full text: String) throws(DropError) {
        let items = URLComponents(string: text)?.queryItems ?? []
        func value(_ name: String) -> String? { items.first { $0.name == name }?.value }
        let urls = items.filter { $0.name == "u" }.compactMap { $0.value.flatMap { URL(string: $0) } }
        guard !urls.isEmpty, urls.count <= Self.maximumURLs, urls.allSatisfy(Self.isUsable) else {
            throw DropError(.data, "this PhotoDrop code is damaged: it has no wss:// URL")
        }
        guard let pin = value("p").flatMap({ DropPin(fingerprint: $0) }) else {
            throw DropError(.data, "this PhotoDrop code is damaged: the certificate's fingerprint is missing")
        }
        guard let secret = value("s"), secret.utf8.count == 22 else {
            throw DropError(.data, "this PhotoDrop code is damaged: the secret is missing")
        }
        let session = value("i")
        guard session.map(Self.isSession) ?? true else {
            throw DropError(.data, "this PhotoDrop code is damaged: the session is not 16 hexadecimal digits")
        }
        self.init(
            urls: urls,
            pin: pin,
            secret: secret,
            session: session?.lowercased(),
            name: value("n"),
            hasCouchDB: value("c") == "1"
        )
    }

    private init(compact text: Substring) throws(DropError) {
        // An IPv6 address has colons, too.
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 4, let port = UInt16(parts[parts.count - 3]), port > 0,
            let pin = Base32.decode(parts[parts.count - 2]).flatMap({ DropPin(bytes: $0) }),
            let secret = parts.last, secret.utf8.count == 20, Base32.decode(secret) != nil
        else { throw DropError(.data, "this PhotoDrop code is damaged: a part is missing") }
        let host = parts.dropLast(3).joined(separator: ":").lowercased()
        let bracketed = host.contains(":") ? "[\(host)]" : host
        guard !host.isEmpty, let url = URL(string: "wss://\(bracketed):\(port)/\(Self.databaseName)"),
            Self.isUsable(url)
        else { throw DropError(.data, "this PhotoDrop code is damaged: its address is not valid") }
        self.init(urls: [url], pin: pin, secret: secret.uppercased(), session: nil, name: nil)
    }

    private static func isUsable(_ url: URL) -> Bool {
        url.scheme == "wss" && url.user == nil && url.password == nil && url.port != nil
            && !(url.host(percentEncoded: false) ?? "").isEmpty
    }

    private static func isSession(_ text: String) -> Bool {
        text.utf8.count == sessionDigits && TextCoding.bytes(hexadecimal: text) != nil
    }
}
