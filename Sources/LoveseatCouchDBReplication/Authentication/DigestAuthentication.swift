import LoveseatModel

/// Digest authentication (RFC 7616) with `qop=auth`, for both sides. Pure: callers compute hashes and choose nonces.
package enum DigestAuthentication {
    /// A hash function that Digest can use.
    package enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case sha256 = "SHA-256"
        case md5 = "MD5"

        /// The algorithm of a header; MD5 if the header names none. Nil for an unknown one, such as a session variant.
        init?(parameter: String?) {
            guard let parameter else {
                self = .md5
                return
            }
            guard let found = Self.allCases.first(where: { $0.rawValue == parameter.uppercased() }) else {
                return nil
            }
            self = found
        }
    }

    /// Computes a hash.
    package typealias Hash = @Sendable (Algorithm, [UInt8]) -> [UInt8]

    /// Returns the hash from which an answer is computed in place of the password. It covers user name, realm and password, in lower-case
    /// hexadecimal digits (RFC 7616 §3.4.2).
    package static func secret(
        username: String,
        realm: String,
        password: String,
        _ algorithm: Algorithm,
        _ hash: Hash
    ) -> String {
        hash(algorithm, Array("\(username):\(realm):\(password)".utf8)).hexadecimalText
    }

    /// A server's demand.
    package struct Challenge: Hashable, Sendable {
        package var realm: String
        package var nonce: String
        package var algorithm: Algorithm
        package var opaque: String?
        /// Whether the credentials were right and only the nonce was too old, so that the client need not ask its user.
        package var isStale = false

        package init(realm: String, nonce: String, algorithm: Algorithm) {
            self.realm = realm
            self.nonce = nonce
            self.algorithm = algorithm
        }

        /// Reads a `WWW-Authenticate` header; nil for another scheme, and for a demand that cannot be answered here. The header contains
        /// one challenge.
        package init?(_ header: String) {
            guard let parameters = DigestParameters(header), let realm = parameters["realm"],
                let nonce = parameters["nonce"],
                let algorithm = Algorithm(parameter: parameters["algorithm"])
            else { return nil }
            let offered = parameters["qop"]?.lowercased().split(separator: ",").map {
                $0.filter { $0 != " " }
            }
            guard offered?.contains("auth") ?? false else { return nil }
            self.init(realm: realm, nonce: nonce, algorithm: algorithm)
            opaque = parameters["opaque"]
            isStale = parameters["stale"]?.lowercased() == "true"
        }

        /// The header's value.
        package var header: String {
            var text = "Digest realm=\(Quoted.text(realm)), qop=\"auth\", algorithm=\(algorithm.rawValue)"
            text += ", nonce=\(Quoted.text(nonce))"
            if let opaque { text += ", opaque=\(Quoted.text(opaque))" }
            if isStale { text += ", stale=true" }
            return text + ", charset=UTF-8"
        }
    }

    /// A client's proof: the value of an `Authorization` header.
    package struct Response: Hashable, Sendable {
        package let username: String
        package let realm: String
        package let nonce: String
        /// The request's target, as in its first line.
        package let target: String
        package let algorithm: Algorithm
        /// How many requests the client has sent with the nonce, this one included.
        package let count: UInt32
        package let clientNonce: String
        package let opaque: String?
        /// The proof, in lower-case hexadecimal digits.
        package let proof: String
        /// The count as it was sent, which is part of what is hashed.
        private let countText: String

        /// Reads a header; nil for another scheme, and for one that lacks something.
        package init?(_ header: String) {
            guard let parameters = DigestParameters(header),
                let username = parameters["username"] ?? parameters.extendedUsername,
                parameters["username"] == nil || parameters["username*"] == nil,
                let realm = parameters["realm"], let nonce = parameters["nonce"],
                let target = parameters["uri"], let clientNonce = parameters["cnonce"],
                let proof = parameters["response"]?.lowercased(),
                let algorithm = Algorithm(parameter: parameters["algorithm"]),
                parameters["qop"]?.lowercased() == "auth", parameters["userhash"]?.lowercased() != "true",
                let countText = parameters["nc"], countText.utf8.count == 8,
                let count = UInt32(countText, radix: 16), count > 0
            else { return nil }
            self.username = username
            self.realm = realm
            self.nonce = nonce
            self.target = target
            self.algorithm = algorithm
            self.count = count
            self.countText = countText
            self.clientNonce = clientNonce
            self.opaque = parameters["opaque"]
            self.proof = proof
        }

        /// Answers a challenge. `secret`: see ``DigestAuthentication/secret(username:realm:password:_:_:)``.
        package init(
            to challenge: Challenge,
            username: String,
            secret: String,
            method: String,
            target: String,
            count: UInt32,
            clientNonce: String,
            _ hash: Hash
        ) {
            self.username = username
            realm = challenge.realm
            nonce = challenge.nonce
            opaque = challenge.opaque
            self.target = target
            algorithm = challenge.algorithm
            self.count = count
            let digits = String(count, radix: 16)
            countText = String(repeating: "0", count: 8 - digits.utf8.count) + digits
            self.clientNonce = clientNonce
            proof = Self.proof(
                secret: secret,
                challenge.nonce,
                countText,
                clientNonce,
                method: method,
                target: target,
                challenge.algorithm,
                hash
            )
        }

        /// The proof of a client that knows the secret.
        package func expectedProof(secret: String, method: String, _ hash: Hash) -> String {
            Self.proof(
                secret: secret.lowercased(),
                nonce,
                countText,
                clientNonce,
                method: method,
                target: target,
                algorithm,
                hash
            )
        }

        private static func proof(
            secret: String,
            _ nonce: String,
            _ count: String,
            _ clientNonce: String,
            method: String,
            target: String,
            _ algorithm: Algorithm,
            _ hash: Hash
        ) -> String {
            let request = hash(algorithm, Array("\(method):\(target)".utf8)).hexadecimalText
            let text = "\(secret):\(nonce):\(count):\(clientNonce):auth:\(request)"
            return hash(algorithm, Array(text.utf8)).hexadecimalText
        }

        /// The header's value.
        package var header: String {
            let isPlain = username.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            let name =
                isPlain ? "username=\(Quoted.text(username))" : "username*=UTF-8''\(Quoted.percent(username))"
            var text = "Digest \(name), realm=\(Quoted.text(realm)), nonce=\(Quoted.text(nonce))"
            text += ", uri=\(Quoted.text(target)), algorithm=\(algorithm.rawValue), qop=auth, nc=\(countText)"
            text += ", cnonce=\(Quoted.text(clientNonce)), response=\"\(proof)\""
            if let opaque { text += ", opaque=\(Quoted.text(opaque))" }
            return text
        }
    }
}

