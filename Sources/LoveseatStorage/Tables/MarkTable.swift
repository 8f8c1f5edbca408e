import GRDB
package import LoveseatModel

/// The marks of one collection as ranges of sequences, by the numbers of the remotes: a remote has every document whose last
/// change lies in one of its ranges, as that change left it.
///
/// A sequence belongs to one revision, so the mark ends when the document changes. The revision is then in the document's tree.
package typealias MarkRanges = [RevisionTree.Remote: SequenceSet]

/// The marks as ranges, in the table `mark_ranges`.
package struct MarkTable: WrittenTable {
    let transaction: StoreWriteTransaction

    /// Sequences further apart than this are looked up separately.
    private static let stretch: UInt64 = 256

    /// Records that a remote has documents as the changes with these sequences, which ascend, left them.
    ///
    /// - Returns: The sequences of documents that have changed since, or are gone. For them nothing is recorded.
    package func markSynced(_ sequences: [UInt64], remote: Int, in collection: CollectionHandle) throws
        -> Set<UInt64>
    {
        let before = ranges(of: remote, in: collection)
        var after = before
        var gone = Set(sequences)
        let rows = try RawStatement(collection.statements.sequences, in: database)
        defer { rows.reset() }
        var first = 0
        for (index, sequence) in sequences.enumerated()
        where index + 1 == sequences.count || sequences[index + 1] - sequence > Self.stretch {
            rows.reset()
            rows.bind(1, Int64(clamping: sequences[first]))
            rows.bind(2, Int64(clamping: sequence))
            first = index + 1
            // Sequences without a row are never used again, so a range may contain them.
            var run: ClosedRange<UInt64>?
            while try rows.step() {
                let row = UInt64(clamping: rows.int(0))
                if gone.remove(row) != nil || before.contains(row) {
                    run = (run?.lowerBound ?? row)...row
                } else if let ended = run {
                    after.insert(ended)
                    run = nil
                }
            }
            if let run { after.insert(run) }
        }
        try save(before, after, of: remote, in: collection)
        return gone
    }

    /// Removes the marks that a row's tree contradicts. For a row that keeps its sequence.
    func withdraw(of record: DocumentRecord, unlessIn tree: RevisionTree, _ collection: CollectionHandle)
        throws
    {
        for remote in record.remotesByRange where tree.remotes[remote] != record.revision {
            let before = ranges(of: remote, in: collection)
            var after = before
            after.remove(record.sequence)
            try save(before, after, of: remote, in: collection)
            transaction.hasWithdrawnMarks = true
        }
    }

    private func ranges(of remote: Int, in collection: CollectionHandle) -> SequenceSet {
        catalog.marks[collection.number]?[remote] ?? SequenceSet()
    }

    private func save(
        _ before: SequenceSet,
        _ after: SequenceSet,
        of remote: Int,
        in collection: CollectionHandle
    ) throws {
        if before == after { return }
        let same = zip(before.ranges, after.ranges).prefix { $0 == $1 }.count
        let (old, new) = (before.ranges[same...], after.ranges[same...])
        let end = zip(old.reversed(), new.reversed()).prefix { $0 == $1 }.count
        let delete = try RawStatement(
            "DELETE FROM mark_ranges WHERE remote = ?1 AND collection = ?2 AND first = ?3",
            in: database
        )
        for range in old.dropLast(end) {
            delete.bind(1, Int64(remote))
            delete.bind(2, collection.number)
            delete.bind(3, Int64(clamping: range.lowerBound))
            try delete.run()
        }
        let insert = try RawStatement(
            "INSERT INTO mark_ranges (remote, collection, first, last) VALUES (?1, ?2, ?3, ?4)",
            in: database
        )
        for range in new.dropLast(end) {
            insert.bind(1, Int64(remote))
            insert.bind(2, collection.number)
            insert.bind(3, Int64(clamping: range.lowerBound))
            insert.bind(4, Int64(clamping: range.upperBound))
            try insert.run()
        }
        transaction.replaceCatalog { $0.marks[collection.number, default: [:]][remote] = after }
    }

    /// The marks of every collection, by its number.
    static func load(_ db: Database) throws -> [Int64: MarkRanges] {
        var marks: [Int64: MarkRanges] = [:]
        // A database of an earlier version may be open for reading only.
        guard try Schema.hasTable("mark_ranges", in: db) else { return marks }
        let rows = try RawStatement(
            "SELECT collection, remote, first, last FROM mark_ranges ORDER BY remote, collection, first",
            in: db
        )
        defer { rows.reset() }
        while try rows.step() {
            let (first, last) = (UInt64(clamping: rows.int(2)), UInt64(clamping: rows.int(3)))
            guard first <= last else { continue }
            marks[rows.int(0), default: [:]][Int(rows.int(1)), default: SequenceSet()].insert(first...last)
        }
        return marks
    }
}
