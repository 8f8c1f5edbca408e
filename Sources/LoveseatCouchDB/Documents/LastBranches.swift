import LoveseatModel
import LoveseatStorage
import Synchronization

/// The branches of the last document with a long tree: a replicator asks for one of its revisions after the other.
final class LastBranches: Sendable {
    /// Trees from this size on, in bytes, and up to this one.
    private static let sizes = 4 << 10...4 << 20

    private struct Kept: Sendable {
        let record: DocumentRecord
        let collection: Int64
        let branches: DocumentBranches
        /// Whether they have all ancestors.
        let isWhole: Bool
    }

    private let last = Mutex<Kept?>(nil)

    /// The branches of a document, kept for the next call if the client may read all of it.
    func branches(of record: DocumentRecord, _ needed: NeededAncestors, in entry: Databases.Entry) throws
        -> DocumentBranches?
    {
        let needsLine = try entry.needsWholeLine(of: record, needed)
        guard entry.access == nil, let tree = record.encodedTree, tree.count <= Self.sizes.upperBound,
            needsLine || Self.sizes.contains(tree.count)
        else { return try entry.branches(of: record, needsLine ? .all : .few) }
        let number = entry.handle.number
        if let last = last.withLock({ $0 }), last.isWhole || !needsLine, last.collection == number,
            last.record.id.isExactly(record.id),
            last.record.sequence == record.sequence, last.record.revision == record.revision,
            last.record.encodedTree == tree, last.branches.listed == entry.store.revisionLimit
        {
            return last.branches
        }
        guard let branches = try entry.branches(of: record, needsLine ? .all : .few) else { return nil }
        let kept = Kept(record: record, collection: number, branches: branches, isWhole: needsLine)
        last.withLock { $0 = kept }
        return branches
    }
}
