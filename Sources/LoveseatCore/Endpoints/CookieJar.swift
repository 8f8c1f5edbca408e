private import Foundation
import LoveseatModel

/// An HTTP cookie (RFC 6265), without the attributes that do not matter here.
package struct Cookie: Hashable, Sendable {
    package let name: String
    package let value: String
    /// Lower case, without a dot in front.
    package let domain: String
    package let path: String
    package let isSecure: Bool
    /// Unix time in seconds; nil for one that ends with the replicator.
    package let expires: Int64?
    /// The name of the credentials with which it came. It is sent with those only.
    package let credentials: String?

    /// Reads a `Set-Cookie` header.
    ///
    /// - Returns: nil if it is not a valid cookie, or this host may not set it.
    package init?(
        header: String,
        host: String,
        path requestPath: String,
        now: Int64,
        acceptsParentDomain: Bool,
        credentials: String? = nil
    ) {
        let parts = header.split(separator: ";").map { Self.trimmed($0) }
        guard let first = parts.first, let equals = first.firstIndex(of: "="), equals > first.startIndex
        else {
            return nil
        }
        let host = host.lowercased()
        var value = Self.trimmed(first[first.index(after: equals)...])
        if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
            value = String(value.dropFirst().dropLast())
        }
        let folder = requestPath.split(separator: "/").dropLast().joined(separator: "/")
        var (domain, path, secure, expires) = (host, "/" + folder, false, Int64?.none)
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1).map { Self.trimmed($0) }
            let argument = pair.count > 1 ? pair[1] : ""
            switch pair.first?.lowercased() {
            case "domain": domain = String(argument.lowercased().drop { $0 == "." })
            case "path" where argument.hasPrefix("/"): path = argument
            case "secure": secure = true
            case "expires":
                guard let date = CookieDate.seconds(argument) else { return nil }
                expires = date
            case "max-age":
                guard let seconds = Int64(argument) else { return nil }
                expires = now.addingSaturated(seconds)
            default: break
            }
        }
        guard !domain.isEmpty,
            domain == host || domain.hasSuffix("." + host)
                || (acceptsParentDomain && host.hasSuffix("." + domain) && domain.contains("."))
        else { return nil }
        name = Self.trimmed(first[..<equals])
        self.value = value
        self.domain = domain
        self.path = path
        isSecure = secure
        self.expires = expires
        self.credentials = credentials
    }

    /// Reads a stored cookie.
    init?(_ json: JSONElement) {
        guard let name = json["name"]?.string, let value = json["value"]?.string,
            let domain = json["domain"]?.string, let path = json["path"]?.string
        else { return nil }
        self.name = name
        self.value = value
        self.domain = domain
        self.path = path
        isSecure = json["secure"]?.bool ?? false
        expires = json["expires"]?.int.map { Int64($0) }
        credentials = json["for"]?.string
    }

    var json: JSONValue {
        var json: JSONValue = [
            "name": .string(name), "value": .string(value), "domain": .string(domain), "path": .string(path),
            "secure": .bool(isSecure),
        ]
        json["expires"] = expires.map { JSONValue($0) }
        json["for"] = credentials.map { .string($0) }
        return json
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        text.trimmingCharacters(in: .whitespaces)
    }

    func isFor(host: String, path: String, isSecure: Bool, now: Int64) -> Bool {
        let host = host.lowercased()
        guard host == domain || host.hasSuffix("." + domain), isSecure || !self.isSecure else { return false }
        guard expires.map({ $0 > now }) ?? true else { return false }
        let folder = self.path.hasSuffix("/") ? self.path : self.path + "/"
        return path == self.path || path.hasPrefix(folder)
    }

    func replaces(_ other: Cookie) -> Bool {
        name == other.name && domain == other.domain && path == other.path
            && credentials == other.credentials
    }
}

