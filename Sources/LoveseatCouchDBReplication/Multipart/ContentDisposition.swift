import LoveseatModel

/// The value of a `Content-Disposition` header.
struct ContentDisposition: Hashable, Sendable {
    /// The longest `filename` parameter that is written, in bytes.
    static let maximumLength = 8 << 10

    /// The name from `filename*`, or else from `filename`.
    let filename: String?

    /// Parses a header value. A malformed parameter ends the parsing; the parameters before it count.
    init(parsing text: String) {
        var scanner = HeaderScanner(text)
        var (plain, extended): (String?, String?)
        scanner.skipBlanks()
        _ = scanner.token()
        scanner.skipBlanks()
        while scanner.skip(";") {
            scanner.skipBlanks()
            guard let next = scanner.next, next != 0x3B else { continue }
            guard let name = scanner.token()?.lowercasedASCII else { break }
            scanner.skipBlanks()
            guard scanner.skip("=") else { break }
            scanner.skipBlanks()
            let value =
                scanner.next == 0x22
                ? scanner.quotedString(isLenient: true) : scanner.token(HeaderScanner.isUnquotedValue)
            guard let value else { break }
            if name == "filename", plain == nil { plain = value }
            if name == "filename*", extended == nil { extended = Self.decodeExtended(value) }
            scanner.skipBlanks()
        }
        filename = extended ?? plain
    }

    /// Returns the header value for an attachment.
    ///
    /// A name without control characters is a quoted string in UTF-8, as CouchDB's peers send and read it. Any other name is sent as
    /// `filename*` only: a replacement in `filename` could be the name of another attachment. A name that is too long is left out;
    /// the order of the parts identifies the attachment.
    static func attachment(named name: String) -> String {
        let isPlain = name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        let parameter =
            isPlain ? "filename=\(HeaderText.quoted(name))" : "filename*=UTF-8''\(encodeExtended(name))"
        return parameter.utf8.count <= maximumLength ? "attachment; \(parameter)" : "attachment"
    }

    private static func encodeExtended(_ name: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            if isExtendedCharacter(byte) {
                bytes.append(byte)
            } else {
                bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func decodeExtended(_ value: String) -> String? {
        let pieces = value.utf8.split(separator: 0x27, maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, String(Substring(pieces[0])).equalsIgnoringCase("utf-8") else { return nil }
        var bytes: [UInt8] = []
        var rest = pieces[2]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexadecimalDigit),
                let low = rest.popFirst().flatMap(hexadecimalDigit)
            else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Whether a byte stands for itself in an extended value of RFC 8187.
    private static func isExtendedCharacter(_ byte: UInt8) -> Bool {
        HeaderScanner.isToken(byte) && byte != 0x25 && byte != 0x27 && byte != 0x2A
    }
}
