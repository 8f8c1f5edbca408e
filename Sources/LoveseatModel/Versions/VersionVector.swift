/// The edits that a state of a document includes: its current version, and for each other source the last version that went into it
/// (version-vectors.md §1, §5).
///
/// A state that was just merged names the two versions of which it was made. The vector of a document without versions is empty.
package struct VersionVector: Hashable, Sendable, CustomStringConvertible {
    /// All versions: the current one, the merge versions, the previous ones.
    package let versions: [Version]
    /// The number of versions before the previous ones: the current one and the merge versions.
    let currentCount: Int

    /// The maximum number of versions (version-vectors.md §7.5). Vectors of peers with more are refused, ours lose the oldest ones.
    package static let maximumCount = 1_000
    /// The maximum length of a vector's text, in bytes. Texts of ``maximumCount`` versions are shorter.
    package static let maximumBytes = 1 << 16

    /// Creates the vector of a document without versions.
    package init() {
        versions = []
        currentCount = 0
    }

    /// Creates a vector of one version.
    package init(_ version: Version) {
        versions = [version]
        currentCount = 1
    }

    /// Creates a vector from versions that are known to be valid together, in any order but for the current one.
    init(unchecked currents: [Version], previous: [Version]) {
        versions =
            currents.prefix(1) + currents.dropFirst().sorted { $0.isListed(before: $1) }
            + previous.sorted { $0.isListed(before: $1) }
        currentCount = currents.count
    }

    /// Creates a vector from the current version, the merge versions and the previous ones. The last two may be in any order.
    ///
    /// - Throws: ``VersionError`` if a source occurs twice. Only the current version's may be that of a merge version too, with an older time.
    package init(_ versions: [Version], currentCount: Int) throws(VersionError) {
        guard versions.count <= Self.maximumCount else { throw VersionError(.tooManyVersions) }
        guard (0...versions.count).contains(currentCount), versions.isEmpty || currentCount > 0 else {
            throw VersionError(.missingVersion)
        }
        var sources: Set<SourceID> = []
        var hasTwin = false
        if versions.count > 1 { sources.reserveCapacity(versions.count) }
        for (index, version) in versions.enumerated() where !sources.insert(version.source).inserted {
            let isTwin = index < currentCount && version.source == versions[0].source
            guard isTwin, !hasTwin else { throw VersionError(.duplicateSource) }
            guard version.time < versions[0].time else { throw VersionError(.mergeVersionNotOlder) }
            hasTwin = true
        }
        self.init(
            unchecked: Array(versions.prefix(currentCount)),
            previous: Array(versions.dropFirst(currentCount))
        )
    }

    /// Creates a vector from its text. Readers accept any number of blanks behind separators, and versions in any order.
    ///
    /// - Throws: ``VersionError`` for anything else, for more than ``maximumCount`` versions and for more than ``maximumBytes``.
    package init(_ text: some StringProtocol) throws(VersionError) {
        var reader = try VersionReader(text)
        self = try reader.vector().vector
    }

    /// Creates a vector from the UTF-8 bytes of its text.
    ///
    /// - Throws: ``VersionError``, as for a text.
    package init(utf8 bytes: some Collection<UInt8>) throws(VersionError) {
        var reader = try VersionReader(bytes)
        self = try reader.vector().vector
    }

    /// Whether the document has no version.
    package var isEmpty: Bool { versions.isEmpty }

    /// The version that names this state; nil for an empty vector.
    package var current: Version? { versions.first }

    /// The versions of which this state was merged, the latest first; empty if it is not the direct result of a merge.
    package var mergeVersions: ArraySlice<Version> { versions[..<currentCount].dropFirst() }

    /// Whether this state is the direct result of a merge.
    package var isMerge: Bool { currentCount > 1 }

    /// The last versions of other sources, the latest first.
    package var previous: ArraySlice<Version> { versions[currentCount...] }

    /// The vector as text: `cv`, `cv; pv, pv`, `cv, mv, mv; pv` or `cv, mv, mv;` (version-vectors.md §5.1).
    package var text: String {
        let currents = versions[..<currentCount].map(\.text).joined(separator: ", ")
        if previous.isEmpty { return isMerge ? currents + ";" : currents }
        return "\(currents); \(previous.map(\.text).joined(separator: ", "))"
    }

    /// The vector as ``text``.
    package var description: String { text }
}
