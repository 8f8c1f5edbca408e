import Foundation
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Blobs as files, without a database.
struct BlobFilesTests {
    private let scratch: Scratch
    private let files: BlobFiles

    init() throws {
        scratch = try Scratch()
        files = try BlobFiles(folder: "\(scratch.path)/blobs", syncs: true)
    }

    private var names: Set<String> {
        get throws { Set(try FileManager.default.contentsOfDirectory(atPath: files.folder)) }
    }

    private func put(_ name: String, _ bytes: [UInt8] = [1]) throws {
        try Data(bytes).write(to: URL(filePath: "\(files.folder)/\(name)"))
    }

    private func save(_ text: String, pins: Bool = false) throws -> BlobDigest {
        let writer = try files.writer()
        try writer.write(Array(text.utf8))
        return try writer.finish(pins: pins).digest
    }

    /// A beginning that is long enough to be kept.
    private static let beginning = [UInt8](repeating: 7, count: 64 << 10)
    private static let whole = beginning + [1, 2, 3]

    private func digest(of bytes: [UInt8]) throws -> BlobDigest {
        let other = try BlobFiles(folder: "\(scratch.path)/other", syncs: false)
        let writer = try other.writer()
        try writer.write(bytes)
        return try writer.finish().digest
    }

    // MARK: Files

    @Test func `opening removes what was half written, and nothing else`() throws {
        let digest = try save("a")
        let partial = "partial-\(digest.hexadecimalText)"
        for name in ["incoming-1-1", partial, "notes.txt", ".hidden"] { try put(name) }
        let again = try BlobFiles(folder: files.folder, syncs: true)
        #expect(try names == [digest.hexadecimalText, partial, "notes.txt", ".hidden"])
        #expect(try again.all() == [digest])
        expectError(LoveseatError.Code(2, domain: .posix)) {
            try BlobFiles(folder: "\(scratch.path)/missing/blobs", syncs: true)
        }
    }

    @Test func `a range is read as far as the blob goes`() throws {
        let digest = try save("0123456789")
        for (offset, count, text) in [
            (0, 10, "0123456789"), (0, 3, "012"), (7, 100, "789"), (9, 1, "9"), (10, 1, ""), (99, 1, ""),
            (3, 0, ""),
        ] {
            #expect(try files.read(digest, from: UInt64(offset), count: count) == Array(text.utf8))
        }
        #expect(files.length(digest) == 10)
        let absent = try self.digest(of: [9])
        #expect(files.length(absent) == nil)
        #expect(!files.contains(absent))
        expectError(.notFound) { try files.read(absent, from: 0, count: 1) }
        expectError(.notFound) { try files.hash(absent) }
    }

    @Test func `the same content is one file, and the second writer leaves nothing behind`() throws {
        let (one, other) = (try files.writer(), try files.writer())
        for writer in [one, other] { try writer.write([1, 2, 3]) }
        #expect(try names.count == 2)
        let digest = try one.finish().digest
        let second = try other.finish(pins: true)
        #expect(second.digest == digest)
        #expect(second.length == 3)
        #expect(try names == [digest.hexadecimalText])
        #expect(try files.collectGarbage { [] }.count == 0)
    }

    @Test func `content with another digest is refused, and leaves neither file nor pin`() throws {
        let expected = try digest(of: [1])
        let writer = try files.writer()
        try writer.write([2])
        expectError(.corruptData) { try writer.finish(expected: expected, pins: true) }
        #expect(try names.isEmpty)
        let digest = try save("\u{2}")
        #expect(try files.collectGarbage { [] }.count == 1)
        #expect(!files.contains(digest))
    }

    @Test func `a writer that is given up, or released, leaves nothing`() throws {
        let writer = try files.writer()
        try writer.write([1])
        writer.cancel()
        _ = try files.writer()
        let resting = try files.writer()
        try resting.write([1])
        resting.rest()
        #expect(try names.count == 1)
        resting.cancel()
        #expect(try names.isEmpty)
    }

    @Test func `a writer that rests is finished later`() throws {
        let writer = try files.writer()
        try writer.write([1, 2])
        writer.rest()
        writer.rest()
        let (digest, length) = try writer.finish()
        #expect(length == 2)
        #expect(try files.read(digest, from: 0, count: 9) == [1, 2])
        #expect(try names == [digest.hexadecimalText])
    }

    // MARK: Beginnings

    @Test func `another connection continues from a long beginning, and starts over without`() throws {
        let digest = try digest(of: Self.whole)
        for resumes in [true, false] {
            let first = try files.writer(receiving: digest, resumes: true)
            #expect(first.length == 0)
            try first.write(Self.beginning)
            first.suspend()
            #expect(try names == ["partial-\(digest.hexadecimalText)"])
            let next = try files.writer(receiving: digest, resumes: resumes)
            #expect(next.length == (resumes ? 65_536 : 0))
            try next.write(Self.whole.dropFirst(Int(next.length)))
            #expect(try next.finish(expected: digest).length == UInt64(Self.whole.count))
            #expect(try names == [digest.hexadecimalText])
            _ = try files.collectGarbage { [] }
        }
    }

