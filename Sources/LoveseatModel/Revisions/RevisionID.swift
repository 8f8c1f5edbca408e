/// Names one revision of a document: how many edits deep it is, and a digest of its content (`3-9f86…`).
///
/// Ordered by generation first, then by digest (replication.md §3). The digest is opaque: peers make it in their own
/// ways and nobody verifies it. Code compares and orders revisions only through this type, so that a second family
/// of names can join it.
public struct RevisionID: Hashable, Sendable, CustomStringConvertible {
    /// The text that travels, such as `3-9f86d081884c7d65`.
    public let text: String
    /// How many edits deep, from 1.
    public let generation: UInt32

    /// Reads `<generation>-<digest>`: a decimal number without leading zero, and lower-case hexadecimal digits, an
    /// even number of them. Nil for anything else.
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
                guard (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) else { return nil }
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
        guard digits > 0, digest > 1, digest % 2 == 1, digest <= 257 else { return nil }
        return generation
    }

    /// Makes one of a generation and the raw bytes of a digest.
    package init(generation: UInt32, digest: some Sequence<UInt8>) {
        var bytes = Array("\(generation)-".utf8)
        for byte in digest {
            bytes.append(hexadecimal[Int(byte >> 4)])
            bytes.append(hexadecimal[Int(byte & 15)])
        }
        self.generation = generation
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// The digest, in hexadecimal.
    public var digest: Substring { text[text.index(after: text.firstIndex(of: "-") ?? text.startIndex)...] }

    /// The text.
    public var description: String { text }

    /// Whether both name the same revision.
    public static func == (lhs: Self, rhs: Self) -> Bool { lhs.text == rhs.text }

    /// Hashes the text.
    public func hash(into hasher: inout Hasher) { hasher.combine(text) }

    /// What the digest of a locally made revision is taken of (SHA-1; replication.md §3), so that the same edit made
    /// on two peers gets the same name.
    package static func digestInput(parent: RevisionID?, isDeleted: Bool, canonicalBody: [UInt8]) -> [UInt8] {
        let parentText = (parent?.text ?? "").utf8.prefix(255)
        var input: [UInt8] = []
        input.reserveCapacity(2 + parentText.count + canonicalBody.count)
        input.append(UInt8(truncatingIfNeeded: parentText.count))
        input.append(contentsOf: parentText)
        input.append(isDeleted ? 1 : 0)
        input.append(contentsOf: canonicalBody)
        return input
    }
}

extension RevisionID: Comparable {
    /// By generation, then digest.
    public static func < (lhs: Self, rhs: Self) -> Bool {
        if lhs.generation != rhs.generation { return lhs.generation < rhs.generation }
        // Of equal generations the texts differ only in their digests, whose hexadecimal sorts as their bytes do.
        return lhs.text.utf8.lexicographicallyPrecedes(rhs.text.utf8)
    }
}
