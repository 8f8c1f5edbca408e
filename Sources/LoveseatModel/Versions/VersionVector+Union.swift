extension VersionVector {
    /// Returns the vector of one state that two databases describe by different vectors: everything that either of them includes
    /// (version-vectors.md §12.1, R4). The order of both makes no difference.
    ///
    /// Normally both have the same current version. Two databases that made the same edit gave it different versions, of which the greater one
    /// remains the name. Merge versions stay as long as nothing later is known of their authors.
    package func united(with other: VersionVector) -> VersionVector {
        guard self != other, let current else { return other }
        guard let otherCurrent = other.current else { return self }
        return current < otherCurrent ? other.including(self) : including(other)
    }

    /// Returns the vector of this state with everything that another one includes, such as one from which it was made.
    package func including(_ other: VersionVector) -> VersionVector {
        guard let name = current else { return other }
        let mayAddMerge = other.current == name && other.isMerge && other.mergeVersions != mergeVersions
        if !mayAddMerge, other.versions.allSatisfy(versions.contains) { return self }
        var latest = Self.latestTimes(self, other)
        // A state that both describe was merged from the same versions, unless one of the vectors is forged.
        var merged: Set<Version> = []
        for vector in [self, other] where vector.current == name { merged.formUnion(vector.mergeVersions) }
        let keepsMerge =
            merged.count { $0.source == name.source } <= 1
            && merged.allSatisfy { version in
                version.source == name.source
                    ? version.time < name.time : latest[version.source] == version.time
            }
        if !keepsMerge { merged = [] }
        for version in merged { latest[version.source] = nil }
        latest[name.source] = nil
        return VersionVector(unchecked: [name] + merged, previous: Self.versions(latest)).limited()
    }

    /// Whether all times are such that the vector can be stored and sent.
    var hasValidTimes: Bool { versions.allSatisfy { HybridClock.validTimes.contains($0.time) } }

    /// Whether this state includes a version. One that stands for a revision of a tree says nothing about other revisions of trees.
    func includes(_ version: Version) -> Bool {
        version.source == .revisionTree ? versions.contains(version) : covers(version)
    }
}
