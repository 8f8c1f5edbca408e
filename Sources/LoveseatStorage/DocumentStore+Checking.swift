import GRDB
import LoveseatModel

/// Sentences about what is damaged: the first thousand, and how many there are besides.
private struct Problems {
    private static let maximumCount = 1_000

    private var sentences: [String] = []
    private var leftOut = 0

    mutating func append(_ sentence: String) {
        if sentences.count < Self.maximumCount { sentences.append(sentence) } else { leftOut += 1 }
    }

    mutating func append(_ sentences: [String]) { for sentence in sentences { append(sentence) } }

    var all: [String] { leftOut == 0 ? sentences : sentences + ["\(leftOut.counted("problem")) more"] }
}

extension DocumentStore {
    /// Verifies everything that is stored, and returns a sentence for each problem: the first thousand, and how many there are besides.
    package func check() throws -> [String] {
        try requireNoTransaction()
        var check = StoreCheck(blobs: blobs)
        try check.goOn { check throws in try read { try check.checkTables($0) } }
        // SQLite checks the words of a text index by a statement that only a writer may run.
        if !options.isReadOnly { check.problems.append(try damagedTextIndexes()) }
        do throws(LoveseatError) { try check.checkBlobs() } catch { check.problems.append(error.message) }
        return check.problems.all
    }

    /// The full-text indexes whose words are damaged, one sentence each. The store must be writeable.
    package func damagedTextIndexes() throws -> [String] { try write { try $0.indexTable.damagedTexts() } }
}

/// The check of one store.
private struct StoreCheck {
    let blobs: BlobFiles
    var problems = Problems()

    mutating func checkTables(_ transaction: StoreReadTransaction) throws {
        try goOn { check in
            let findings = try String.fetchAll(transaction.database, sql: "PRAGMA integrity_check(100)")
            check.problems.append(findings.filter { $0 != "ok" }.map { "SQLite: \($0)" })
        }
        try goOn { $0.problems.append(try transaction.problemsOfReplaced()) }
        try goOn { $0.problems.append(try transaction.problemsOfAncestors()) }
        for collection in transaction.collections.sorted(by: { $0.number < $1.number }) {
            try goOn { try $0.checkRows(of: collection, transaction) }
            try goOn { try $0.checkSequences(of: collection, transaction) }
        }
    }

    /// Checks one part. An error that stops SQLite from reading further is one more problem, and the other parts are checked all the same.
    mutating func goOn(_ body: (inout Self) throws -> Void) throws {
        do { try body(&self) } catch let error as DatabaseError
            where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
        { problems.append(LoveseatError(storage: error).message) }
    }

    mutating func checkBlobs() throws(LoveseatError) {
        for digest in try blobs.all() {
            do throws(LoveseatError) {
                guard try blobs.hash(digest) != digest else { continue }
                problems.append("blob \(digest): its content has another digest")
            } catch {
                // Another process may have removed it meanwhile.
                if error.code != .notFound { problems.append("blob \(digest): \(error.message)") }
            }
        }
    }

    private mutating func checkRows(of collection: CollectionHandle, _ transaction: StoreReadTransaction)
        throws
    {
        let reserved = try SequenceReserve.left(transaction.database)
        // All rows, whatever their sequences are.
        let statement = try RawStatement(
            "SELECT \(CollectionHandle.columns) FROM \"\(collection.table)\"",
            in: transaction.database
        )
        defer { statement.reset() }
        while try statement.step() {
            let place = "\(collection.name)/\(statement.string(1))"
            let sequence = statement.int(2)
            if sequence <= Int64(clamping: collection.firstSequence) {
                problems.append("\(place): its sequence, \(sequence), is below those of the collection")
            } else if reserved > 0, sequence > Int64(clamping: reserved) {
                problems.append("\(place): its sequence, \(sequence), is above those that were reserved")
            }
            guard RevisionID(statement.string(3)) != nil else {
                problems.append("\(place): its revision ID, \"\(statement.string(3))\", is not valid")
                continue
            }
            let record = try transaction.record(of: statement, in: collection)
            for problem in Self.problems(of: record, blobs: blobs) { problems.append("\(place): \(problem)") }
        }
    }

    /// Finds sequences and IDs that several rows have. The table's own indexes exclude that, unless somebody has removed them.
    private mutating func checkSequences(of collection: CollectionHandle, _ transaction: StoreReadTransaction)
        throws
    {
        for (column, name) in [("sequence", "the sequence"), ("doc_id", "the ID")] {
            let statement = try RawStatement(
                """
                SELECT \(column), count(*) FROM "\(collection.table)" GROUP BY \(column) HAVING count(*) > 1
                """,
                in: transaction.database
            )
            defer { statement.reset() }
            while try statement.step() {
                problems.append(
                    "\(collection.name): \(statement.int(1)) documents have \(name) \(statement.string(0))"
                )
            }
        }
    }

    private static func problems(of record: DocumentRecord, blobs: BlobFiles) -> [String] {
        var problems: [String] = []
        do throws(LoveseatError) {
            let tree = try record.tree()
            if record.isDamaged(in: tree) {
                problems.append("the body does not match revision \(record.revision)")
            }
            for node in tree.nodes.values.sorted(by: { $0.id > $1.id })
            where node.id != record.revision && node.isDamaged {
                problems.append("the kept body of revision \(node.id) does not match it")
            }
            for (copy, original) in tree.copies.sorted(by: { $0.key < $1.key }) {
                guard let copied = tree.node(copy), let node = tree.node(original),
                    copied.differs(from: node)
                else { continue }
                problems.append("revision \(copy), a copy of \(original), has other content")
            }
            if tree.current?.id != record.revision {
                problems.append("the row's revision is not the tree's current one")
            }
            problems += flagProblems(of: record, tree)
            problems += tree.problems
            for body in try record.allBodies() {
                do throws(JSONError) {
                    let element = try JSONElement(
                        scanning: body.bytes,
                        limits: JSONLimits(maximumBytes: .max)
                    )
                    if element.kind != .object { problems.append("the body is not a JSON object") }
                } catch { problems.append("\(error)") }
            }
            for blob in BlobReference.all(in: record.body)
            where !record.isDeleted && !blobs.contains(blob.digest) {
                problems.append("blob \(blob.digest) is missing")
            }
        } catch { problems.append(error.message) }
        return problems
    }

    /// The flags of a row that contradict its tree or its body. A row without a tree has only its digest to contradict it.
    private static func flagProblems(of record: DocumentRecord, _ tree: RevisionTree) -> [String] {
        let flags = record.flags
        var problems: [String] = []
        if flags.rawValue & ~0xFF != 0 {
            problems.append("the row has flags that do not exist: \(flags.rawValue)")
        }
        if tree.pending.isEmpty == record.hasConflicts { problems.append("the conflict flag is wrong") }
        if let node = tree.node(record.revision), node.isDeleted != record.isDeleted {
            problems.append(
                record.isDeleted
                    ? "the row says that the document is deleted, and its tree does not"
                    : "the tree says that the document is deleted, and its row does not"
            )
        }
        // The first format of trees, which versions 1 and 2 wrote, had no such flag.
        let isTold = record.encodedTree?.first != 1 && !tree.isLine
        if flags.contains(.branched) ? record.encodedTree == nil : isTold {
            problems.append("the flag for several branches is wrong")
        }
        if !record.isDeleted, !flags.contains(.hasBlobs), !BlobReference.all(in: record.body).isEmpty {
            problems.append("the flag for blobs is missing, so that a compaction would remove them")
        }
        return problems
    }
}
