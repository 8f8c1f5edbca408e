/// The ID of a revision of a document, such as `3-9f86d081884c7d65`: its generation, which is the number of edits, and
/// a digest.
///
/// IDs are ordered by generation, then by digest. The digest is opaque, because peers compute it in different ways and do not verify it.
public struct RevisionID: Hashable, Sendable, CustomStringConvertible {
    /// The ID as text, such as `3-9f86d081884c7d65`.
    public let text: String
    /// The number of edits that led to the revision. The first one has 1.
    public let generation: UInt32

    /// Creates an ID from `<generation>-<digest>`, or returns nil for anything else.
    ///
    /// The generation is decimal without leading zeros. The digest is 1 to 256 printable ASCII characters other than a space, a comma, a
    /// quotation mark and a backslash. Couchbase's peers accept only lower-case hexadecimal digits, an even number; peers that speak
    /// CouchDB's protocol use others too.
    public init?(_ text: some StringProtocol) {
        let text = String(text)
        guard
            let generation = text.utf8.withContiguousStorageIfAvailable({ Self.generation(of: $0) })
                ?? Self.generation(of: Array(text.utf8))
        else { return nil }
        self.generation = generation
        self.text = text
    }

    private static func generation(of text: some Sequence<UInt8>) -> UInt32? {
        var generation: UInt32 = 0
        var digits = 0
        var digest = 0
        for byte in text {
            if digest > 0 {
                guard (0x21...0x7E).contains(byte), !unusable.contains(byte) else { return nil }
                digest += 1
            } else if byte == UInt8(ascii: "-") {
                digest = 1
            } else {
                guard byte &- 0x30 <= 9, digits > 0 || byte != 0x30 else { return nil }
                let (product, overflow) = generation.multipliedReportingOverflow(by: 10)
                let (sum, carry) = product.addingReportingOverflow(UInt32(byte - 0x30))
                guard !overflow, !carry else { return nil }
                generation = sum
                digits += 1
            }
        }
        guard digits > 0, digest > 1, digest <= maximumDigest + 1 else { return nil }
        return generation
    }

    /// The maximum length of a digest, in characters.
    static let maximumDigest = 256
    /// The characters that separate or quote IDs in messages.
    private static let unusable: [UInt8] = [
        UInt8(ascii: "\""), UInt8(ascii: ","), UInt8(ascii: "\\"),
    ]

    /// Creates an ID from a generation and the raw bytes of a digest.
    package init(generation: UInt32, digest: some Sequence<UInt8>) {
        self = Array(digest).withUnsafeBytes { RevisionID(generation: generation, digestBytes: $0) }
    }

    /// Creates an ID from a generation and the raw bytes of a digest in memory.
    package init(generation: UInt32, digestBytes: UnsafeRawBufferPointer) {
        let (start, hexadecimal) = ("\(generation)-".utf8, hexadecimal)
        self.generation = generation
        text = String(unsafeUninitializedCapacity: start.count + 2 * digestBytes.count) { text in
            var end = text.initialize(fromContentsOf: start)
            for byte in digestBytes {
                text[end] = hexadecimal[Int(byte >> 4)]
                text[end + 1] = hexadecimal[Int(byte & 15)]
                end += 2
            }
            return end
        }
    }

    /// Whether the digest has these raw bytes.
    package func hasDigest(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let hexadecimal = hexadecimal
        func compare(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
            let start = text.count - 2 * bytes.count
            guard start > 1, text[start - 1] == UInt8(ascii: "-") else { return false }
            return bytes.indices.allSatisfy { index in
                text[start + 2 * index] == hexadecimal[Int(bytes[index] >> 4)]
                    && text[start + 2 * index + 1] == hexadecimal[Int(bytes[index] & 15)]
            }
        }
        return text.utf8.withContiguousStorageIfAvailable(compare)
            ?? Array(text.utf8).withUnsafeBufferPointer(compare)
    }

    /// The digest, usually in lower-case hexadecimal digits.
    public var digest: Substring { text[text.utf8.index(text.endIndex, offsetBy: -digestLength)...] }

    /// The number of the digest's characters.
    package var digestLength: Int {
        var digits = 1
        var rest = generation / 10
        while rest > 0 {
            digits += 1
            rest /= 10
        }
        return text.utf8.count - digits - 1
    }

    /// The ID as ``text``.
    public var description: String { text }

    /// Returns whether both IDs name the same revision.
    public static func == (lhs: Self, rhs: Self) -> Bool { lhs.text == rhs.text }

    /// Hashes the ID's text.
    public func hash(into hasher: inout Hasher) { hasher.combine(text) }

    /// The bytes in front of the canonical body in the SHA-1 that is the digest of a local revision. The same edit on
    /// two peers gets the same ID.
    package static func withDigestPrefix<Result>(
        parent: RevisionID?,
        isDeleted: Bool,
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 257) { prefix in
            let parentText = (parent?.text ?? "").utf8
            let count = min(255, parentText.count)
            prefix[0] = UInt8(count)
            var end = 1
            for byte in parentText.prefix(count) {
                prefix[end] = byte
                end += 1
            }
            prefix[end] = isDeleted ? 1 : 0
            return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(prefix)[...end]))
        }
    }
}

extension RevisionID: Comparable {
    /// Orders IDs by generation, then by digest.
    public static func < (lhs: Self, rhs: Self) -> Bool {
        if lhs.generation != rhs.generation { return lhs.generation < rhs.generation }
        // Of equal generations the texts differ only in their digests, which sort as their bytes do.
        return lhs.text < rhs.text
    }
}

/// Encodes and decodes an ID as its text.
extension RevisionID: Codable {
    /// Decodes an ID from a string.
    ///
    /// - Throws: `DecodingError` for anything else.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let id = RevisionID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not a revision ID"
            )
        }
        self = id
    }

    /// Encodes the ID as a string.
    ///
    /// - Throws: Errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
