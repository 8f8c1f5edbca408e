public import LoveseatModel

/// Conflicts that were not resolved yet.
extension Collection {
    /// Returns the revisions that contend with a document's current one, the highest first. Each has the content of its branch.
    ///
    /// There are some while a conflict waits for a ``ConflictResolver``, and where peers of CouchDB's wire keep their branches. All other
    /// conflicts are decided at once.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `notFound` if the collection was deleted; `corruptData` or `corruptRevisionData` if
    ///   what is stored is damaged; an error of the disk. A document that does not exist has no conflicts.
    public func conflicts(of id: String) throws(LoveseatError) -> [Document] {
        try CollectionConflicts(self).contending(with: id)
    }

    /// Ends the conflicts of a document: keeps one revision, and gives up the others. Peers are told when they replicate.
    ///
    /// - Parameters:
    ///   - id: The document's ID.
    ///   - revision: The current revision, or one of ``conflicts(of:)``.
    /// - Returns: The current revision afterwards.
    /// - Throws: ``LoveseatError``: `notOpen`; `notFound` if there is no such document; `conflict` if the revision is not the newest of its
    ///   branch any more; `busy`; `notWriteable`; an error of the disk.
    @discardableResult
    public func resolveConflicts(of id: String, keeping revision: RevisionID) throws(LoveseatError)
        -> RevisionID
    {
        try CollectionConflicts(self).resolve(id, keeping: revision)
    }
}
