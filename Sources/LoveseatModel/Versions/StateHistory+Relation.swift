extension StateHistory {
    /// Returns how this state is related to another one, by everything that both histories say.
    ///
    /// Vectors that are in order decide, whatever revisions stand behind them. Couchbase Lite has a stricter rule
    /// (``relationOfCouchbaseLite(to:)``), which finds conflicts where there are none.
    package func relation(to other: StateHistory) -> StateRelation {
        guard let name else { return other.isEmpty ? .same : .older }
        guard let otherName = other.name else { return .newer }
        if name.isEquivalent(to: otherName) { return .same }
        return StateRelation(covers: covers(otherName), isCovered: other.covers(name))
    }

    /// Whether this state includes the one with a name.
    ///
    /// A version that stands for a revision of a tree says nothing about other revisions, even those of lower generations. So it counts for that
    /// revision only.
    private func covers(_ name: RevisionName) -> Bool {
        switch name {
        case .revision(let id):
            revisions.contains(id) || id.encodedVersion.map { vector.versions.contains($0) } ?? false
        case .version(let version) where version.source == .revisionTree:
            vector.versions.contains(version) || revisions.contains { $0.isEncoded(as: version) }
        case .version(let version):
            vector.covers(version)
        }
    }

    /// Returns how this state is related to another one by the rule of Couchbase Lite 4 (version-vectors.md §8). Loveseat needs it to know what such
    /// a peer will do.
    package func relationOfCouchbaseLite(to other: StateHistory) -> StateRelation {
        if isNamed(byEncodingIn: other) || other.isNamed(byEncodingIn: self) { return .same }
        let vectors = Part(vector.relation(to: other.vector), vector.isEmpty, other.vector.isEmpty)
        let lists = Part(
            Self.relation(revisions, other.revisions),
            revisions.isEmpty,
            other.revisions.isEmpty
        )
        return Self.relation(vectors, lists)
    }

    /// Whether the other history has no vector, and its newest revision is encoded as this vector's current version.
    private func isNamed(byEncodingIn other: StateHistory) -> Bool {
        guard let current = vector.current, other.vector.isEmpty else { return false }
        return other.revisions.first?.encodedVersion == current
    }

    /// How two vectors, or two lists of revisions, are related: the columns and rows of the table in §8.
    private enum Part {
        case bothEmpty, oneEmpty, otherEmpty, same, older, newer, conflict

        init(_ relation: StateRelation, _ isEmpty: Bool, _ isOtherEmpty: Bool) {
            self =
                switch (isEmpty, isOtherEmpty, relation) {
                case (true, true, _): .bothEmpty
                case (true, false, _): .oneEmpty
                case (false, true, _): .otherEmpty
                case (false, false, .same): .same
                case (false, false, .older): .older
                case (false, false, .newer): .newer
                case (false, false, .conflict): .conflict
                }
        }
    }

    /// The table in §8.
    private static func relation(_ vectors: Part, _ lists: Part) -> StateRelation {
        switch (vectors, lists) {
        case (.conflict, _), (_, .conflict): .conflict
        case (.bothEmpty, .bothEmpty), (.bothEmpty, .same): .same
        case (.bothEmpty, .oneEmpty), (.bothEmpty, .older): .older
        case (.bothEmpty, .otherEmpty), (.bothEmpty, .newer): .newer
        case (.oneEmpty, .otherEmpty), (.oneEmpty, .newer): .conflict
        case (.oneEmpty, _): .older
        case (.otherEmpty, .oneEmpty), (.otherEmpty, .older): .conflict
        case (.otherEmpty, _): .newer
        case (.same, .bothEmpty), (.same, .same): .same
        case (.older, .bothEmpty), (.older, .same): .older
        case (.newer, .bothEmpty), (.newer, .same): .newer
        case (.same, _), (.older, _), (.newer, _): .conflict
        }
    }

    /// The relation of two lists, the newest revision first. The first common revision decides: the list that it begins is the older one.
    private static func relation(_ list: [RevisionID], _ other: [RevisionID]) -> StateRelation {
        var places: [RevisionID: Int] = [:]
        for (place, id) in other.enumerated() where places[id] == nil { places[id] = place }
        for (place, id) in list.enumerated() {
            guard let otherPlace = places[id] else { continue }
            if place == 0, otherPlace == 0 { return .same }
            // A list that begins with it has nothing newer. If both have, they have gone different ways.
            return StateRelation(covers: otherPlace == 0, isCovered: place == 0)
        }
        return .conflict
    }
}
