import Foundation
import GRDB
import LoveseatModel
import LoveseatStorage
import Testing

/// Rows that somebody has changed, and that a check names.
struct CheckTests {
    private let temporary: TemporaryStore

    init() throws { temporary = try TemporaryStore() }

    private func change(_ sql: String) throws {
        let sql = sql.replacing("ROWS", with: "\"\(temporary.collection.table)\"")
        let queue = try DatabaseQueue(path: "\(temporary.folder)/db.sqlite")
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    @Test func `a check goes on after a revision ID that is not valid, and names all that is damaged`() throws
    {
        for id in ["a", "b", "c", "d"] { _ = try temporary.save(id, #"{"city":"Lisbon"}"#) }
        try change("UPDATE ROWS SET revision = 'none' WHERE doc_id IN ('a', 'c')")
        try change("UPDATE ROWS SET body = replace(body, 'Lisbon', 'Lisbom') WHERE doc_id = 'd'")
        let problems = try temporary.store.check()
        #expect(problems.count == 3)
        for (id, text) in [("a", "revision ID"), ("c", "revision ID"), ("d", "does not match")] {
            #expect(problems.contains { $0.contains("/\(id): ") && $0.contains(text) }, "\(problems)")
        }
    }

    @Test func `a check names the first thousand problems, and counts the others`() throws {
        try temporary.store.write { transaction in
            for number in 0..<1_200 {
                _ = try temporary.save("d\(number)", JSONText(canonical: [:]), transaction)
            }
        }
        try change("UPDATE ROWS SET revision = 'none'")
        let problems = try temporary.store.check()
        #expect(problems.count == 1_001)
        #expect(problems.last == "200 problems more")
    }

    @Test func `flags that contradict the tree or the body are found`() throws {
        let writer = try temporary.store.blobs.writer()
        try writer.write([1, 2, 3])
        let (digest, length) = try writer.finish()
        let blob = BlobReference(digest: digest, length: length, contentType: nil)
        _ = try temporary.save("blob", JSONText(canonical: ["b": blob.json]).description)
        for n in 0..<2 { _ = try temporary.save("deleted", #"{"n":\#(n)}"#) }
        try temporary.store.write {
            _ = try $0.save(
                "deleted",
                in: temporary.collection,
                body: .emptyObject,
                isDeleted: true,
                condition: .lastWriteWins
            )
        }
        _ = try temporary.save("plain", "{}")
        for digit in ["a", "b"] {
            let incoming = IncomingRecord(
                documentID: "both",
                history: [try #require(RevisionID("1-" + String(repeating: digit, count: 40)))],
                isDeleted: false,
                body: try JSONText("{}"),
                sender: .loveseat
            )
            _ = try temporary.store.write { try $0.insert(incoming, in: temporary.collection) }
        }
        #expect(try temporary.store.check() == [])
        for (id, change, undo, text) in [
            ("plain", "flags | 256", "flags & ~256", "do not exist"),
            ("plain", "flags | 64", "flags & ~64", "several branches"),
            ("both", "flags & ~64", "flags | 64", "several branches"),
            ("plain", "flags | 1", "flags & ~1", "does not match revision"),
            ("plain", "flags | 16", "flags & ~16", "conflict flag"),
            ("deleted", "flags & ~1", "flags | 1", "the tree says that the document is deleted"),
            ("blob", "flags & ~8", "flags | 8", "flag for blobs"),
        ] {
            try self.change("UPDATE ROWS SET flags = \(change) WHERE doc_id = '\(id)'")
            let problems = try temporary.store.check()
            #expect(problems.count == 1, "\(id), \(change): \(problems)")
            #expect(problems.first?.contains("/\(id): ") == true, "\(change): \(problems)")
            #expect(problems.first?.contains(text) == true, "\(change): \(problems)")
            try self.change("UPDATE ROWS SET flags = \(undo) WHERE doc_id = '\(id)'")
        }
        #expect(try temporary.store.check() == [])
    }

    @Test func `sequences that cannot be are found`() throws {
        for id in ["a", "b", "c"] { _ = try temporary.save(id, "{}") }
        try change("UPDATE ROWS SET sequence = -1 WHERE doc_id = 'a'")
        try change("UPDATE ROWS SET sequence = 1 << 60 WHERE doc_id = 'b'")
        let problems = try temporary.store.check()
        #expect(problems.count == 2)
        #expect(problems.contains { $0.contains("/a: its sequence, -1, is below") }, "\(problems)")
        #expect(problems.contains { $0.contains("/b: ") && $0.contains("is above") }, "\(problems)")
        try change("DROP INDEX \"\(temporary.collection.table) by sequence\"")
        try change("UPDATE ROWS SET sequence = 3")
        let twice = try temporary.store.check()
        #expect(twice.count == 1)
        #expect(twice.first?.hasSuffix("3 documents have the sequence 3") == true, "\(twice)")
    }
}
