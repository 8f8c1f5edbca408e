import Foundation
import LoveseatModel
import LoveseatStorage
import Testing

/// The note that a closing makes, so that the next opening does not have to look at the table of each collection.
@Suite struct ClosingNoteTests {
    private let temporary: TemporaryStore

    init() throws { temporary = try TemporaryStore() }

    /// Sets when a document expires.
    private func expire(_ id: String, in store: DocumentStore, at time: Int64?) throws {
        let collection = try #require(store.collection(.default))
        #expect(try store.write { try $0.setExpiration(id, in: collection, at: time) })
    }

    /// Runs a closure on the store of a folder, and closes it.
    private func withStore(of folder: String, _ body: (DocumentStore) throws -> Void) throws {
        let store = try DocumentStore.open(folder: folder)
        defer { try? store.close() }
        try body(store)
    }

    @Test
    func
        `a store that is opened again knows its last sequence and which collections have documents that expire`()
        throws
    {
        let number = temporary.collection.number
        for id in ["a", "b", "c"] { _ = try temporary.save(id, "{}") }
        try expire("a", in: temporary.store, at: 1 << 50)
        try temporary.store.close()
        // The first one is opened by the note, and so is the second, after a time in which nothing was written.
        for _ in 0..<2 {
            try withStore(of: temporary.folder) { store in
                #expect(store.lastSequence(temporary.collection) == 3)
                #expect(store.numbers(having: .expiration) == [number])
                #expect(store.numbers(having: .conflict).isEmpty)
            }
        }
        try withStore(of: temporary.folder) { store in
            let collection = try #require(store.collection(.default))
            let body = try JSONText("{}").canonical
            let saved = try store.write {
                try $0.save(
                    "d",
                    in: collection,
                    body: body,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
            #expect(saved?.sequence == 4)
        }
        try withStore(of: temporary.folder) { #expect($0.lastSequence(temporary.collection) == 4) }
    }

    @Test func `a collection whose last expiration was taken back is not listed after the next closing`()
        throws
    {
        _ = try temporary.save("a", "{}")
        try expire("a", in: temporary.store, at: 1 << 50)
        try temporary.store.close()
        try withStore(of: temporary.folder) { try expire("a", in: $0, at: nil) }
        try withStore(of: temporary.folder) { #expect($0.numbers(having: .expiration).isEmpty) }
    }

    @Test func `no closing after a crash forgets which sequences may have been used`() throws {
        _ = try temporary.save("a", "{}")
        let copy = temporary.folder + "-copy"
        defer { try? FileManager.default.removeItem(atPath: copy) }
        // The files are those that a power loss leaves, which takes what comes next.
        try FileManager.default.copyItem(atPath: temporary.folder, toPath: copy)
        _ = try temporary.save("lost", "{}")
        let used = temporary.store.lastSequence(temporary.collection)
        for _ in 0..<2 { try withStore(of: copy) { #expect($0.lastSequence(temporary.collection) >= used) } }
        try withStore(of: copy) { store in
            let body = try JSONText("{}").canonical
            let collection = try #require(store.collection(.default))
            let saved = try store.write {
                try $0.save("b", in: collection, body: body, isDeleted: false, condition: .lastWriteWins)
            }
            #expect(try #require(saved).sequence > used)
        }
    }

    @Test func `the note of an earlier closing is not believed after a crash`() throws {
        _ = try temporary.save("a", "{}")
        try temporary.store.close()
        let copy = temporary.folder + "-copy"
        defer { try? FileManager.default.removeItem(atPath: copy) }
        try withStore(of: temporary.folder) { store in
            try expire("a", in: store, at: 1 << 50)
            // The files are those that a crash at this moment would leave.
            try FileManager.default.copyItem(atPath: temporary.folder, toPath: copy)
        }
        try withStore(of: copy) { store in
            #expect(store.numbers(having: .expiration) == [temporary.collection.number])
            #expect(store.lastSequence(temporary.collection) > 1)
        }
        // A time after the crash in which everything is closed ends with a note again, and behind what may have been used.
        var last: UInt64 = 0
        try withStore(of: copy) { last = $0.lastSequence(temporary.collection) }
        #expect(last > 1)
        try withStore(of: copy) { store in
            #expect(store.lastSequence(temporary.collection) == last)
            #expect(store.numbers(having: .expiration) == [temporary.collection.number])
        }
    }

    @Test func `settings are read while the store writes, and after it was used for rows`() throws {
        let store = temporary.store
        let uuid = try store.readSettings { try $0.info("public_uuid") }
        let within = try store.write { _ in try store.readSettings { try $0.info("public_uuid") } }
        #expect(within == uuid)
        _ = try temporary.save("a", "{}")
        #expect(try temporary.record("a") != nil)
        #expect(try store.readSettings { try $0.info("public_uuid") } == uuid)
    }
}
