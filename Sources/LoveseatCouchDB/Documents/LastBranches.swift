import LoveseatModel
import LoveseatStorage
import Synchronization

/// The branches of the last document with a long tree: a replicator asks for one of its revisions after the other.
final class LastBranches: Sendable {
    /// Trees from this size on, in bytes, and up to this one.
    private static let sizes = 4 << 10...4 << 20

    private let last = Mutex<(record: DocumentRecord, collection: Int64, branches: DocumentBranches)?>(nil)

    /// The branches of a document for a client that may read all of it.
    func branches(of record: DocumentRecord, in entry: Databases.Entry) throws -> DocumentBranches? {
        guard entry.access == nil, let tree = record.encodedTree, Self.sizes.contains(tree.count) else {
            return try entry.branches(of: record)
        }
        let number = entry.handle.number
        if let last = last.withLock({ $0 }), last.collection == number, last.record.id.isExactly(record.id),
            last.record.sequence == record.sequence, last.record.revision == record.revision,
            last.record.encodedTree == tree, last.branches.listed == entry.store.revisionLimit
        {
            return last.branches
        }
        guard let branches = try entry.branches(of: record) else { return nil }
        last.withLock { $0 = (record, number, branches) }
        return branches
    }
}
