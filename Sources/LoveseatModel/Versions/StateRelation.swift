/// How a state of a document is related to another one.
package enum StateRelation: Hashable, Sendable {
    /// Both are the same state.
    case same
    /// The other state includes this one.
    case older
    /// This state includes the other one.
    case newer
    /// Neither state replaces the other one.
    case conflict

    /// The relation of two different states (version-vectors.md §6). States that cover each other are in conflict: two peers have resolved one
    /// conflict in opposite ways.
    init(covers: Bool, isCovered: Bool) {
        self =
            switch (covers, isCovered) {
            case (true, false): .newer
            case (false, true): .older
            case (true, true), (false, false): .conflict
            }
    }

    /// The relation as the other state sees it.
    package var reversed: StateRelation {
        switch self {
        case .same: .same
        case .older: .newer
        case .newer: .older
        case .conflict: .conflict
        }
    }
}

extension VersionVector {
    /// The time of a source's last version that this state includes; nil if it includes none.
    package func time(of source: SourceID) -> UInt64? {
        // Of the current version and an older merge version by its author, the current one comes first.
        versions.first { $0.source == source }?.time
    }

    /// Whether this state includes a version: it names a version of the same source that is as late or later (version-vectors.md §6).
    package func covers(_ version: Version) -> Bool {
        time(of: version.source).map { $0 >= version.time } ?? false
    }

    /// Returns how this state is related to another one (version-vectors.md §6).
    ///
    /// Equal current versions are the same state, whatever else the vectors name. The relation is not transitive: a trivial
    /// merge (``winning(over:)``) adds versions to a vector of which later edits by other sources do not know.
    package func relation(to other: VersionVector) -> StateRelation {
        guard let current else { return other.isEmpty ? .same : .older }
        guard let otherCurrent = other.current else { return .newer }
        if current == otherCurrent { return .same }
        return StateRelation(covers: covers(otherCurrent), isCovered: other.covers(current))
    }

    /// Returns how this state is related to a single version (version-vectors.md §6). It is never in conflict with one: `newer` or `same` means that
    /// this state descends from the version.
    package func relation(to version: Version) -> StateRelation {
        guard covers(version) else { return .older }
        return current == version ? .same : .newer
    }

    /// Returns how this state is related to another one whose content is known to be equal or not. Two merges of the same versions with equal
    /// content are the same state (version-vectors.md §7.4).
    package func relation(to other: VersionVector, hasEqualContent: Bool) -> StateRelation {
        let relation = relation(to: other)
        let isRedundant = hasEqualContent && isMerge && other.isMerge && mergeVersions == other.mergeVersions
        return isRedundant ? .same : relation
    }
}
