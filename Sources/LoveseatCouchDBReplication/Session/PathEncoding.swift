import LoveseatModel

/// Percent-encoding of paths and queries, as CouchDB's peers expect it.
package enum PathEncoding {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Encodes one segment of a path, or a value of a query. Everything but letters, digits and `-._~` is encoded.
    package static func segment(_ text: String) -> String {
        // Clients and proxies remove dot segments.
        if text == "." { return "%2E" }
        if text == ".." { return "%2E%2E" }
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default: bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The path of a document below its database. The slash of a design document stays: CouchDB redirects from the encoded one.
    package static func document(_ id: String) -> String {
        for prefix in ["_design/", "_local/"] where id.beginsExactly(with: prefix) {
            return "/\(prefix)\(segment(id.dropping(prefix)))"
        }
        return "/\(segment(id))"
    }
}