/// The forms of dates that servers write into headers (RFC 9110 §5.6.7).
package enum CookieDate {
    /// The seconds of a `Retry-After` header, which are a number or a date.
    package static func delay(_ text: String, now: Int64) -> UInt? {
        UInt(text) ?? seconds(text).map { UInt(clamping: $0.subtractingSaturated(now)) }
    }

    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// Unix time in seconds of `Wdy, DD Mon YYYY HH:MM:SS GMT`, with dashes too, or of `Wdy Mon DD HH:MM:SS YYYY`.
    static func seconds(_ text: String) -> Int64? {
        var (day, month, year, time) = (Int?.none, Int?.none, Int?.none, [Int]())
        for word in text.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "-" }) {
            if let index = months.firstIndex(of: word.prefix(3).lowercased()), month == nil {
                month = index + 1
            } else if word.contains(":") {
                time = word.split(separator: ":").compactMap { Int($0) }
            } else if let number = Int(word) {
                if day == nil, number <= 31 { day = number } else { year = number }
            }
        }
        guard let day, let month, var year, day > 0, time.count == 3, (0...9_999).contains(year),
            (0..<24).contains(time[0]), (0..<60).contains(time[1]), (0...60).contains(time[2])
        else { return nil }
        if year < 100 { year += year < 70 ? 2_000 : 1_900 }
        var components = DateComponents(year: year, month: month, day: day)
        (components.hour, components.minute, components.second) = (time[0], time[1], time[2])
        components.timeZone = TimeZone(secondsFromGMT: 0)
        return Calendar(identifier: .gregorian).date(from: components).map { Int64($0.timeIntervalSince1970) }
    }
}

/// The cookies of a database's peers.
package struct CookieJar: Hashable, Sendable {
    /// The maximum number of cookies, enough for any server.
    private static let maximumCount = 100
    private static let maximumBytes = 4_096

    package private(set) var cookies: [Cookie] = []

    package init() {}

    init(_ json: JSONText) { cookies = JSONElement(json).items.compactMap { Cookie($0) } }

    /// The cookies that outlive the replicator.
    var json: JSONText {
        JSONText(canonical: .array(cookies.filter { $0.expires != nil }.map(\.json)))
    }

    package mutating func add(_ cookie: Cookie, now: Int64) {
        if cookie.name.utf8.count + cookie.value.utf8.count > Self.maximumBytes { return }
        cookies.removeAll { cookie.replaces($0) || ($0.expires ?? .max) <= now }
        if (cookie.expires ?? .max) > now { cookies.append(cookie) }
        if cookies.count > Self.maximumCount { cookies.removeFirst() }
    }

    /// The cookies for a request with these credentials, by name.
    package func matching(
        host: String,
        path: String,
        isSecure: Bool,
        credentials: String?,
        now: Int64
    ) -> [Cookie] {
        cookies.filter {
            $0.credentials == credentials && $0.isFor(host: host, path: path, isSecure: isSecure, now: now)
        }
    }

    /// Forgets the cookies that a request to this host and path would carry.
    package mutating func remove(host: String, path: String) {
        cookies.removeAll { $0.isFor(host: host, path: path, isSecure: true, now: .min) }
    }
}

/// The cookies of a connection.
package struct CookieStorage: Sendable {
    package let acceptsParentDomain: Bool
    package let load: @Sendable () -> CookieJar
    package let add: @Sendable ([Cookie]) -> Void
    /// Forgets the cookies for a host and path.
    package let remove: @Sendable (_ host: String, _ path: String) -> Void

    package init(
        acceptsParentDomain: Bool,
        load: @escaping @Sendable () -> CookieJar,
        add: @escaping @Sendable ([Cookie]) -> Void,
        remove: @escaping @Sendable (_ host: String, _ path: String) -> Void = { _, _ in }
    ) {
        self.acceptsParentDomain = acceptsParentDomain
        self.load = load
        self.add = add
        self.remove = remove
    }
}
