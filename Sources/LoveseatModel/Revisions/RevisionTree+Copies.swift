/// Copies: revisions that databases made for hubs (docs/decisions/0001).
///
/// Each says in its name what it is a copy of. So only the set of copies is stored, and everything else follows from the nodes and the
/// closed revisions.
extension RevisionTree {
    /// The original of a copy, abbreviated as long as it is not known; otherwise the revision itself.
    package func original(_ id: RevisionID) -> RevisionID {
        guard var original = copies[id] else { return id }
        // Only a forged name says that it is a copy of a copy.
        for _ in 0..<Self.copiesFollowed {
            guard let next = copies[original] else { break }
            original = next
        }
        return original
    }

    fileprivate static let copiesFollowed = 4

    /// A revision that is here, or the original of a copy that is not here yet because the hub's reply has not come; otherwise nil.
    package func known(_ id: RevisionID) -> RevisionID? {
        if contains(id) { return id }
        guard let name = CopyName(id) else { return nil }
        return nodes.keys.filter(name.isOf).max()
    }

    /// Adds revisions that are here to the copies, and finds the originals of all: an original, or a closed revision, may have been
    /// known only by its abbreviation before.
    mutating func addCopies(_ new: some Sequence<RevisionID>) {
        for id in new where copies[id] == nil && nodes[id] != nil {
            copies[id] = CopyName(id)?.original
        }
        completeCopies()
    }

    /// Finds the originals of all copies that are left.
    mutating func completeCopies() {
        if copies.isEmpty { return }
        for id in copies.keys {
            copies[id] = nodes[id] == nil ? nil : CopyName(id)?.original
        }
        let abbreviations = Set(copies.values)
        var generations: Set<UInt32> = []
        for id in abbreviations { generations.insert(id.generation) }
        var whole: [RevisionID: RevisionID] = [:]
        func complete(_ id: RevisionID) {
            if !generations.contains(id.generation) { return }
            let abbreviation = id.abbreviated
            if abbreviation == id || !abbreviations.contains(abbreviation) { return }
            whole[abbreviation] = max(id, whole[abbreviation] ?? id)
        }
        for id in nodes.keys { complete(id) }
        for id in closed { complete(id) }
        for (id, original) in copies { if let found = whole[original] { copies[id] = found } }
        if !closed.isEmpty { closed = Set(closed.map { original(whole[$0] ?? $0) }) }
    }

    /// How often a line has a revision, as itself or as a copy.
    func returns(of original: RevisionID, to id: RevisionID) -> Int {
        line(id).count { self.original($0) == original }
    }

    /// The origin of a revision's content: that of the nearest copy on its line, which the content continues; without one, that
    /// of its line.
    package func origin(of id: RevisionID) -> RevisionID {
        var origins = Origins(of: self)
        return origins.origin(of: id)
    }

    /// Finds origins. To find those of many revisions takes one search for all origins that are known only by their names in copies.
    struct Origins {
        private let tree: RevisionTree
        /// The lowest revision with each abbreviation, as soon as one is needed.
        private var named: [[UInt8]: RevisionID]?

        init(of tree: RevisionTree) { self.tree = tree }

        mutating func origin(of id: RevisionID) -> RevisionID {
            var id = id
            for _ in 0..<RevisionTree.copiesFollowed {
                let line = tree.line(id)
                guard !tree.copies.isEmpty, let copy = line.first(where: { tree.copies[$0] != nil }) else {
                    return line.last ?? id
                }
                let original = tree.original(copy)
                guard tree.contains(original) else {
                    return CopyName(copy).map { origin(named: $0.origin) } ?? id
                }
                id = original
            }
            return id
        }

        /// The origin whose abbreviation is in a copy's name.
        private mutating func origin(named abbreviation: RevisionID) -> RevisionID {
            let all =
                named ?? Dictionary(tree.nodes.keys.map { ($0.leadingDigest(3), $0) }, uniquingKeysWith: min)
            named = all
            return all[abbreviation.leadingDigest(3)].flatMap { tree.line($0).last } ?? abbreviation
        }
    }
}