    @Test func `a short beginning is not kept`() throws {
        let digest = try digest(of: Self.whole)
        let writer = try files.writer(receiving: digest, resumes: true)
        try writer.write(Self.beginning.dropLast())
        writer.suspend()
        #expect(try names.isEmpty)
    }

    @Test func `of two connections that receive the same blob each has its own file`() throws {
        let digest = try digest(of: Self.whole)
        let (one, other) = (
            try files.writer(receiving: digest, resumes: true),
            try files.writer(receiving: digest, resumes: true)
        )
        try one.write(Self.beginning)
        try other.write(Self.whole)
        #expect(try names.count == 2)
        _ = try other.finish(expected: digest)
        one.suspend()
        #expect(try names == [digest.hexadecimalText, "partial-\(digest.hexadecimalText)"])
        // The next one is alone again.
        #expect(try files.writer(receiving: digest, resumes: true).length == 65_536)
    }

    @Test func `beginnings that are a week old are trimmed, but not one that is being received`() throws {
        let busy = try digest(of: Self.whole)
        let writer = try files.writer(receiving: busy, resumes: true)
        let names = [
            "partial-\(busy.hexadecimalText)", "partial-" + String(repeating: "a", count: 40),
            "partial-" + String(repeating: "b", count: 40),
        ]
        for (name, days) in zip(names, [8.0, 8, 6]) {
            if name != names[0] { try put(name) }
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -days * 86_400)],
                ofItemAtPath: "\(files.folder)/\(name)"
            )
        }
        _ = try files.collectGarbage { [] }
        #expect(try self.names == [names[0], names[2]])
        writer.cancel()
    }

    // MARK: Compaction

    @Test func `a compaction removes what nothing refers to, and says how much`() throws {
        let (kept, lost) = (try save("kept"), try save("lost blob"))
        try put("notes.txt")
        let freed = try files.collectGarbage { [kept] }
        #expect(freed.count == 1)
        #expect(freed.bytes == 9)
        #expect(freed.failure == nil)
        #expect(try names == [kept.hexadecimalText, "notes.txt"])
        #expect(!files.contains(lost))
    }

    @Test func `a blob is kept as long as one of its pins is left`() throws {
        let digest = try save("a", pins: true)
        files.pin(digest)
        files.unpin(digest)
        #expect(try files.collectGarbage { [] }.count == 0)
        files.unpin(digest)
        // More than there were pins.
        files.unpin(digest)
        #expect(try files.collectGarbage { [] }.count == 1)
    }

    @Test func `what is looked for, stored or named during a compaction is kept, and what was before is not`()
        throws
    {
        let blobs = try ["before", "looked for", "named", "stored"].map { try save($0) }
        files.touch([blobs[0]])
        #expect(files.contains(blobs[0]))
        let freed = try files.collectGarbage {
            #expect(files.contains(blobs[1]))
            files.touch([blobs[2]])
            let stored = try save("stored")
            #expect(stored == blobs[3])
            return []
        }
        #expect(freed.count == 1)
        #expect(Set(try files.all()) == Set(blobs.dropFirst()))
        // That was for this one.
        #expect(try files.collectGarbage { [] }.count == 3)
    }

    @Test func `a file that cannot be removed is reported, and the others are removed`() throws {
        let lost = [try save("a"), try save("b")]
        let stuck = try digest(of: [9])
        try FileManager.default.createDirectory(
            atPath: "\(files.folder)/\(stuck.hexadecimalText)",
            withIntermediateDirectories: false
        )
        let freed = try files.collectGarbage { [] }
        #expect(freed.count == 2)
        #expect(freed.failure?.code.domain == .posix)
        #expect(lost.allSatisfy { files.length($0) == nil })
        // A compaction that could not read the documents removes nothing, and the next one begins anew.
        let digest = try save("c")
        struct Unreadable: Error {}
        #expect(throws: Unreadable.self) { try files.collectGarbage { throw Unreadable() } }
        #expect(files.length(digest) != nil)
    }

    @Test func `a digest is computed over all pieces and a prefix`() throws {
        let bytes = (0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let writer = try files.writer()
        for start in stride(from: 0, to: bytes.count, by: 100_000) {
            try writer.write(bytes[start..<start + 100_000])
        }
        let digest = try writer.finish().digest
        #expect(try files.hash(digest) == digest)
        #expect(try files.hash(digest, prefix: [1]) == self.digest(of: [1] + bytes))
    }
}
