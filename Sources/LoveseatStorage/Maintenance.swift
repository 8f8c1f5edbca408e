import GRDB
import LoveseatModel
private import LoveseatPlatform

extension DocumentStore {
    /// Removes blobs that no document refers to, and returns free pages to the file system.
    ///
    /// Calls while a compaction runs share the next one, which begins after it.
    ///
    /// - Throws: `notWriteable` if the database is open for reading only; an error of the disk.
    package func compact() throws -> (blobs: Int, bytes: UInt64) {
        try requireNoTransaction()
        // Another process may be storing blobs that only it knows.
        try requireWriteable()
        return try compactions.join { try performCompaction() }
    }

    /// Whether a compaction waits for the end of another one, so that one more call would change nothing.
    package var isCompactionWaiting: Bool { compactions.isWaiting }

    private func performCompaction() throws -> (blobs: Int, bytes: UInt64) {
        let sizeBefore = try databaseSize()
        let freed = try blobs.collectGarbage {
            // This waits for the running transaction, whose references are not recorded. Removed references reach the disk before their
            // blobs are removed: otherwise a power loss would bring back documents without their blobs.
            try write(durably: true) { transaction in
                try transaction.noteCompaction()
                try transaction.noteAllDeletions()
                try transaction.forgetReplaced()
            }
            return try read { try $0.referencedBlobs() }
        }
        try maintain { db in
            try db.execute(sql: "VACUUM")
            _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
        // The rest of the compaction does not depend on the blobs that are left.
        if let failure = freed.failure { throw failure }
        let sizeAfter = try databaseSize()
        return (freed.count, freed.bytes + (sizeBefore > sizeAfter ? sizeBefore - sizeAfter : 0))
    }

    private func databaseSize() throws -> UInt64 {
        try read { transaction in
            let pages = try Int.fetchOne(transaction.database, sql: "PRAGMA page_count") ?? 0
            let size = try Int.fetchOne(transaction.database, sql: "PRAGMA page_size") ?? 0
            return UInt64(pages * size)
        }
    }

    /// Rebuilds every index.
    package func reindex() throws {
        try maintain { try $0.execute(sql: "REINDEX") }
        try write { try $0.rebuildIndexes() }
    }

    /// Updates the planner's statistics: the outdated ones, or all.
    package func optimize(isFull: Bool) throws {
        try maintain { try $0.execute(sql: isFull ? "ANALYZE" : "PRAGMA optimize") }
    }

    /// Verifies everything that is stored, and returns a sentence for each problem.
    package func check() throws -> [String] {
        try requireNoTransaction()
        var problems: [String] = []
        do { try checkRows(&problems) } catch let error as DatabaseError
            where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
        {
            // An error that stops SQLite from reading further is one more problem.
            problems.append(LoveseatError(storage: error).message)
        }
        // SQLite checks the words of a text index by a statement that only a writer may run.
        if !options.isReadOnly { problems += try damagedTextIndexes() }
        do throws(LoveseatError) { try checkBlobs(&problems) } catch { problems.append(error.message) }
        return problems
    }

    private func checkBlobs(_ problems: inout [String]) throws(LoveseatError) {
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

    private func checkRows(_ problems: inout [String]) throws {
        try read { transaction in
            let findings = try String.fetchAll(transaction.database, sql: "PRAGMA integrity_check(100)")
            problems += findings.filter { $0 != "ok" }.map { "SQLite: \($0)" }
            problems += try transaction.problemsOfReplaced()
            problems += try transaction.problemsOfAncestors()
            for collection in transaction.collections.sorted(by: { $0.number < $1.number }) {
                try transaction.changes(in: collection, since: 0) { record in
                    problems += Self.problems(of: record, blobs: self.blobs).map {
                        "\(collection.name)/\(record.id): \($0)"
                    }
                    return true
                }
            }
        }
    }

    /// The full-text indexes whose words are damaged, one sentence each. The store must be writeable.
    package func damagedTextIndexes() throws -> [String] { try write { try $0.damagedTextIndexes() } }

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
                    StoreWriteTransaction.differ(copied, node)
                else { continue }
                problems.append("revision \(copy), a copy of \(original), has other content")
            }
            if tree.current?.id != record.revision {
                problems.append("the row's revision is not the tree's current one")
            }
            if tree.pending.isEmpty == record.hasConflicts { problems.append("the conflict flag is wrong") }
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

    /// Copies everything to an empty folder, with a new identity.
    package func copy(to folder: String) throws {
        try requireNoTransaction()
        guard mkdir(folder, 0o700) == 0 else { throw BlobFiles.failure("make", folder) }
        try Self.createPrivateFile("\(folder)/db.sqlite")
        try maintain { try $0.execute(sql: "VACUUM INTO ?", arguments: ["\(folder)/db.sqlite"]) }
        let target = try BlobFiles(folder: "\(folder)/blobs", syncs: true)
        for digest in try blobs.all() {
            let writer = try target.writer()
            var offset: UInt64 = 0
            while true {
                let piece = try blobs.read(digest, from: offset, count: 1 << 20)
                if piece.isEmpty { break }
                try writer.write(piece)
                offset += UInt64(piece.count)
            }
            _ = try writer.finish(expected: digest)
        }
        let copy = try DocumentStore.open(folder: folder)
        // All data is in the files of the copy, even if they are not merged into one.
        defer { try? copy.close() }
        let fresh = {
            (0..<32).map { _ in "0123456789abcdef".randomElement() ?? "0" }.map(String.init).joined()
        }
        try copy.write { transaction in
            // Checkpoints belong to an identity: the copy starts without any, and compares all documents again.
            try transaction.database.execute(
                sql: "UPDATE info SET value = ? WHERE key = 'private_uuid'",
                arguments: [fresh()]
            )
            try transaction.database.execute(
                sql: "UPDATE info SET value = ? WHERE key = 'public_uuid'",
                arguments: [fresh()]
            )
            try transaction.database.execute(sql: "DELETE FROM local_checkpoints; DELETE FROM marks")
        }
    }
}
