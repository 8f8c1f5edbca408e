import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Listing the documents of a collection.
struct ListingTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    private func ids(_ listing: DocumentListing) throws -> [String] { try sights.documentIDs(listing) }

    /// All IDs by pages of a size.
    private func paged(_ listing: DocumentListing, by size: Int) throws -> [String] {
        var listing = listing
        var found: [String] = []
        listing.limit = size
        while true {
            let page = try sights.documents(listing)
            guard let last = page.last else { return found }
            #expect(page.count <= size)
            found += page.map(\.id)
            listing.cursor = DocumentCursor(last)
        }
    }

    private func streamed(_ listing: DocumentListing) async throws -> [String] {
        var found: [String] = []
        for try await document in sights.documentStream(listing) { found.append(document.id) }
        return found
    }

    @Test func `an empty collection has no documents, in any form`() async throws {
        #expect(try await sights.documents().isEmpty)
        #expect(try await sights.documentIDs().isEmpty)
        #expect(try await sights.documents(as: Sight.self).isEmpty)
        #expect(try await streamed(.all).isEmpty)
        #expect(try await streamed(DocumentListing(order: .sequence, descending: true)).isEmpty)
        #expect(try !sights.exists(id: "a"))
        #expect(try await database.read { try $0.documents(in: sights).isEmpty })
    }

    @Test
    func `documents are listed in order of IDs or changes, in both directions, by ranges, pages and streams`()
        async throws
    {
        for id in ["c", "a", "e", "b", "d", "gone"] { try sights.save(Sight(id: id, likes: 1)) }
        try sights.save(Sight(id: "a", likes: 2))
        try sights.delete(id: "gone")
        let listings: [(DocumentListing, String)] = [
            (.all, "abcde"),
            (DocumentListing(descending: true), "edcba"),
            (DocumentListing(order: .sequence), "cebda"),
            (DocumentListing(order: .sequence, descending: true), "adbec"),
            (DocumentListing(from: "b", through: "d"), "bcd"),
            (DocumentListing(from: "b", through: "d", descending: true), "dcb"),
            (DocumentListing(from: "b", through: "d", order: .sequence), "cbd"),
            (DocumentListing(from: "bb"), "cde"),
            (DocumentListing(through: "bb", descending: true), "ba"),
            (DocumentListing(from: "d", through: "b"), ""),
            (DocumentListing(prefix: "a", from: "b"), ""),
            (DocumentListing(prefix: "a", through: "a"), "a"),
            (DocumentListing(limit: 2), "ab"),
            (DocumentListing(limit: 0), ""),
            (DocumentListing(after: .id("b")), "cde"),
            (DocumentListing(after: .id("bb"), limit: 1), "c"),
            (DocumentListing(descending: true, after: .id("c")), "ba"),
            (DocumentListing(from: "c", after: .id("a")), "cde"),
            (DocumentListing(through: "c", descending: true, after: .id("e")), "cba"),
            (DocumentListing(order: .sequence, after: .sequence(3)), "bda"),
            (DocumentListing(order: .sequence, descending: true, after: .sequence(4)), "ec"),
        ]
        for (listing, expected) in listings {
            #expect(try ids(listing).joined() == expected, "\(listing)")
            #expect(try await sights.documents(listing).map(\.id).joined() == expected)
            #expect(try await streamed(listing).joined() == expected)
            if listing.limit == nil { #expect(try paged(listing, by: 2).joined() == expected) }
            let read = try await database.read { try $0.documentIDs(listing, in: sights) }
            #expect(read.joined() == expected)
            let asynchronous = try await sights.documents(listing, as: Sight.self)
            #expect(asynchronous.map(\.id).joined() == expected)
        }
        let values = try await sights.documents(DocumentListing(through: "b"), as: Sight.self)
        #expect(values == [Sight(id: "a", likes: 2), Sight(id: "b", likes: 1)])
    }

    @Test func `a prefix is one of bytes, whatever the characters`() throws {
        let odd = [
            "a", "a\u{10FFFF}", "a\u{10FFFF}z", "a\u{10FFFE}", "b", "é", "e\u{301}", "e", "\u{10FFFF}",
            "\u{10FFFF}\u{10FFFF}", "🦀", "🦀:1", "A", "%", "'", "\"", "日本", "z",
        ]
        for id in odd { try sights.save(Document(id: id)) }
        for prefix in odd + ["a\u{10FFFF}z", "none", "\u{10FFFF}"] {
            let expected = odd.filter { $0.utf8.starts(with: prefix.utf8) }
                .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            let found = try ids(.prefix(prefix))
            #expect(found.map { Array($0.utf8) } == expected.map { Array($0.utf8) }, "\(prefix)")
            let bySequence = try ids(DocumentListing(prefix: prefix, order: .sequence, descending: true))
            #expect(
                Swift.Set(bySequence.map { Array($0.utf8) }) == Swift.Set(expected.map { Array($0.utf8) })
            )
            #expect(try paged(.prefix(prefix), by: 1).count == expected.count)
            #expect(
                try paged(DocumentListing(prefix: prefix, descending: true), by: 1).count == expected.count
            )
        }
        #expect(try sights.exists(id: "e\u{301}"))
        try sights.purge(id: "é")
        #expect(try sights.exists(id: "e\u{301}"))
        #expect(try !sights.exists(id: "é"))
    }

    @Test func `many documents are got by their IDs, in that order`() async throws {
        for id in ["a", "b", "c"] { try sights.save(Sight(id: id, likes: 1)) }
        try sights.delete(id: "b")
        let wanted = ["c", "b", "none", "", "a", "c"]
        #expect(try await sights.documents(ids: wanted).map(\.id) == ["c", "a", "c"])
        #expect(try await sights.documents(ids: wanted, as: Sight.self).map(\.id) == ["c", "a", "c"])
        #expect(try await database.read { try $0.documents(ids: wanted, in: sights).count } == 3)
        #expect(try sights.exists(id: "a"))
        #expect(try !sights.exists(id: "b"))
        #expect(try await database.read { try !$0.exists(id: "b", in: sights) })
    }

    @Test func `a cursor is good after encoding, and refused in the other order`() throws {
        for id in ["a", "b", "c"] { try sights.save(Document(id: id)) }
        let second = try #require(try sights.document(id: "b"))
        let text = try JSONEncoder().encode(DocumentCursor(second))
        let cursor = try JSONDecoder().decode(DocumentCursor.self, from: text)
        #expect(try ids(DocumentListing(after: cursor)) == ["c"])
        try sights.purge(id: "b")
        #expect(try ids(DocumentListing(order: .sequence, after: cursor)) == ["c"])
        expectError(.invalidParameter) { try ids(DocumentListing(order: .sequence, after: .id("b"))) }
        expectError(.invalidParameter) { try ids(DocumentListing(after: .sequence(1))) }
        expectError(.invalidParameter) {
            try ids(DocumentListing(order: .sequence, after: DocumentCursor(Document(id: "new"))))
        }
        expectError(.invalidParameter) { try ids(DocumentListing(limit: -1)) }
    }

    @Test func `a document that does not fit the type is named`() async throws {
        try sights.save(Sight(id: "a", likes: 1))
        try sights.save(Document(id: "bad", ["likes": "many"]))
        let error = #expect(throws: LoveseatError.self) { try sights.documents(as: Sight.self) }
        #expect(error?.code == .decodingError)
        #expect(error?.message.contains("\"bad\"") == true)
        var iterator = sights.documentStream(as: Sight.self).makeAsyncIterator()
        #expect(try await iterator.next()?.id == "a")
        let streamed = await #expect(throws: LoveseatError.self) { try await iterator.next() }
        #expect(streamed?.code == .decodingError)
        #expect(try await iterator.next() == nil)
    }

    @Test func `inside a transaction, lists show its own changes`() throws {
        try sights.save([Sight(id: "a", likes: 1), Sight(id: "b", likes: 1)])
        try database.write { transaction in
            try transaction.save(Sight(id: "c", likes: 1), in: sights)
            try transaction.delete(id: "a", in: sights)
            #expect(try transaction.documentIDs(in: sights) == ["b", "c"])
            var seen: [String] = []
            try transaction.forEachDocument(in: sights) {
                seen.append($0.id)
                return seen.count < 1
            }
            #expect(seen == ["b"])
            expectError(.transactionNotClosed) { try sights.documents() }
            expectError(.transactionNotClosed) { try sights.exists(id: "a") }
        }
        #expect(try ids(.all) == ["b", "c"])
    }

    @Test func `an array is as of one moment`() async throws {
        try sights.save((0..<2_000).map { Sight(id: "\($0)", likes: 0) })
        let writer = Task {
            for round in 1...20 {
                try await database.write { transaction in
                    for id in 0..<2_000 { try transaction.save(Sight(id: "\(id)", likes: round), in: sights) }
                }
            }
        }
        for _ in 0..<20 {
            let values = try await sights.documents(as: Sight.self)
            #expect(values.count == 2_000)
            #expect(Swift.Set(values.map(\.likes)).count == 1)
        }
        try await writer.value
    }

    // MARK: Streams

    @Test func `a large document is a part of its own`() async throws {
        let large = String(repeating: "x", count: 3 << 20)
        for id in 0..<5 { try sights.save(Document(id: "\(id)", ["large": .string(large)])) }
        #expect(try await streamed(.all) == ["0", "1", "2", "3", "4"])
        #expect(try await streamed(DocumentListing(descending: true, limit: 3)) == ["4", "3", "2"])
    }

    @Test func `a document that exists all the time comes once, whatever is saved and deleted meanwhile`()
        async throws
    {
        try sights.save((0..<3_000).map { Sight(id: "old-\($0)", likes: 0) })
        var seen: [String] = []
        for try await document in sights.documentStream() {
            seen.append(document.id)
            if seen.count.isMultiple(of: 100) {
                try sights.save(Document(id: "new-\(seen.count)"))
                try sights.save(Document(id: "zzz-\(seen.count)"))
                try sights.save(Document(id: document.id, ["likes": 1]))
            }
        }
        #expect(Swift.Set(seen).count == seen.count)
        #expect(seen.filter { $0.hasPrefix("old-") }.count == 3_000)
        #expect(seen.contains { $0.hasPrefix("zzz-") })
    }

    @Test func `a stream by sequence ends when it has caught up`() async throws {
        try sights.save((0..<1_200).map { Sight(id: "\($0)", likes: 0) })
        var seen: [String: Int] = [:]
        for try await document in sights.documentStream(DocumentListing(order: .sequence)) {
            seen[document.id, default: 0] += 1
            if document.id == "10", seen["10"] == 1 { try sights.save(Sight(id: "5", likes: 1)) }
        }
        #expect(seen.count == 1_200)
        #expect(seen["5"] == 2)
    }

    @Test func `a stream of a collection that is deleted meanwhile throws`() async throws {
        try sights.save((0..<2_000).map { Sight(id: "\($0)", likes: 0) })
        var iterator = sights.documentStream().makeAsyncIterator()
        _ = try await iterator.next()
        try database.deleteCollection(name: "sights")
        try database.createCollection(name: "sights")
        let error = await #expect(throws: LoveseatError.self) {
            while try await iterator.next() != nil {}
        }
        #expect(error?.code == .notOpen)
        #expect(try await iterator.next() == nil)
        expectError(.notOpen) { try sights.documents() }
        expectError(.notOpen) { try sights.exists(id: "1") }
    }

    @Test func `a stream of a database that is closed meanwhile throws`() async throws {
        try sights.save((0..<2_000).map { Sight(id: "\($0)", likes: 0) })
        var iterator = sights.documentStream().makeAsyncIterator()
        _ = try await iterator.next()
        try await database.close()
        let error = await #expect(throws: LoveseatError.self) {
            while try await iterator.next() != nil {}
        }
        #expect(error?.code == .notOpen)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a cancelled stream throws, and does not look complete`() async throws {
        try sights.save((0..<2_000).map { Sight(id: "\($0)", likes: 0) })
        let task = Task {
            var count = 0
            for try await _ in sights.documentStream() {
                count += 1
                if count == 700 { withUnsafeCurrentTask { $0?.cancel() } }
            }
            return count
        }
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }

    @Test(.timeLimit(.minutes(1)))
    func `an expired document is listed until it is purged`() async throws {
        try sights.save([Sight(id: "a", likes: 1), Sight(id: "b", likes: 1)])
        let observed = try sights.observeDocumentIDs()
        try sights.setDocumentExpiration(id: "a", expiration: Date())
        for try await ids in observed where ids == ["b"] { break }
        #expect(try ids(.all) == ["b"])
        #expect(try await streamed(.all) == ["b"])
    }
}
