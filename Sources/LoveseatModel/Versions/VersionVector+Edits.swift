extension VersionVector {
    /// Returns the vector of an edit, a deletion or an undeletion of this state (version-vectors.md §7.1). The merge versions become previous ones.
    ///
    /// - Throws: ``VersionError`` if the author's last version is not older. ``VersionAuthor`` makes times that are later.
    package func edited(by author: SourceID, at time: UInt64) throws(VersionError) -> VersionVector {
        let version = try next(by: author, at: time, after: self.time(of: author))
        // Of the current version and its twin among the merge versions, the twin goes.
        let previous = versions.enumerated().filter { index, version in
            version.source != author && (index == 0 || version.source != versions[0].source)
        }.map(\.element)
        return VersionVector(unchecked: [version], previous: previous).limited(keeping: current)
    }

    /// Returns the vector of new content that resolves a conflict of two states (version-vectors.md §7.2).
    ///
    /// - Throws: ``VersionError`` if a vector is empty, if both states have the same author, or if the author's last version is not older.
    package static func merge(
        _ first: VersionVector,
        _ second: VersionVector,
        by author: SourceID,
        at time: UInt64
    ) throws(VersionError) -> VersionVector {
        guard let one = first.current, let two = second.current else { throw VersionError(.emptyVector) }
        guard one.source != two.source else { throw VersionError(.sameAuthor) }
        var latest = latestTimes(first, second)
        let version = try first.next(by: author, at: time, after: latest[author])
        for source in [author, one.source, two.source] { latest[source] = nil }
        return VersionVector(unchecked: [version, one, two], previous: versions(latest)).limited()
    }

    /// Returns this state's vector after it has won a conflict as it is, so that it includes the loser: a trivial merge (version-vectors.md §7.3).
    /// It normally names the same current version as before, and compares as the same state.
    ///
    /// If ``canWinUnchanged(over:)`` is false, it names the loser's version instead, with the winner's content: merge the states then.
    ///
    /// - Throws: ``VersionError`` if this vector is empty.
    package func winning(over loser: VersionVector) throws(VersionError) -> VersionVector {
        guard let current else { throw VersionError(.emptyVector) }
        var latest = Self.latestTimes(self, loser)
        let currents = versions[..<currentCount]
        // A twin of the current version is always older, and does not end the merge.
        let keepsMerge =
            isMerge
            && currents.dropFirst().allSatisfy { version in
                version.source == current.source || latest[version.source] == version.time
            }
        let time = latest[current.source] ?? current.time
        let isStillCurrent = time == current.time
        let kept =
            keepsMerge && isStillCurrent ? Array(currents) : [Version(unchecked: time, current.source)]
        for version in kept { latest[version.source] = nil }
        return VersionVector(unchecked: kept, previous: Self.versions(latest)).limited(keeping: loser.current)
    }

    /// Whether this state can win over another one as it is: the other one includes no later version by the author of this state's current version.
    /// Otherwise one version would name two contents (version-vectors.md §12.1, R3).
    package func canWinUnchanged(over loser: VersionVector) -> Bool {
        guard let current, let time = loser.time(of: current.source) else { return true }
        return time <= current.time
    }

    /// Returns the vector without previous versions that are no longer needed (version-vectors.md §7.5).
    ///
    /// A vector loses nothing before it has more than 64 versions. Then it loses those that are older than 60 days, the oldest first, and keeps
    /// at least eight previous ones. A version that stands for a tree's revision has no age, and stays.
    ///
    /// - Parameter wall: The system's clock, in nanoseconds since 1970.
    /// - Returns: This vector, or a shorter one.
    package func pruned(wall: UInt64) -> VersionVector {
        guard versions.count > Self.prunedCount else { return self }
        let oldest = wall.subtractingSaturated(Self.prunedAge)
        var room = previous.count - Self.keptCount
        // The last ones are the oldest.
        let kept = previous.reversed().filter { version in
            if room <= 0 || version.time >= oldest || version.source == .revisionTree { return true }
            room -= 1
            return false
        }
        return VersionVector(unchecked: Array(versions[..<currentCount]), previous: kept)
    }

    private static let prunedCount = 64
    private static let prunedAge: UInt64 = 60 * 24 * 60 * 60 * 1_000_000_000
    private static let keptCount = 8

    /// A new version, which has to be later than its author's last one.
    private func next(
        by author: SourceID,
        at time: UInt64,
        after last: UInt64?
    ) throws(VersionError) -> Version {
        guard time > last ?? 0 else { throw VersionError(.timeNotLater) }
        return Version(unchecked: time, author)
    }

    static func latestTimes(_ first: VersionVector, _ second: VersionVector) -> [SourceID: UInt64] {
        var latest: [SourceID: UInt64] = [:]
        latest.reserveCapacity(first.versions.count + second.versions.count)
        for version in first.versions + second.versions {
            latest[version.source] = max(version.time, latest[version.source] ?? 0)
        }
        return latest
    }

    static func versions(_ times: [SourceID: UInt64]) -> [Version] {
        times.map { Version(unchecked: $0.value, $0.key) }
    }

    /// The vector without its oldest versions beyond the maximum, so that every reader accepts it. It keeps the state that was replaced.
    func limited(keeping replaced: Version? = nil) -> VersionVector {
        var excess = versions.count - Self.maximumCount
        if excess <= 0 { return self }
        let kept = previous.reversed().filter { version in
            if excess <= 0 || version == replaced { return true }
            excess -= 1
            return false
        }
        return VersionVector(unchecked: Array(versions[..<currentCount]), previous: kept)
    }
}
