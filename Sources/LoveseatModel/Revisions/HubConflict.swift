/// The current revision of this database against a revision that a hub has on another line (docs/decisions/0001, "Towards a hub").
struct HubConflict {
    /// The revision that was current here.
    let mine: CurrentRevisionRule.Candidate
    /// The hub's revision.
    let theirs: RevisionID

    init(_ mine: RevisionTree.Node, with theirs: RevisionID, in tree: RevisionTree) {
        self.mine = CurrentRevisionRule.Candidate(original: tree.original(mine.id), node: mine)
        self.theirs = theirs
    }

    /// Whether our current revision only repeats what a hub had before, while the hub now has something new on another line. A Loveseat
    /// reports the closed revisions itself.
    ///
    /// A copy of what ours replaced is not new: a client that knows only the hub's line puts it there (it does not know which revisions on
    /// the line are deletions).
    func saysNothingNew(in tree: RevisionTree) -> Bool {
        let original = tree.original(theirs)
        guard original != mine.original, !tree.isAncestor(theirs, of: mine.node.id),
            !tree.isAncestor(original, of: mine.original)
        else { return false }
        // A copy of something else on top of our revision was made by a peer that knew it.
        return tree.copies[theirs] != nil || !tree.isAncestor(mine.node.id, of: theirs)
    }

    /// Whether the hub's line shows that our live revision was put there again and again, and that another client did not accept it. This
    /// database need not have been one of those that did.
    func hasReturned(in tree: RevisionTree) -> Bool {
        !mine.node.isDeleted && returns(in: tree) >= CurrentRevisionRule.maximumReturns
    }

    /// How often the hub's line has our revision.
    private func returns(in tree: RevisionTree) -> Int { tree.returns(of: mine.original, to: theirs) }

    /// Closes our revision in favour of the hub's, unless only a deletion of another document would be left. This is only known if the
    /// deletion's line reaches its first revision, because a hub trims long histories.
    ///
    /// A peer that puts another revision on top of it each time knows a deletion that is not known here: the line does not show it.
    func giveWay(in tree: inout RevisionTree) {
        if isPutBack(in: tree) { return }
        var after = tree
        after.closed.insert(mine.original)
        if tree.nodes[theirs]?.isDeleted == false { reopen(tree.original(theirs), &after) }
        if !mine.node.isDeleted, let current = after.current, current.isDeleted,
            returns(in: tree) < CurrentRevisionRule.maximumReturns,
            tree.line(current.id).last?.generation == 1
        {
            return
        }
        after.setYielded(mine.original, true)
        tree = after
    }

    /// Closes our revision in favour of the hub's live one, even if that was closed: a hub announces it when the winner of several branches
    /// was deleted.
    func goBack(in tree: inout RevisionTree) {
        // The hub's revision is deleted, continues ours or a copy of it, or was put back in spite of our deletion.
        guard let node = tree.nodes[theirs], !node.isDeleted, tree.original(theirs) != mine.original,
            !tree.isAncestor(mine.node.id, of: theirs), !isPutBack(in: tree)
        else { return }
        var opened = tree.original(theirs)
        if tree.superseded.contains(opened) {
            // Its edits were closed in favour of the hub's revision, which is deleted by now.
            let edits = tree.candidates.filter {
                tree.closed.contains($0.original) && tree.isAncestor(theirs, of: $0.node.id)
            }
            // Ours may be alive, or no edit with its content may be left.
            guard mine.node.isDeleted, let edit = edits.max(by: { $0.precedes($1) }), edit.node.body != nil
            else { return }
            opened = edit.original
        } else if node.body == nil {
            return
        }
        tree.closed.insert(mine.original)
        reopen(opened, &tree)
    }

    /// Whether a live revision that the author of our deletion gave up was put beside it, or on top of it, by a peer that cannot know that.
    ///
    /// The peer gives way when the line has its revision three times and the deletion on top. A fourth time, it will not.
    private func isPutBack(in tree: RevisionTree) -> Bool {
        mine.node.isDeleted && tree.nodes[theirs]?.isDeleted == false
            && wasGivenUp(tree.original(theirs), in: tree)
            && timesPutBack(in: tree) <= CurrentRevisionRule.maximumReturns
    }

    /// How often the hub's line has its revision above ours. How often it has ours says less: that may have been put there against something
    /// else.
    private func timesPutBack(in tree: RevisionTree) -> Int {
        let line = tree.line(theirs).map(tree.original)
        return line.prefix(line.lastIndex(of: mine.original) ?? 0).count { $0 == tree.original(theirs) }
    }

    /// Whether a revision was closed by a peer that knew it, and not only by giving way.
    private func wasGivenUp(_ original: RevisionID, in tree: RevisionTree) -> Bool {
        tree.closed.contains(original)
            && !tree.nodes.values.contains {
                $0.flags.contains(.yielded) && tree.original($0.id) == original
            }
    }

    /// Makes a closed candidate an open one.
    private func reopen(_ original: RevisionID, _ tree: inout RevisionTree) {
        tree.closed = tree.closed.filter { tree.original($0) != original }
        tree.setYielded(original, false)
    }
}
