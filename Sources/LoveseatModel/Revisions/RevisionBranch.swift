/// A revision that a peer of CouchDB's wire made, with its history (docs/decisions/0009).
package struct RevisionBranch: Sendable {
    /// Newest first, the revision itself included.
    package let history: [RevisionID]
    package let flags: RevisionTree.Flags
    package let body: JSONText

    package init(history: [RevisionID], flags: RevisionTree.Flags, body: JSONText) {
        (self.history, self.flags, self.body) = (history, flags, body)
    }

    /// Adds the revision beside those that are in a tree.
    ///
    /// - Returns: whether something changed.
    /// - Throws: `badHistory` for a history that contradicts what is known; `conflict` if the document has too many leaves.
    package func insert(
        into tree: inout RevisionTree,
        by policy: TreePolicy
    ) throws(RevisionTree.InsertRefusal) -> Bool {
        try RevisionTree.check(history)
        let id = history[0]
        let before = tree
        guard !tree.contains(id) || (tree.nodes[id]?.body == nil && tree.isLeaf(id)) else {
            // The history may reach further than what is known, or join two known lines.
            let node = tree.nodes[id]
            try tree.addLine(
                history,
                origin: nil,
                flags: node?.flags ?? [],
                body: node?.body ?? body,
                by: policy
            )
            if node?.body == nil { tree.nodes[id]?.body = nil }
            let isConflict = before.rule.lines(ofUndecided: before.rule.undecidedLeaves).contains(id)
            if isConflict { tree.keepBranches() }
            let noted = tree.formerLeaves
            policy.prune(&tree)
            if isConflict { return true }
            guard policy.putsAside else { return !tree.hasSameLines(as: before) }
            // Revisions that were put back for this are put aside again. A revision that a peer took for a leaf stays, which is not a
            // change.
            var known = before
            known.formerLeaves = noted
            policy.prune(&known)
            return !tree.hasSameLines(as: known)
        }
        try tree.addLine(history, origin: nil, flags: flags, body: body, by: policy)
        if let current = before.current, !tree.isAncestor(current.id, of: id) || tree.rule.losesToDeletion(id)
        {
            var kept = before
            kept.keepBranches()
            tree.closed = kept.closed
            guard tree.leaves.count <= RevisionTree.keptLeaves else {
                tree = before
                throw .conflict
            }
        }
        policy.prune(&tree)
        return true
    }

    /// Adds revisions as ``insert(into:by:)`` does for one after the other, in time that is proportional to their number.
    /// Pruning decides once, at the end.
    package static func insert(
        _ branches: [Self],
        into tree: inout RevisionTree,
        by policy: TreePolicy
    ) -> [Result<Bool, RevisionTree.InsertRefusal>] {
        var results: [Result<Bool, RevisionTree.InsertRefusal>] = []
        results.reserveCapacity(branches.count)
        var rest = branches[...]
        while !tree.keepsBranches, let branch = rest.popFirst() {
            results.append(branch.insertOrRefuse(into: &tree, policy))
        }
        insert(rest, into: &tree, policy, &results)
        return results
    }

    /// Adds the revision. If it is refused, it leaves nothing in the tree, which is stored for the others.
    private func insertOrRefuse(
        into tree: inout RevisionTree,
        _ policy: TreePolicy
    ) -> Result<Bool, RevisionTree.InsertRefusal> {
        let before = tree
        do throws(RevisionTree.InsertRefusal) {
            return .success(try insert(into: &tree, by: policy))
        } catch {
            tree = before
            return .failure(error)
        }
    }

    /// Adds revisions at once, or in halves if that is not possible.
    private static func insert(
        _ branches: ArraySlice<Self>,
        into tree: inout RevisionTree,
        _ policy: TreePolicy,
        _ results: inout [Result<Bool, RevisionTree.InsertRefusal>]
    ) {
        guard branches.count > 1 else {
            return results.append(contentsOf: branches.map { $0.insertOrRefuse(into: &tree, policy) })
        }
        if let areNew = insertAtOnce(branches, into: &tree, policy) {
            return results.append(contentsOf: areNew.map { .success($0) })
        }
        let middle = branches.startIndex + branches.count / 2
        insert(branches[..<middle], into: &tree, policy, &results)
        insert(branches[middle...], into: &tree, policy, &results)
    }

    /// Adds revisions to a document with kept branches by one merge.
    ///
    /// - Returns: whether each is new; nil, without a change, if their order matters, or one of them may not be added.
    private static func insertAtOnce(
        _ branches: ArraySlice<Self>,
        into tree: inout RevisionTree,
        _ policy: TreePolicy
    ) -> [Bool]? {
        var lines = TreeKnowledge()
        var heads: Set<RevisionID> = []
        var parents: [RevisionID: RevisionID?] = [:]
        var areNew: [Bool] = []
        for branch in branches {
            guard let id = branch.history.first, heads.insert(id).inserted else { return nil }
            guard !tree.contains(id) else {
                guard branch.isKnown(in: tree) else { return nil }
                areNew.append(false)
                continue
            }
            guard branch.history.count <= policy.keptOfLine, (try? RevisionTree.check(branch.history)) != nil,
                !branch.history.contains(where: \.isFiller)
            else { return nil }
            areNew.append(true)
            lines.nodes.append(
                RevisionTree.Node(
                    id: id,
                    parent: branch.history.dropFirst().first,
                    flags: branch.flags,
                    body: branch.body
                )
            )
            for (index, ancestor) in branch.history.enumerated().dropFirst() {
                let parent = index + 1 < branch.history.count ? branch.history[index + 1] : nil
                // Each line names the parents of its revisions. A parent that is named twice is added once.
                if let known = parents[ancestor] {
                    guard known == parent else { return nil }
                    continue
                }
                if let known = tree.nodes[ancestor]?.parent, known != parent { return nil }
                parents[ancestor] = parent
                lines.nodes.append(RevisionTree.Node(id: ancestor, parent: parent, flags: [], body: nil))
            }
        }
        guard heads.isDisjoint(with: parents.keys) else { return nil }
        guard !lines.nodes.isEmpty else { return areNew }
        let before = tree
        if tree.nodes.count + lines.nodes.count > policy.depth { tree.formerLeaves.value.formUnion(heads) }
        // A history may contradict the tree: the revisions are then added one by one, and the one at fault is refused.
        guard (try? tree.merge(lines, by: policy)) != nil, tree.leaves.count <= RevisionTree.keptLeaves else {
            tree = before
            return nil
        }
        policy.prune(&tree)
        return areNew
    }

    /// Whether the revision is in a tree with its content, and the history says nothing new about it.
    private func isKnown(in tree: RevisionTree) -> Bool {
        guard let id = history.first, tree.nodes[id]?.body != nil else { return false }
        return zip(history, history.dropFirst()).allSatisfy { tree.nodes[$0]?.parent == $1 }
    }
}
