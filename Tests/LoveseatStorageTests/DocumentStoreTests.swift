import Foundation
import GRDB
import LoveseatModel
import LoveseatStorage
import Testing

/// A database in a folder of its own, removed afterwards.
final class TemporaryStore {
    let folder: String
    let store: DocumentStore
    let collection: CollectionHandle

    init(options: DocumentStore.Options = DocumentStore.Options()) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "loveseat-\(UUID().uuidString)").path
        store = try DocumentStore.open(folder: folder, options: options)
        collection = try #require(store.collection(.default))
    }

    deinit {
        try? store.close()
        try? FileManager.default.removeItem(atPath: folder)
    }

    func save(_ id: String, _ json: String, since condition: SaveCondition = .lastWriteWins) throws
        -> RevisionID?
    {
        let body = try JSONText(json).canonical
        return try store.write { try save(id, body, since: condition, $0) }
    }

    func save(
        _ id: String,
        _ body: JSONText,
        since condition: SaveCondition = .lastWriteWins,
        _ transaction: StoreWriteTransaction
    ) throws -> RevisionID? {
        try transaction.save(id, in: collection, body: body, isDeleted: false, condition: condition)?.revision
    }

    func record(_ id: String) throws -> DocumentRecord? {
        try store.readRows { try $0.record(id, in: collection) }
    }

    /// Runs SQL in the file, as another program would. The store must be closed.
    func execute(_ sql: String) throws {
        let queue = try DatabaseQueue(path: "\(folder)/db.sqlite")
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }
}