/// The parameters of a Digest header.
struct DigestParameters {
    /// The maximum length of a header, in bytes.
    private static let maximumLength = 16 << 10
    private var values: [String: String] = [:]

    subscript(name: String) -> String? { values[name] }

    /// A user name of any characters (RFC 8187).
    var extendedUsername: String? {
        guard let text = values["username*"] else { return nil }
        let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
        return Quoted.decode(parts[2])
    }

    /// Nil for another scheme, for text that is not a list of parameters, and for a parameter that is there twice.
    init?(_ header: String) {
        let bytes = Array(header.utf8)
        let scheme = Array("digest ".utf8)
        guard bytes.count <= Self.maximumLength, bytes.count > scheme.count,
            String(decoding: bytes.prefix(scheme.count), as: UTF8.self).lowercased() == "digest "
        else { return nil }
        var rest = bytes.dropFirst(scheme.count)
        while true {
            rest = rest.drop {
                $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: ",")
            }
            if rest.isEmpty { return }
            let name = rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ",") }
            rest = rest.dropFirst(name.count)
            guard rest.popFirst() == UInt8(ascii: "="), let value = Self.value(&rest) else { return nil }
            let key = String(decoding: name, as: UTF8.self).lowercased().filter { $0 != " " }
            guard !key.isEmpty, values.updateValue(value, forKey: key) == nil else { return nil }
        }
    }

    private static func value(_ rest: inout ArraySlice<UInt8>) -> String? {
        rest = rest.drop { $0 == UInt8(ascii: " ") }
        guard rest.first == UInt8(ascii: "\"") else {
            let token = rest.prefix { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: " ") }
            rest = rest.dropFirst(token.count).drop { $0 == UInt8(ascii: " ") }
            guard rest.isEmpty || rest.first == UInt8(ascii: ",") else { return nil }
            return String(validating: token, as: UTF8.self)
        }
        rest = rest.dropFirst()
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return String(validating: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let next = rest.popFirst() else { return nil }
                bytes.append(next)
            default: bytes.append(byte)
            }
        }
        return nil
    }
}

/// Text in headers.
private enum Quoted {
    static func text(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }

    static func percent(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A:
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default: encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }

    static func decode(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
