extension RevisionID {
    /// Whether the digest is what Couchbase's peers accept: an even number of lower-case hexadecimal digits.
    package var isHexadecimal: Bool {
        digestLength % 2 == 0
            && digest.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// The version that stands for this revision of a tree in a vector: the generation and the first ten digits of the digest, by
    /// ``SourceID/revisionTree`` (version-vectors.md §8).
    ///
    /// It is nil for digests that are not hexadecimal, and for generations beyond 8,388,607, whose times would not be valid. Two revisions whose
    /// digests begin alike have the same version.
    package var encodedVersion: Version? {
        guard isHexadecimal, generation <= Self.maximumEncodedGeneration else { return nil }
        var time = UInt64(generation)
        var digits = digest.utf8.makeIterator()
        for _ in 0..<10 {
            let digit = digits.next().flatMap(VersionReader.hexadecimalValue) ?? 0
            time = time << 4 | UInt64(digit)
        }
        return Version(unchecked: time, .revisionTree)
    }

    /// Whether a version stands for this revision. Most revisions of a long list have another generation, so their digests are not read.
    func isEncoded(as version: Version) -> Bool {
        UInt64(generation) == version.time >> 40 && encodedVersion == version
    }

    private static let maximumEncodedGeneration: UInt32 = (1 << 23) - 1
}
