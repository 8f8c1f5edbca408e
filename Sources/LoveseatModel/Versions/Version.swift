/// The state of a document that a source wrote at a time, such as `18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw`: with version vectors, the ID of
/// a revision (version-vectors.md §1, §4).
package struct Version: Hashable, Sendable, CustomStringConvertible {
    /// The time at which the source wrote the state: nanoseconds since 1970, with a counter in the low 16 bits (version-vectors.md §2.1). It is
    /// never 0.
    package let time: UInt64
    /// The database that wrote the state.
    package let source: SourceID

    /// Creates a version from values that are known to be valid.
    init(unchecked time: UInt64, _ source: SourceID) {
        self.time = time
        self.source = source
    }

    /// Creates a version.
    ///
    /// - Throws: ``VersionError`` if the time is 0.
    package init(time: UInt64, source: SourceID) throws(VersionError) {
        guard time != 0 else { throw VersionError(.timeIsZero) }
        self.init(unchecked: time, source)
    }

    /// Creates a version from `<time>@<source>`. The time is hexadecimal, 1 to 16 digits in either case.
    ///
    /// - Throws: ``VersionError`` for anything else.
    package init(_ text: some StringProtocol) throws(VersionError) {
        var reader = try VersionReader(text)
        self = try reader.version()
        try reader.end()
    }

    /// The version as text, without leading zeros and in lower case.
    package var text: String { "\(String(time, radix: 16))@\(source.text)" }

    /// The version as ``text``.
    package var description: String { text }

    /// Whether this version stands before the other one in the text of a vector: the later time first, and of equal times the lower source
    /// (version-vectors.md §4).
    func isListed(before other: Version) -> Bool {
        time != other.time ? time > other.time : source < other.source
    }
}

extension Version: Comparable {
    /// Orders versions by time, then by source. Of two versions in conflict the greater one wins (version-vectors.md §12.1, R1).
    package static func < (lhs: Self, rhs: Self) -> Bool {
        lhs.time != rhs.time ? lhs.time < rhs.time : lhs.source < rhs.source
    }
}