@Suite struct DocumentStoreTests {
    @Test func `a saved document is read back after opening again`() throws {
        let temporary = try TemporaryStore()
        let revision = try temporary.save("tower", #"{"likes":3,"city":"Paris"}"#)
        try temporary.store.close()
        let again = try DocumentStore.open(folder: temporary.folder)
        defer { try? again.close() }
        let record = try #require(try again.readRows { try $0.record("tower", in: temporary.collection) })
        #expect(record.revision == revision)
        #expect(record.body.description == #"{"city":"Paris","likes":3}"#)
        #expect(record.sequence == 1)
    }

    @Test func `a transaction saves new documents and known ones in any order`() throws {
        let temporary = try TemporaryStore()
        for id in ["b", "d"] { _ = try temporary.save(id, #"{"n":0}"#) }
        let generations = try temporary.store.write { transaction in
            try ["a", "b", "c", "d", "d", "a", "e"].enumerated().map { number, id in
                let body = try JSONText(#"{"n":\#(number + 1)}"#)
                return try temporary.save(id, body, transaction)?.generation
            }
        }
        #expect(generations == [1, 2, 1, 2, 3, 2, 1])
        let records = try ["b", "c", "d", "a", "e"].map { try #require(try temporary.record($0)) }
        #expect(records.map(\.sequence) == [4, 5, 7, 8, 9])
        #expect(records.map(\.body.description) == [2, 3, 5, 6, 7].map { #"{"n":\#($0)}"# })
        #expect(try temporary.store.readRows { try $0.lastSequence(temporary.collection) } == 9)
    }

    @Test func `revisions made here have the digests of the specification`() throws {
        let temporary = try TemporaryStore()
        #expect(
            try temporary.save("h", #"{"name":"Hobbes","age":7}"#)?.text
                == "1-7b58069baa4e97140f275c7ba4e0f8883c1d42fa"
        )
        #expect(
            try temporary.save("h", #"{"name":"Hobbes","age":8}"#)?.text
                == "2-ef1504fdd47b89096281325a9194e9dcee2b04f7"
        )
        let deleted = try temporary.store.write {
            try $0.save(
                "h",
                in: temporary.collection,
                body: .emptyObject,
                isDeleted: true,
                condition: .lastWriteWins
            )
        }
        #expect(deleted?.revision.text == "3-63840bbc074b80ae44e0f2ac7f6cd734d3ad395d")
        #expect(try temporary.record("h")?.isDeleted == true)
        #expect(try temporary.store.read { try $0.count(temporary.collection) } == 0)
    }

    @Test func `a save on a stale revision is refused, and the document stays`() throws {
        let temporary = try TemporaryStore()
        let first = try temporary.save("x", "{\"v\":1}")
        let second = try temporary.save("x", "{\"v\":2}", since: .unchanged(since: first))
        #expect(second != nil)
        #expect(try temporary.save("x", "{\"v\":3}", since: .unchanged(since: first)) == nil)
        #expect(try temporary.save("x", "{\"v\":3}", since: .unchanged(since: nil)) == nil)
        #expect(try temporary.record("x")?.revision == second)
    }

    struct Stop: Error, Equatable {}

    @Test func `a transaction that throws leaves no trace`() throws {
        let temporary = try TemporaryStore()
        #expect(throws: Stop()) {
            try temporary.store.write { transaction in
                _ = try temporary.save("a", .emptyObject, transaction)
                // What was written is visible inside, and nowhere else.
                #expect(try transaction.record("a", in: temporary.collection) != nil)
                #expect(try temporary.record("a") == nil)
                throw Stop()
            }
        }
        #expect(try temporary.record("a") == nil)
        _ = try temporary.save("kept", "{}")
        #expect(try temporary.record("kept")?.sequence == 1)
    }

    @Test func `sequences are never given twice, also after a purge of the last`() throws {
        let temporary = try TemporaryStore()
        _ = try temporary.save("a", "{}")
        _ = try temporary.save("b", "{}")
        #expect(try temporary.store.write { try $0.purge("b", in: temporary.collection) })
        try temporary.store.close()
        let again = try DocumentStore.open(folder: temporary.folder)
        defer { try? again.close() }
        let made = try again.write {
            try $0.save(
                "c",
                in: temporary.collection,
                body: .emptyObject,
                isDeleted: false,
                condition: .lastWriteWins
            )
        }
        #expect(made?.sequence == 3)
    }

    @Test
    func
        `sequences that were lost with the power are not given again, also not to a collection of the same name`()
        throws
    {
        let database = try TemporaryStore()
        _ = try database.save("a", #"{"n":1}"#)
        // This is what reached the disk.
        let other = database.folder + "-lost"
        try FileManager.default.copyItem(atPath: database.folder, toPath: other)
        defer { try? FileManager.default.removeItem(atPath: other) }
        for id in ["b", "c", "d"] { _ = try database.save(id, #"{"n":1}"#) }
        let name = try #require(CollectionName(scope: "s", name: "new"))
        let used = try database.store.write { transaction in
            let handle = try transaction.createCollection(name)
            let body = try JSONText(#"{"n":1}"#)
            for id in ["x", "y"] {
                _ = try transaction.save(
                    id,
                    in: handle,
                    body: body,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
            return try transaction.lastSequence(handle)
        }
        #expect(database.store.lastSequence(database.collection) == 4)
        #expect(used == 2)

        let again = try DocumentStore.open(folder: other)
        let collection = try #require(again.collection(.default))
        #expect(again.lastSequence(collection) > 4)
        let made = try again.write { try $0.createCollection(name) }
        #expect(again.lastSequence(made) > 2)
        let last = again.lastSequence(collection)
        // Whoever closes the database leaves nothing out.
        try again.close()
        let closed = try DocumentStore.open(folder: other)
        #expect(closed.lastSequence(try #require(closed.collection(.default))) <= last)
        try closed.close()
    }

    @Test func `every commit is heard of once, and nothing after the end of a subscription`() throws {
        let temporary = try TemporaryStore()
        let heard = Heard()
        let token = temporary.store.changes.subscribe(collection: temporary.collection.number) {
            heard.add($0.documentIDs)
        }
        try temporary.store.write { transaction in
            _ = try temporary.save("a", try JSONText("{\"v\":1}"), transaction)
            _ = try temporary.save("b", .emptyObject, transaction)
            _ = try temporary.save("a", try JSONText("{\"v\":2}"), transaction)
        }
        _ = try? temporary.store.write { transaction in
            _ = try temporary.save("c", .emptyObject, transaction)
            throw Stop()
        }
        _ = try temporary.save("d", "{}")
        temporary.store.changes.unsubscribe(token)
        _ = try temporary.save("e", "{}")
        #expect(heard.all == [["a", "b"], ["d"]])
    }

    @Test func `collections whose names differ in case only are two, and a deleted one starts empty`() throws
    {
        let temporary = try TemporaryStore()
        let names = try ["Sights", "sights", "-%a"].map {
            try #require(CollectionName(scope: "sqlite_x", name: $0))
        }
        let handles = try names.map { name in try temporary.store.write { try $0.createCollection(name) } }
        for handle in handles {
            _ = try temporary.store.write {
                try $0.save(
                    handle.name.name,
                    in: handle,
                    body: .emptyObject,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
        }
        for handle in handles { #expect(try temporary.store.read { try $0.count(handle) } == 1) }
        try temporary.store.write { try $0.deleteCollection(names[0]) }
        expectError(.notOpen) {
            try temporary.store.write {
                try $0.save(
                    "x",
                    in: handles[0],
                    body: .emptyObject,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
        }
        let again = try temporary.store.write { try $0.createCollection(names[0]) }
        #expect(try temporary.store.read { try $0.count(again) } == 0)
    }

    @Test func `a copy holds the same documents under another identity`() throws {
        let temporary = try TemporaryStore()
        _ = try temporary.save("a", "{\"v\":1}")
        let target = temporary.folder + "-copy"
        defer { try? FileManager.default.removeItem(atPath: target) }
        try temporary.store.copy(to: target)
        let copy = try DocumentStore.open(folder: target)
        defer { try? copy.close() }
        #expect(
            try copy.readRows { try $0.record("a", in: temporary.collection) }?.body.description
                == "{\"v\":1}"
        )
        let identities = try [temporary.store, copy].map { try $0.readRows { try $0.info("private_uuid") } }
        #expect(identities[0] != identities[1])
    }

    @Test func `files of other kinds and of later versions are refused with their own errors`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "loveseat-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data("this is no database, whatever its name says".utf8).write(
            to: URL(filePath: folder + "/db.sqlite")
        )
        expectError(.unreadableDatabase) { try DocumentStore.open(folder: folder) }
        expectError(.init(Int(ENOENT), domain: .posix)) {
            try DocumentStore.open(folder: "/proc/nowhere/db")
        }
    }
}

/// Collects what subscribers hear.
final class Heard: @unchecked Sendable {
    // @unchecked because the store calls its subscribers one at a time, and the test reads when it has written.
    private(set) var all: [[String]] = []
    func add(_ ids: [String]) { all.append(ids) }
}

@Suite struct BlobTests {
    @Test func `a blob is stored once, read in ranges, and checked against its digest`() throws {
        let temporary = try TemporaryStore()
        let blobs = temporary.store.blobs
        let writer = try blobs.writer()
        try writer.write(Array("Hello, ".utf8))
        try writer.write(Array("World!".utf8))
        let (digest, length) = try writer.finish()
        #expect(digest.text == "sha1-CgqfKmdylCVXq1NV12r0Qvj2XgE=")
        #expect(length == 13)
        #expect(try blobs.read(digest, from: 7, count: 100) == Array("World!".utf8))
        #expect(try blobs.read(digest, from: 13, count: 1) == [])
        // The proof of replication.md §F.3.
        #expect(try blobs.hash(digest, prefix: [20] + (1...20)).text == "sha1-qblMjGxSaMuEsZGIBo5MWzPrX/w=")
        let wrong = try blobs.writer()
        try wrong.write([1])
        expectError(.corruptData) { try wrong.finish(expected: digest) }
        #expect(FileManager.default.subpaths(atPath: temporary.folder + "/blobs") == [digest.hexadecimalText])
    }

    @Test func `compaction keeps what is referred to, pinned or just written, and nothing else`() throws {
        let temporary = try TemporaryStore()
        let blobs = temporary.store.blobs
        func make(_ text: String) throws -> BlobReference {
            let writer = try blobs.writer()
            try writer.write(Array(text.utf8))
            let (digest, length) = try writer.finish()
            return BlobReference(digest: digest, length: length, contentType: "text/plain")
        }
        let used = try make("used")
        let pinned = try make("pinned")
        let lost = try make("lost")
        _ = try temporary.save("d", JSONText(canonical: ["deep": .array([used.json])]).description)
        blobs.pin(pinned.digest)
        let freed = try temporary.store.compact()
        #expect(freed.blobs == 1)
        #expect(!blobs.contains(lost.digest))
        #expect(blobs.contains(used.digest))
        #expect(blobs.contains(pinned.digest))
        blobs.unpin(pinned.digest)
        var late: BlobReference?
        _ = try blobs.collectGarbage {
            late = try make("pinned")
            return [used.digest]
        }
        #expect(late.map { blobs.contains($0.digest) } == true)
        #expect(try temporary.store.check() == [])
    }

    @Test func `marks of several remotes change nothing else of a document with several candidates`() throws {
        let temporary = try TemporaryStore()
        for (remote, digit) in [(1, "a"), (2, "b"), (3, "c")] {
            let id = try #require(RevisionID("1-" + String(repeating: digit, count: 40)))
            let body = try JSONText("{\"from\":\(remote)}")
            var incoming = IncomingRecord(
                documentID: "d",
                history: [id],
                isDeleted: false,
                body: body,
                sender: .loveseat
            )
            incoming.remote = remote
            _ = try temporary.store.write { try $0.insert(incoming, in: temporary.collection) }
        }
        let before = try #require(try temporary.record("d"))
        let others = try (1...2).map { try before.remoteAncestor($0) }
        for remote in [9, 5, 300, 5] {
            try temporary.store.write {
                try $0.markSynced("d", revision: before.revision, remote: remote, in: temporary.collection)
            }
        }
        let after = try #require(try temporary.record("d"))
        #expect(after.sequence == before.sequence)
        #expect(after.body == before.body)
        #expect(after.flags == before.flags)
        #expect(after.knowledgeDigest == before.knowledgeDigest)
        #expect(before.knowledgeDigest != nil)
        for remote in [3, 5, 9, 300] { #expect(try after.remoteAncestor(remote) == before.revision) }
        #expect(try (1...2).map { try after.remoteAncestor($0) } == others)
        #expect(try temporary.store.check() == [])
    }

    @Test func `the check names a damaged blob`() throws {
        let temporary = try TemporaryStore()
        let writer = try temporary.store.blobs.writer()
        try writer.write([1, 2, 3])
        let digest = try writer.finish().digest
        try Data([1, 2, 4]).write(to: URL(filePath: "\(temporary.folder)/blobs/\(digest.hexadecimalText)"))
        #expect(try temporary.store.check().count == 1)
    }

    @Test func `a check compares a copy for a hub with what it is a copy of`() throws {
        for (body, isFine) in [(#"{ "n": 1.0 }"#, true), (#"{"n":2}"#, false)] {
            let temporary = try TemporaryStore()
            let collection = temporary.collection
            _ = try temporary.save("d", #"{"n":1}"#)
            let original = try #require(try temporary.record("d")).revision
            let theirs = try #require(RevisionID("1-bb"))
            let copy = CopyName(original: original, origin: original)
                .id(over: theirs, of: "d", sha1: Hashing.sha1)
            _ = try temporary.store.write { transaction in
                // One remote has the original, and another one the copy, so that both keep their content.
                try transaction.markSynced("d", revision: original, remote: 2, in: collection)
                var incoming = IncomingRecord(
                    documentID: "d",
                    history: [copy, theirs],
                    isDeleted: false,
                    body: try JSONText(body),
                    sender: .hub
                )
                incoming.remote = 1
                return try transaction.insert(incoming, in: collection)
            }
            let problems = try temporary.store.check()
            #expect(
                isFine ? problems.isEmpty : problems.map { $0.contains("a copy of \(original)") } == [true]
            )
        }
    }
}
