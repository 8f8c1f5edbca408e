extension RevisionID {
    /// The place of a revision among those of the same state, as CouchDB ranks them: by generation, then by the digest's bytes, which are
    /// 16 for 32 hexadecimal digits.
    package struct Rank: Comparable {
        let generation: UInt32
        let digest: [UInt8]

        package static func < (one: Self, other: Self) -> Bool {
            guard one.generation == other.generation else { return one.generation < other.generation }
            return one.digest.lexicographicallyPrecedes(other.digest)
        }
    }

    /// See ``Rank``. Making one costs more than comparing two.
    package var rank: Rank { Rank(generation: generation, digest: rankedDigest) }

    /// Whether CouchDB ranks this revision behind another one of the same state.
    package func ranksBehind(_ other: Self) -> Bool {
        guard generation == other.generation else { return generation < other.generation }
        return rank < other.rank
    }

    private var rankedDigest: [UInt8] {
        let text = Array(digest.utf8)
        guard text.count == 32 else { return text }
        let digits = text.compactMap { hexadecimalDigit($0) }
        guard digits.count == 32 else { return text }
        return stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
