import Foundation
import LoveseatModel
import LoveseatStorage
import Synchronization
import Testing

/// What calls say when the disk fails, and what they leave behind.
@Suite struct FailureTests {
    private let temporary: TemporaryStore
    private var store: DocumentStore { temporary.store }
    private var folder: String { "\(temporary.folder)/blobs" }
    private let files = FileManager.default

    init() throws { temporary = try TemporaryStore() }

    private func saveBlob(_ bytes: [UInt8]) throws -> BlobDigest {
        let writer = try store.blobs.writer()
        try writer.write(bytes)
        return try writer.finish().digest
    }

    @Test func `blobs that cannot be listed fail a copy, a compaction and a check`() throws {
        _ = try saveBlob([1, 2, 3])
        try files.moveItem(atPath: folder, toPath: folder + "-away")
        // A file cannot be opened as a folder, by anyone.
        try Data().write(to: URL(filePath: folder))
        let target = temporary.folder + "-copy"
        defer { try? files.removeItem(atPath: target) }
        expectError(.init(Int(ENOTDIR), domain: .posix)) { try store.copy(to: target) }
        expectError(.init(Int(ENOTDIR), domain: .posix)) { try store.compact() }
        #expect(try store.check().map { $0.contains(folder) } == [true])
        // Without a folder there are none.
        try files.removeItem(atPath: folder)
        #expect(try store.blobs.all() == [])
        #expect(try store.check() == [])
    }

    @Test func `a blob that cannot be put in its place leaves nothing on the disk`() throws {
        let writer = try store.blobs.writer()
        try writer.write([1, 2, 3])
        writer.rest()
        let name = try #require(try files.contentsOfDirectory(atPath: folder).first)
        try files.removeItem(atPath: "\(folder)/\(name)")
        // What it names cannot be flushed.
        try files.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: "/dev/null")
        let error = #expect(throws: LoveseatError.self) { try writer.finish() }
        #expect(error?.code.domain == .posix)
        #expect(try files.contentsOfDirectory(atPath: folder) == [])
    }

    @Test func `a compaction counts only what it removed, and names what it could not remove`() throws {
        let removed = try saveBlob([1, 2, 3])
        let stuck = try saveBlob([4, 5, 6])
        let path = "\(folder)/\(stuck.hexadecimalText)"
        try files.removeItem(atPath: path)
        // A folder cannot be removed as a file, by anyone.
        try files.createDirectory(atPath: path, withIntermediateDirectories: false)
        let freed = try store.blobs.collectGarbage { [] }
        #expect(freed.count == 1)
        #expect(freed.bytes == 3)
        #expect(freed.failure?.message.contains(path) == true)
        #expect(store.blobs.length(removed) == nil)
        let again = try saveBlob([1, 2, 3])
        let error = #expect(throws: LoveseatError.self) { try store.compact() }
        #expect(error?.message.contains(path) == true)
        #expect(store.blobs.length(again) == nil)
    }

    @Test func `the calls after a transaction that cannot be rolled back name the reason, until it can be`()
        throws
    {
        struct Stop: Error {}
        let fails = Mutex(true)
        var options = DocumentStore.Options()
        options.beforeRollback = {
            if fails.withLock({ $0 }) { throw LoveseatError(.ioError, "the disk failed") }
        }
        let temporary = try TemporaryStore(options: options)
        #expect(throws: Stop.self) {
            try temporary.store.write { transaction in
                _ = try temporary.save("a", .emptyObject, transaction)
                throw Stop()
            }
        }
        for _ in 0..<2 {
            let error = #expect(throws: LoveseatError.self) { try temporary.save("b", "{}") }
            #expect(error?.code == .ioError)
            #expect(error?.message.contains("cannot be rolled back") == true)
        }
        fails.withLock { $0 = false }
        _ = try temporary.save("b", "{}")
        #expect(try temporary.record("a") == nil)
        #expect(try temporary.record("b")?.sequence == 1)
    }
}
