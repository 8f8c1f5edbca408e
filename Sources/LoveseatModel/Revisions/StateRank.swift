/// The place of a state among those that are in conflict with it, where versions decide: a version is above a revision ID, of two versions the
/// greater one is above, and of two IDs the greater one (version-vectors.md §12, and R1 in §12.1).
package struct StateRank: Comparable {
    private let version: Version?
    private let revision: RevisionID

    /// Creates the rank of a revision.
    ///
    /// `version`: the version that names it to peers with versions; nil if it has none.
    package init(_ version: Version?, _ revision: RevisionID) {
        (self.version, self.revision) = (version, revision)
    }

    package static func < (lhs: Self, rhs: Self) -> Bool {
        switch (lhs.version, rhs.version) {
        case (let version?, let other?):
            version != other ? version < other : lhs.revision < rhs.revision
        case (nil, nil): lhs.revision < rhs.revision
        case (nil, _?): true
        case (_?, nil): false
        }
    }
}
