/// The marks: which revision each remote database is known to have as its current one.
extension RevisionTree {
    /// Whether a remote is known to have had a revision, or a copy of it, as its current one.
    package func isMarked(_ node: Node?, at remote: Remote?) -> Bool {
        guard let node, let remote, let mark = remotes[remote] else { return false }
        return original(mark) == original(node.id)
    }

    /// Whether a remote is known to have the current revision, a copy of it, or the same content on another line.
    package func hasCurrent(_ remote: Remote) -> Bool { remotes[remote].map(isCurrent) ?? false }

    /// Whether a remote is known to have the content of the current revision, even as an ancestor: a document that is deleted again is
    /// deleted.
    package func agreesInContent(with remote: Remote) -> Bool {
        guard let mark = remotes[remote], let node = nodes[mark], let current else { return false }
        return isCurrent(mark) || node.saysTheSame(as: current)
    }

    /// Whether a revision and a remote's marked revision are on one line.
    func isOnMarkedLine(_ id: RevisionID, of remote: Remote?) -> Bool {
        guard let mark = remote.flatMap({ remotes[$0] }) else { return false }
        return mark == id || isAncestor(id, of: mark) || isAncestor(mark, of: id)
    }

    /// Records the current revision of a remote database.
    package mutating func recordMark(of remote: Remote?, at id: RevisionID) {
        // The passive side keeps no marks, and a damaged row may name a revision that is not in its tree.
        guard let remote, contains(id) else { return }
        // An older revision arrived late.
        if let old = remotes[remote], old != id, isAncestor(id, of: old) { return }
        remotes[remote] = id
    }

    /// Records a revision that a peer announced and that is known here. It may be older than the mark, if the document
    /// was purged at the peer and came back from another one.
    ///
    /// - Returns: whether the peer has fallen back on the line.
    package mutating func hasFallenBack(_ remote: Remote, to id: RevisionID) -> Bool {
        guard let old = remotes[remote], old != id, isAncestor(id, of: old) else {
            recordMark(of: remote, at: id)
            return false
        }
        remotes[remote] = id
        return true
    }

    /// Records a revision that a hub announced and that is known here. If our current revision is only what the hub had
    /// before, the hub may have gone back to another line.
    package mutating func follow(_ hub: Remote, to id: RevisionID) {
        let (before, mark) = (current, remotes[hub])
        recordMark(of: hub, at: id)
        // Most often the hub goes on from its own line, or our revision is not the one that it had.
        guard let before, mark == before.id, remotes[hub] == id else { return }
        HubConflict(before, with: id, in: self).goBack(in: &self)
    }

    /// Whether a remote's current revision is neither ours nor one of its ancestors.
    package func isContradicted(by remote: Remote) -> Bool {
        guard let mark = remotes[remote], let current else { return false }
        return !isAncestor(mark, of: current.id)
    }

    /// Removes the mark of a remote, for a caller that stores it elsewhere.
    package mutating func forgetRemote(_ remote: Remote) { remotes[remote] = nil }
}
