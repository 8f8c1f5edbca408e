import Foundation
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// What a compaction must not take, whatever goes on beside it.
struct CompactionTests {
    private let temporary: TemporaryStore
    private var store: DocumentStore { temporary.store }

    init() throws { temporary = try TemporaryStore() }

    private static func blob(_ text: String, in store: DocumentStore, pins: Bool = false) throws
        -> BlobReference
    {
        let writer = try store.blobs.writer()
        try writer.write(Array(text.utf8))
        let (digest, length) = try writer.finish(pins: pins)
        return BlobReference(digest: digest, length: length, contentType: nil)
    }

    /// Runs something on a thread of its own, since Dispatch has few.
    private static func thread(_ group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
        group.enter()
        Thread.detachNewThread {
            body()
            group.leave()
        }
    }

    /// The stored documents that lack a blob.
    private func documentsWithoutBlobs() throws -> [String] {
        var ids: [String] = []
        try store.read { view in
            try view.list(.init(), in: temporary.collection) { record in
                let blobs = try record.tree().nodes.values.compactMap(\.body).flatMap {
                    BlobReference.all(in: $0)
                }
                if blobs.contains(where: { store.blobs.length($0.digest) == nil }) { ids.append(record.id) }
                return true
            }
        }
        return ids
    }

    @Test(arguments: PropertySeeds.of("COMPACTION", 4))
    func `beside savers, editors, pullers, uploaders and compactions every stored document has its blobs`(
        _ seed: UInt64
    ) throws {
        let (store, collection) = (store, temporary.collection)
        for number in 0..<100 {
            let blob = try Self.blob("filler \(number)", in: store)
            _ = try temporary.save("filler \(number)", JSONText(canonical: ["blob": blob.json]).description)
        }
        let rounds = 60
        let working = Mutex(4)
        let counts = Mutex((stored: 0, refused: 0, compactions: 0))
        let group = DispatchGroup()
        func work(_ number: UInt64, _ step: @escaping @Sendable (inout SeededGenerator, Int) throws -> Void) {
            Self.thread(group) {
                var random = SeededGenerator(seed: seed &* 100 &+ number)
                for round in 0..<rounds {
                    do {
                        try step(&random, round)
                        counts.withLock { $0.stored += 1 }
                    } catch LoveseatError.Code.notFound {
                        counts.withLock { $0.refused += 1 }
                    } catch { Issue.record(error) }
                }
                working.withLock { $0 -= 1 }
            }
        }
        @Sendable func save(_ id: String, _ body: JSONValue) throws {
            try store.write {
                _ = try $0.save(
                    id,
                    in: collection,
                    body: JSONText(canonical: body),
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
        }
        // Savers: a blob in an array, sometimes one that others use and give up.
        work(1) { random, round in
            let blob = try Self.blob("saved \(Int.random(in: 0..<20, using: &random))", in: store)
            try save("saved \(round % 7)", ["list": [.string("x"), blob.json]])
        }
        // Editors, in a transaction that stays open while the blob is written.
        work(2) { random, round in
            try store.write { transaction in
                let blob = try Self.blob("edited \(Int.random(in: 0..<20, using: &random))", in: store)
                for id in ["edited \(round % 5)", "saved \(round % 7)"] {
                    _ = try transaction.save(
                        id,
                        in: collection,
                        body: JSONText(canonical: ["deep": ["blob": blob.json]]),
                        isDeleted: false,
                        condition: .lastWriteWins
                    )
                }
            }
        }
        // Pullers: pinned while it is received, and stored later.
        work(3) { _, round in
            let blob = try Self.blob("pulled \(round / 2)", in: store, pins: true)
            defer { store.blobs.unpin(blob.digest) }
            let incoming = IncomingRecord(
                documentID: "pulled \(round)",
                history: [RevisionID(generation: 1, digest: [UInt8(round)])],
                isDeleted: false,
                body: JSONText(canonical: ["blob": blob.json]),
                sender: .loveseat
            )
            _ = try store.write { try $0.insert(incoming, in: collection) }
        }
        // Uploaders of CouchDB's wire; what they stored is deleted again and again.
        work(4) { random, round in
            let blob = try Self.blob("uploaded \(round % 10)", in: store, pins: true)
            defer { store.blobs.unpin(blob.digest) }
            let id = "uploaded \(Int.random(in: 0..<10, using: &random))"
            try store.write { transaction in
                if Bool.random(using: &random) { _ = try transaction.purge(id, in: collection) }
                let record = try transaction.record(id, in: collection)
                _ = try transaction.insertEdit(
                    over: record?.revision,
                    of: id,
                    replacing: record,
                    in: collection,
                    body: JSONText(canonical: ["blob": blob.json]),
                    isDeleted: false
                )
            }
        }
        for _ in 0..<2 {
            Self.thread(group) {
                while working.withLock({ $0 > 0 }) {
                    do { _ = try store.compact() } catch { Issue.record(error) }
                    counts.withLock { $0.compactions += 1 }
                }
            }
        }
        group.wait()
        #expect(try documentsWithoutBlobs() == [])
        let total = counts.withLock { $0 }
        #expect(total.stored >= 3 * rounds, "\(total)")
        #expect(total.compactions > 1, "\(total)")
        _ = try store.compact()
        #expect(try documentsWithoutBlobs() == [])
        #expect(try store.check() == [])
    }

    @Test func `a document that refers to a removed blob is refused until its content is saved again`() throws
    {
        let blob = try Self.blob("content", in: store)
        #expect(try store.compact().blobs == 1)
        let body = JSONText(canonical: ["blob": blob.json])
        let error = #expect(throws: LoveseatError.self) { try temporary.save("d", body.description) }
        #expect(error?.code == .notFound)
        #expect(error?.message.contains("save its content again") == true)
        _ = try Self.blob("content", in: store)
        _ = try temporary.save("d", body.description)
        #expect(try store.compact().blobs == 0)
        #expect(try documentsWithoutBlobs() == [])
    }

    @Test func `a blob that is being received or can be resumed stays`() throws {
        let content = [UInt8](repeating: 7, count: 200_000)
        let whole = try store.blobs.writer()
        try whole.write(content)
        let digest = try whole.finish().digest
        #expect(try store.compact().blobs == 1)
        let begun = try store.blobs.writer(receiving: digest, resumes: true)
        try begun.write(content.prefix(100_000))
        _ = try store.compact()
        begun.suspend()
        _ = try store.compact()
        let resumed = try store.blobs.writer(receiving: digest, resumes: true)
        #expect(resumed.length == 100_000)
        try resumed.write(content.dropFirst(100_000))
        _ = try resumed.finish(expected: digest, pins: true)
        _ = try store.compact()
        #expect(store.blobs.length(digest) == 200_000)
        store.blobs.unpin(digest)
        #expect(try store.compact().blobs == 1)
    }

    @Test func `compactions that are asked for while one runs are one more, together`() throws {
        let store = store
        let group = DispatchGroup()
        let runs = Mutex(0)
        for number in 0..<50 { _ = try Self.blob("garbage \(number)", in: store) }
        let freed = Mutex(0)
        // While a transaction is open, the first compaction cannot end, and so all others wait for the second.
        try store.write { _ in
            for _ in 0..<10 {
                DispatchQueue.global().async(group: group) {
                    do {
                        let blobs = try store.compact().blobs
                        if blobs > 0 { freed.withLock { $0 += 1 } }
                        runs.withLock { $0 += 1 }
                    } catch { Issue.record(error) }
                }
            }
            let deadline = ContinuousClock.now + .seconds(30)
            // Nothing announces that a compaction waits, and this thread holds the transaction that it waits for.
            while !store.isCompactionWaiting, ContinuousClock.now < deadline {
                Thread.sleep(forTimeInterval: 0.001)
            }
            #expect(store.isCompactionWaiting, "no second compaction waits for the first")
        }
        group.wait()
        #expect(runs.withLock { $0 } == 10)
        #expect(freed.withLock { (1...10).contains($0) })
        #expect(try store.blobs.all().isEmpty)
        #expect(try store.readRows { try $0.info("compactions") }.flatMap { Int($0) } ?? 0 <= 11)
    }
}
