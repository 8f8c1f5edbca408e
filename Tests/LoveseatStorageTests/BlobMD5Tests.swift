import Foundation
import GRDB
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// The MD5s by which peers of CouchDB's wire name blobs.
struct BlobMD5Tests {
    private let temporary: TemporaryStore
    private var store: DocumentStore { temporary.store }

    init() throws { temporary = try TemporaryStore() }

    /// The MD5 of "hello", as RFC 1321's algorithm makes it.
    private static let hello = (content: Array("hello".utf8), md5: "md5-XUFAKrxLKna5cZ2REBfFkg==")

    private func blob(_ content: [UInt8], hashesMD5: Bool = false) throws -> BlobDigest {
        let writer = try store.blobs.writer(hashesMD5: hashesMD5)
        for start in stride(from: 0, to: content.count, by: 1 << 20) {
            try writer.write(content[start..<min(start + 1 << 20, content.count)])
        }
        return try writer.finish().digest
    }

    private func compute(_ blob: BlobDigest) throws -> (md5: MD5Digest?, parts: Int) {
        var (computation, parts) = (BlobMD5Computation(blob, in: store.blobs), 1)
        while try computation.next() { parts += 1 }
        return (computation.result, parts)
    }

    private func onFile<Value>(_ body: (GRDB.Database) throws -> Value) throws -> Value {
        let queue = try DatabaseQueue(path: "\(temporary.folder)/db.sqlite")
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction { try body($0) }
    }

    private func rows() throws -> Int {
        try onFile { try Int.fetchOne($0, sql: "SELECT count(*) FROM md5s") ?? -1 }
    }

    private func expectKnown(_ md5: String?, of blob: BlobDigest, afterOpening isReadOnly: Bool = false)
        throws
    {
        try store.close()
        var options = DocumentStore.Options()
        options.isReadOnly = isReadOnly
        let again = try DocumentStore.open(folder: temporary.folder, options: options)
        defer { try? again.close() }
        #expect(try again.blobs.md5s.known(blob)?.text == md5)
    }

    @Test func `what an app saves has no MD5 until somebody needs it`() throws {
        let blob = try blob(Self.hello.content)
        _ = try temporary.save("a", #"{"n":1}"#)
        #expect(try store.blobs.md5s.known(blob) == nil)
        #expect(store.blobs.md5s.unwritten.isEmpty)
        #expect(try rows() == 0)
    }

    @Test func `the MD5 of content that a peer sends is stored with the next transaction, and read back`()
        throws
    {
        let blob = try blob(Self.hello.content, hashesMD5: true)
        #expect(try store.blobs.md5s.known(blob)?.text == Self.hello.md5)
        #expect(try rows() == 0)
        _ = try temporary.save("a", #"{"n":1}"#)
        #expect(store.blobs.md5s.unwritten.isEmpty)
        #expect(try rows() == 1)
        #expect(try store.write { try $0.knownMD5(of: blob)?.text } == Self.hello.md5)
        #expect(try store.check().isEmpty)
        try expectKnown(Self.hello.md5, of: blob)
    }

    @Test func `an MD5 that no transaction has written is written when the database is closed`() throws {
        let blob = try blob(Self.hello.content)
        #expect(try compute(blob).md5?.text == Self.hello.md5)
        try expectKnown(Self.hello.md5, of: blob)
    }

    @Test func `a transaction that fails leaves the MD5s to the next one`() throws {
        struct Stop: Error {}
        let blob = try blob(Self.hello.content, hashesMD5: true)
        #expect(throws: Stop.self) { try store.write { _ in throw Stop() } }
        #expect(try store.blobs.md5s.known(blob)?.text == Self.hello.md5)
        #expect(try rows() == 0)
        try store.write { _ in }
        #expect(try rows() == 1)
    }

    @Test func `the MD5 of a large blob is computed in parts, and is that of all of it`() throws {
        let content = (0..<20 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let (computed, written) = (try blob(content), try blob(content + [1], hashesMD5: true))
        let (md5, parts) = try compute(computed)
        #expect(parts == 3)
        #expect(try store.blobs.md5s.known(computed) == md5)
        // Both ways to an MD5 are the same.
        let known = try #require(try store.blobs.md5s.known(written))
        #expect(try compute(written).md5 == known)
        #expect(md5 != known)
    }

    @Test func `damaged content, and content that is not here, have no MD5`() throws {
        let blob = try blob(Self.hello.content)
        try Data("hallo".utf8).write(to: URL(filePath: "\(store.blobs.folder)/\(blob.hexadecimalText)"))
        #expect { try compute(blob) } throws: { ($0 as? LoveseatError)?.code == .corruptData }
        try FileManager.default.removeItem(atPath: "\(store.blobs.folder)/\(blob.hexadecimalText)")
        #expect { try compute(blob) } throws: { ($0 as? LoveseatError)?.code == .notFound }
        #expect(try store.blobs.md5s.known(blob) == nil)
    }

    @Test func `a compaction removes the MD5s of the blobs that it removes`() throws {
        let (kept, lost) = (try blob([1], hashesMD5: true), try blob([2], hashesMD5: true))
        let reference = BlobReference(digest: kept, length: 1, contentType: nil)
        _ = try temporary.save("a", JSONText(canonical: ["b": reference.json]).description)
        try onFile { try $0.execute(sql: "INSERT INTO md5s (blob, md5) VALUES (x'01', x'02')") }
        #expect(try rows() == 3)
        _ = try store.compact()
        #expect(store.blobs.length(lost) == nil)
        #expect(try rows() == 1)
        #expect(try store.write { try $0.knownMD5(of: kept) } != nil)
    }

    @Test func `a row that is damaged counts as none, and is replaced`() throws {
        let blob = try blob(Self.hello.content, hashesMD5: true)
        _ = try temporary.save("a", #"{"n":1}"#)
        try onFile { try $0.execute(sql: "UPDATE md5s SET md5 = zeroblob(length(md5))") }
        try store.close()
        let again = try DocumentStore.open(folder: temporary.folder)
        defer { try? again.close() }
        #expect(try again.blobs.md5s.known(blob) == nil)
        var computation = BlobMD5Computation(blob, in: again.blobs)
        while try computation.next() {}
        try again.write { _ in }
        let replaced = try onFile {
            try Int.fetchOne($0, sql: "SELECT count(*) FROM md5s WHERE md5 != zeroblob(20)")
        }
        #expect(replaced == 1)
    }

    @Test(arguments: [true, false])
    func `a database of a version that had no such table opens, and gets it when it can be written`(
        _ isReadOnly: Bool
    ) throws {
        let blob = try blob(Self.hello.content)
        try onFile { try $0.execute(sql: "DROP TABLE md5s") }
        try expectKnown(nil, of: blob, afterOpening: isReadOnly)
        let hasTable = try onFile { try $0.tableExists("md5s") }
        #expect(hasTable == !isReadOnly)
    }
}
