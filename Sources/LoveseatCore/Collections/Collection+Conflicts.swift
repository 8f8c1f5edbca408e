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
        do { return try resolveBranches(of: id, keeping: revision) } catch let error as LoveseatError {
            throw error
        } catch {
            throw LoveseatError(.unexpectedError, "\(error)")
        }
    }

    /// A document with revisions that contend.
    package struct Contention: Hashable, Sendable {
        /// The state of the revisions other than the current one.
        package enum State: String, Sendable {
            /// They wait for the app's resolver.
            case waiting
            /// Peers of CouchDB's wire keep them, until somebody ends the conflict.
            case kept
            /// They lost by the rule between Loveseats, and stay until the next edit (docs/decisions/0001).
            case decided
        }

        package let id: String
        package let state: State
        /// The current one first, then the others, the highest first.
        package let revisions: [RevisionID]
    }

    /// The documents with revisions that contend, in order of their IDs: live leaves beside the current revision that nobody gave up.
    ///
    /// This reads all documents that have more than one branch. Damaged ones are left out: `check` names them. `includingDecided`: also
    /// those of which the rule between Loveseats has chosen one.
    package func contentions(includingDecided: Bool) throws -> [Contention] {
        var found: [Contention] = []
        try openStore().read { view in
            try view.branched(in: handle) { record in
                guard let tree = try? record.tree() else { return true }
                let isDecided = tree.pending.isEmpty && !tree.keepsBranches
                let others = isDecided ? (includingDecided ? tree.losing : []) : tree.contending
                if others.isEmpty { return true }
                found.append(
                    Contention(
                        id: record.id,
                        state: isDecided ? .decided : tree.pending.isEmpty ? .kept : .waiting,
                        revisions: [record.revision] + others.map(\.id)
                    )
                )
                return true
            }
        }
        return found.sorted { $0.id.bytesPrecede($1.id) }
    }

    /// The newest live revisions of all branches of a document.
    package func liveLeaves(of id: String) throws -> [RevisionID] {
        try revisions(of: id).filter { $0.flags.contains("leaf") && !$0.flags.contains("deleted") }.map(\.id)
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

    /// The live revisions that lost by the rule between Loveseats and were not given up, the highest first. A copy is not another one.
    fileprivate var losing: [Node] {
        guard !isLine, let current else { return [] }
        let winner = original(current.id)
        return open(among: candidates).filter { $0.original != winner && !$0.node.isDeleted }.map(\.node)
            .sorted { $0.id > $1.id }
    }
}
