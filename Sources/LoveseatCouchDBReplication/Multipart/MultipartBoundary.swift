/// The rules for boundaries and for their delimiters in a body.
package enum MultipartBoundary {
    /// The maximum length of a boundary, in bytes. RFC 2046 allows 70; existing peers use more.
    package static let maximumLength = 200

    /// Returns whether a boundary has 1 to 200 printable ASCII characters and does not end with a space.
    package static func isValid(_ boundary: String) -> Bool {
        let bytes = boundary.utf8
        guard let last = bytes.last, last != UInt8(ascii: " "), bytes.count <= maximumLength else {
            return false
        }
        return bytes.allSatisfy { (0x20...0x7E).contains($0) }
    }

    /// Returns a boundary of 32 hexadecimal digits.
    ///
    /// Use an unpredictable generator: the author of an attachment that knows the boundary can end the part early.
    package static func random(using generator: inout some RandomNumberGenerator) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: (0..<32).map { _ in digits[Int(generator.next() & 15)] }, as: UTF8.self)
    }
}
