public import LoveseatModel
import LoveseatStorage

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
        let store = try openStore()
        return try DocumentStore.wrapping {
            guard let record = try store.readRows({ try $0.record(id, in: handle) }),
                record.encodedTree != nil
            else { return [] }
            return try record.tree().contending.compactMap { node in
                guard let body = node.body else { return nil }
                guard let element = body.storedObject else { throw record.damage }
                return Document(
                    id: id,
                    revisionID: node.id,
                    sequence: record.sequence,
                    body: body,
                    indexed: element
                )
            }
        }
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
        do { return try settle(id, keeping: revision) } catch let error as LoveseatError { throw error } catch
        {
            throw LoveseatError(.unexpectedError, "\(error)")
        }
    }

    /// The documents with revisions that contend, in order of their IDs, each with those revisions, the current one first.
    ///
    /// This reads all documents that have more than one branch. Damaged ones are left out: `check` names them.
    package func contendingRevisions() throws -> [(id: String, revisions: [RevisionID])] {
        var found: [(id: String, revisions: [RevisionID])] = []
        try openStore().read { view in
            try view.branched(in: handle) { record in
                guard let tree = try? record.tree() else { return true }
                let contending = tree.contending.map(\.id)
                if !contending.isEmpty { found.append((record.id, [record.revision] + contending)) }
                return true
            }
        }
        return found.sorted { $0.id.bytesPrecede($1.id) }
    }
}

extension RevisionTree {
    /// The revisions that contend with the current one, the highest first: those that wait for a resolver, and live branches that are
    /// kept.
    fileprivate var contending: [Node] {
        guard !isLine else { return [] }
        let current = current?.id
        let branches = keepsBranches ? open(among: candidates).map(\.node) : []
        return (pending + branches.filter { !$0.isDeleted }).filter { $0.id != current }.sorted {
            $0.id > $1.id
        }
    }
}
