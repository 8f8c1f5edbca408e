extension RevisionTreeDecoder {
    /// The version of the current revision in a stored form, of which nothing else is read; nil if it has none.
    package static func currentVersion(in bytes: [UInt8]) -> Version? {
        // Most trees have no vectors.
        guard bytes.first == RevisionTreeEncoder.versionWithVectors else { return nil }
        var input = bytes.dropFirst()
        guard let nodes = input.popCompact(), input.skipNodes(nodes), input.skipPairs(),
            input.skipRevisions(),
            let copies = input.popCompact(), input.skipNumbers(copies), input.skipFingerprints(),
            // The current revision is the first node.
            let vectors = input.popCompact(), vectors > 0, input.popCompact() == 0,
            let length = input.popCompact(), length <= input.count
        else { return nil }
        // Bytes that are damaged have no version.
        return try? VersionVector(encoded: input.prefix(length)).current
    }
}

extension ArraySlice<UInt8> {
    fileprivate mutating func skipNumbers(_ count: Int) -> Bool {
        for _ in 0..<count where popCompact() == nil { return false }
        return true
    }

    /// Skips the marks of remotes.
    fileprivate mutating func skipPairs() -> Bool {
        guard let count = popCompact(), count <= self.count else { return false }
        return skipNumbers(2 * count)
    }

    /// Skips the closed revisions.
    fileprivate mutating func skipRevisions() -> Bool {
        guard let revisions = popCompact() else { return false }
        for _ in 0..<revisions {
            guard popCompact() != nil, let stored = popCompact() else { return false }
            let length = RevisionID.lengthOfStored(stored)
            guard length <= count else { return false }
            self = dropFirst(length)
        }
        return true
    }

    /// Skips the fingerprints of forgotten revisions.
    fileprivate mutating func skipFingerprints() -> Bool {
        guard let nodes = popCompact() else { return false }
        for _ in 0..<nodes {
            guard popCompact() != nil, let fingerprints = popCompact(), fingerprints <= count / 4 else {
                return false
            }
            self = dropFirst(4 * fingerprints)
        }
        return true
    }
}
