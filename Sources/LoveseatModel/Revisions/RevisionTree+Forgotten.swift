import LoveseatAssertions

/// Fingerprints of the revisions that pruning removed from the middle of lines (docs/decisions/0001).
///
/// A peer may still have such a revision as its current one: because its commits were lost, it was restored from a backup, or
/// the connection broke before the reply. Without the fingerprint the revision looks like another branch when it arrives again.
extension RevisionTree {
    /// The maximum number of fingerprints between a node and its parent.
    static let fingerprintsKept = 128

    /// Whether a revision was pruned from the line of one that is here.
    package func hasForgotten(_ id: RevisionID) -> Bool {
        nodes[id] == nil && nodes.values.contains { $0.hasForgotten(id) }
    }

    /// The arriving revisions that were pruned here, and whether each is a leaf there.
    func forgotten(among arriving: [Node]) -> [(id: RevisionID, isLeaf: Bool)] {
        let forgetful = nodes.values.filter { !$0.forgotten.isEmpty }
        guard !forgetful.isEmpty else { return [] }
        let inner = Set(arriving.compactMap(\.parent))
        return arriving.map(\.id).filter { id in
            nodes[id] == nil && forgetful.contains { $0.hasForgotten(id) }
        }.map { ($0, !inner.contains($0)) }
    }

    /// Links the next revision that was kept with its forgotten ancestor, which has arrived again.
    ///
    /// `isLeaf`: whether it was a leaf at the sender, which has to be sent its descendants.
    mutating func recall(_ ancestor: RevisionID, isLeaf: Bool, _ steps: inout Int) throws(InsertRefusal) {
        let descendants = nodes.values.filter { $0.hasForgotten(ancestor) }.map(\.id)
        for id in descendants { try link(id, to: ancestor, &steps) }
        if isLeaf { nodes[ancestor]?.flags.insert(.joint) }
    }

    /// Makes a revision the parent of another one, which may have had an older parent before.
    mutating func setParent(of id: RevisionID, to parent: RevisionID) {
        // After an edit over a damaged row, whose revision is not in its tree, a parent may be missing.
        guard let index = nodes.index(forKey: id) else { return }
        nodes.values[index].parent = parent
        if nodes.values[index].forgotten.isEmpty { return }
        let below = nodes.values[index].removeFingerprints(below: parent)
        if nodes[parent]?.forgotten.isEmpty == true { nodes[parent]?.forgotten = below }
    }
}

extension RevisionTree.Node {
    /// Whether a revision was between this one and its parent before it was pruned.
    func hasForgotten(_ other: RevisionID) -> Bool {
        guard !forgotten.isEmpty, other.generation < id.generation,
            other.generation > parent?.generation ?? 0
        else { return false }
        let place = Int(id.generation - other.generation) - 1
        return place < forgotten.count && forgotten[place] == other.fingerprint
    }

    /// Puts the parent's parent in its place, and keeps the parent's fingerprint.
    mutating func forget(_ parent: Self) {
        self.parent = parent.parent
        guard parent.id.generation < id.generation else {
            return impossible("revision \(id) has the parent \(parent.id), which is not older")
        }
        let distance = Int(id.generation - parent.id.generation) - 1
        if distance >= RevisionTree.fingerprintsKept { return }
        forgotten = Array(forgotten.prefix(distance))
        // Nothing is known of generations that were not here either.
        forgotten += repeatElement(0, count: distance - forgotten.count)
        forgotten.append(parent.id.fingerprint)
        forgotten += parent.forgotten.prefix(RevisionTree.fingerprintsKept - forgotten.count)
    }

    /// Removes the fingerprints of the parent and of the revisions below it.
    ///
    /// - Returns: those of the revisions below it.
    fileprivate mutating func removeFingerprints(below parent: RevisionID) -> [UInt32] {
        guard parent.generation < id.generation else { return [] }
        let distance = Int(id.generation - parent.generation) - 1
        defer { forgotten = Array(forgotten.prefix(distance)) }
        return Array(forgotten.dropFirst(distance).dropFirst())
    }
}

extension RevisionID {
    /// 32 bits that two revisions of one generation hardly ever share; never 0.
    var fingerprint: UInt32 {
        max(1, text.utf8.reduce(0x811C_9DC5) { ($0 ^ UInt32($1)) &* 0x0100_0193 })
    }
}
