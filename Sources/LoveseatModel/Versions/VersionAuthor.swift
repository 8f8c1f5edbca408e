/// A database as an author of versions: its source and its clock.
///
/// Each of its versions is later than all that it made or saw. A caller that stores ``clock``'s last time together with each version, and goes on after
/// that time, never issues a version twice.
package struct VersionAuthor: Hashable, Sendable {
    /// The name of the database in versions.
    package let source: SourceID
    /// The clock that gives the versions their times.
    package private(set) var clock: HybridClock

    /// Creates an author that goes on where its clock stands.
    ///
    /// - Throws: ``VersionError`` if the source is ``SourceID/revisionTree``, which is not a database's.
    package init(_ source: SourceID, clock: HybridClock = HybridClock()) throws(VersionError) {
        guard source != .revisionTree else { throw VersionError(.reservedSource) }
        self.source = source
        self.clock = clock
    }

    /// Returns the vector of a local edit of a state, whatever the system's clock says (version-vectors.md §2.2).
    ///
    /// - Throws: ``VersionError`` only if the author has a version at the end of all times.
    package mutating func edit(_ vector: VersionVector, wall: UInt64) throws(VersionError) -> VersionVector {
        var clock = clock
        let time = clock.now(wall: wall, after: vector.time(of: source) ?? 0)
        let edited = try vector.edited(by: source, at: time)
        self.clock = clock
        return edited
    }

    /// Returns the vector of new content that resolves a conflict of two states (version-vectors.md §7.2).
    ///
    /// - Throws: ``VersionError`` if a vector is empty, or if both states have the same author. Then the clock stays as it is.
    package mutating func merge(
        _ first: VersionVector,
        _ second: VersionVector,
        wall: UInt64
    ) throws(VersionError) -> VersionVector {
        var clock = clock
        for version in [first.current, second.current].compactMap({ $0 }) {
            // The states were accepted when they arrived. If the system's clock was set back since, the merge is earlier than one of
            // them, and includes it all the same.
            try? clock.see(version.time, wall: wall)
        }
        let own = max(first.time(of: source) ?? 0, second.time(of: source) ?? 0)
        let time = clock.now(wall: wall, after: own)
        let merged = try VersionVector.merge(first, second, by: source, at: time)
        self.clock = clock
        return merged
    }

    /// Notes the times of a vector that arrived.
    ///
    /// - Throws: ``VersionError`` if it is refused; the clock then stays as it is.
    package mutating func see(_ vector: VersionVector, wall: UInt64) throws(VersionError) {
        try clock.see(vector, wall: wall)
    }
}
