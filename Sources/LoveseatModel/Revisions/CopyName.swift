/// The revision ID of a copy for a hub, which says what it is a copy of (docs/decisions/0001).
///
/// The generation follows that of the hub's revision. The digest has 20 bytes: the generation of the original (4 bytes, the highest
/// first), the first 5 bytes of the original's digest, the first 3 bytes of its origin's digest, and 8 bytes of a check: the SHA-1 of
/// ``format``, the document ID, the 12 bytes before, and the ID of the hub's revision.
package struct CopyName: Hashable, Sendable {
    /// The beginning of the text from which the check is computed. Another format of the name has another number here.
    private static let format = "loveseat copy 1"
    private static let claimLength = 12
    private static let checkLength = 8

    /// The 12 bytes in front of the check.
    private let claim: [UInt8]

    /// Creates the name of a copy from its original and its origin, which may both be abbreviated.
    package init(original: RevisionID, origin: RevisionID) {
        let generation = stride(from: 24, through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: original.generation >> UInt32($0))
        }
        claim = generation + original.leadingDigest(5) + origin.leadingDigest(3)
    }

    /// Reads a revision ID as the name of a copy; nil if it cannot be one. The check is not verified.
    package init?(_ id: RevisionID) {
        guard id.digestLength == 2 * (Self.claimLength + Self.checkLength) else { return nil }
        let digest = id.leadingDigest(Self.claimLength)
        guard digest.prefix(4).contains(where: { $0 > 0 }), digest[0] < 0x80 else { return nil }
        claim = digest
    }

    /// The original, abbreviated to the first 5 bytes of its digest.
    package var original: RevisionID {
        RevisionID(generation: claim.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }, digest: claim[4..<9])
    }

    /// The first revision of the original's line, abbreviated to the first 3 bytes of its digest. Its generation is not known.
    package var origin: RevisionID { RevisionID(generation: 1, digest: claim[9...]) }

    /// Whether the name can be that of a copy of this revision.
    package func isOf(_ original: RevisionID) -> Bool { original.abbreviated == self.original }

    /// Whether the name can be that of a copy from the line of this first revision.
    package func isOfLine(_ origin: RevisionID) -> Bool { origin.leadingDigest(3) == claim[9...].map { $0 } }

    /// The ID of the copy on top of a hub's revision.
    package func id(over parent: RevisionID, of documentID: String, sha1: ([UInt8]) -> [UInt8]) -> RevisionID
    {
        let text = Array(Self.format.utf8) + Array(documentID.utf8) + claim + Array(parent.text.utf8)
        return RevisionID(
            generation: parent.generation &+ 1,
            digest: claim + sha1(text).prefix(Self.checkLength)
        )
    }

    /// Whether a revision on top of another one is a copy.
    package static func isCopy(
        _ id: RevisionID,
        over parent: RevisionID,
        of documentID: String,
        sha1: ([UInt8]) -> [UInt8]
    ) -> Bool {
        guard parent.generation < .max, id.generation == parent.generation + 1, let name = CopyName(id) else {
            return false
        }
        return name.id(over: parent, of: documentID, sha1: sha1) == id
    }
}

extension RevisionID {
    /// The length of an original's abbreviated digest in a copy's name, in bytes.
    private static let abbreviation = 5

    /// The ID as it is abbreviated in the name of a copy.
    var abbreviated: RevisionID {
        RevisionID(generation: generation, digest: leadingDigest(Self.abbreviation))
    }

    /// Whether this may be an abbreviation of another ID.
    var isAbbreviation: Bool { digestLength == 2 * Self.abbreviation }

    /// The first bytes of the digest, followed by zeros if it is shorter. A digest that is not lower-case hexadecimal counts as its
    /// characters.
    func leadingDigest(_ count: Int) -> [UInt8] {
        let text = Array(digest.utf8)
        var bytes: [UInt8] = []
        if text.count.isMultiple(of: 2),
            text.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        {
            for place in stride(from: 0, to: min(text.count, 2 * count), by: 2) {
                bytes.append(
                    (hexadecimalDigit(text[place]) ?? 0) << 4 | (hexadecimalDigit(text[place + 1]) ?? 0)
                )
            }
        } else {
            bytes = Array(text.prefix(count))
        }
        return bytes + repeatElement(0, count: max(0, count - bytes.count))
    }
}
