/// The author of versions: one database, named by its public UUID (version-vectors.md §3).
///
/// A source is 16 bytes. Its text is Base64 without padding, 22 characters. Sources are ordered by their bytes.
package struct SourceID: Hashable, Sendable, CustomStringConvertible {
    /// The first eight bytes, as a big-endian number.
    let high: UInt64
    /// The last eight bytes, as a big-endian number.
    let low: UInt64

    /// Creates a source from its two halves, of which one is not zero.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates a source from its 16 bytes, such as a UUID's.
    ///
    /// - Throws: ``VersionError`` if these are not 16 bytes, or all of them are zero.
    package init(bytes: some Collection<UInt8>) throws(VersionError) {
        guard bytes.count == Self.byteCount else { throw VersionError(.invalidSource) }
        var (high, low) = (UInt64(0), UInt64(0))
        for (index, byte) in bytes.enumerated() {
            if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
        }
        guard high | low != 0 else { throw VersionError(.reservedSource) }
        self.init(high: high, low: low)
    }

    /// Creates a source from its text.
    ///
    /// - Throws: ``VersionError`` if the text is anything but 22 characters of Base64 for 16 bytes, or stands for 16 zeros.
    package init(_ text: some StringProtocol) throws(VersionError) {
        var reader = try VersionReader(text)
        self = try reader.source()
        try reader.end()
    }

    /// The number of bytes of a source.
    static let byteCount = 16
    /// The number of characters of a source's text.
    static let characterCount = 22

    /// The author of the versions that stand for revisions of a tree (version-vectors.md §8). Its text is `Revision+Tree+Encoding`.
    package static let revisionTree = SourceID(high: 0x45EB_E2B2_2A27_F93A, low: 0xDE7B_E127_7287_629E)

    /// The 16 bytes.
    package var bytes: [UInt8] {
        [high, low].flatMap { half in
            (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * UInt64($0))) }
        }
    }

    /// The text, 22 characters.
    package var text: String { String(Base64.encode(bytes).prefix(Self.characterCount)) }

    /// The source as a UUID, in lower-case hexadecimal with four hyphens.
    package var uuidText: String {
        let digits = bytes.hexadecimalText
        var (text, rest) = ("", digits[...])
        for length in [8, 4, 4, 4] {
            text += rest.prefix(length) + "-"
            rest = rest.dropFirst(length)
        }
        return text + rest
    }

    /// The source as ``text``.
    package var description: String { text }
}

extension SourceID: Comparable {
    /// Orders sources by their bytes.
    package static func < (lhs: Self, rhs: Self) -> Bool {
        lhs.high != rhs.high ? lhs.high < rhs.high : lhs.low < rhs.low
    }
}
