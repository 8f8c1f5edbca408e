import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct BatchTests {
    private let world: World
    private var database: Database { world.database }
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws { world = try World() }

    private struct Problem: LocalizedError { var errorDescription: String? { "the app's own problem" } }

    @Test func `a batch reads its own changes, and is reported once`() throws {
        let heard = Heard<[String]>()
        let token = sights.addChangeListener(queue: heard.queue) { heard.add($0.documentIDs) }
        defer { token.remove() }
        let old = MutableDocument(id: "old")
        try sights.save(document: old)
        try database.inBatch {
            try sights.save(document: MutableDocument(id: "a", data: ["n": 1]))
            try sights.save(document: MutableDocument(id: "b"))
            #expect(sights.count == 3)
            #expect(try sights.document(id: "a")?.int(forKey: "n") == 1)
            try sights.delete(document: old)
            #expect(try sights.document(id: "old") == nil)
            try sights.setDocumentExpiration(id: "b", expiration: Date(timeIntervalSinceNow: 1_000))
            #expect(try sights.getDocumentExpiration(id: "b") != nil)
            let made = try database.createCollection(name: "made")
            try made.save(document: MutableDocument(id: "c"))
            #expect(made.count == 1)
            #expect(Set(try database.collections().map(\.name)) == ["_default", "made"])
        }
        #expect(sights.count == 2)
        #expect(try database.collection(name: "made")?.count == 1)
        #expect(heard.settled == [["old"], ["a", "b", "old"]])
    }

    @Test func `a batch that throws changes nothing, and its error is unexpectedError with the message`()
        throws
    {
        do {
            try database.inBatch {
                try sights.save(document: MutableDocument(id: "a"))
                throw Problem()
            }
            Issue.record("nothing was thrown")
        } catch let error as NSError {
            #expect(error.domain == CBLError.domain)
            #expect(error.code == CBLError.unexpectedError)
            #expect(error.localizedDescription == "the app's own problem")
        }
        #expect(sights.count == 0)
        expectError(CBLError.unexpectedError) { try database.inBatch { try sights.purge(id: "nowhere") } }
        try database.inBatch { try sights.save(document: MutableDocument(id: "a")) }
        #expect(sights.count == 1)
    }

    @Test func `a batch in a batch belongs to it`() throws {
        expectError(CBLError.unexpectedError) {
            try database.inBatch {
                try sights.save(document: MutableDocument(id: "a"))
                try database.inBatch {
                    try sights.save(document: MutableDocument(id: "b"))
                    #expect(sights.count == 2)
                }
                throw Problem()
            }
        }
        #expect(sights.count == 0)
    }

    @Test func `a database cannot be closed or deleted inside a batch`() throws {
        try database.inBatch {
            expectError(CBLError.transactionNotClosed) { try database.close() }
            expectError(CBLError.transactionNotClosed) { try database.delete() }
            expectError(CBLError.transactionNotClosed) {
                try database.performMaintenance(type: .compact)
            }
            try sights.save(document: MutableDocument(id: "a"))
        }
        #expect(sights.count == 1)
    }

    @Test func `another thread is not in the batch`() throws {
        let heard = Heard<UInt64>()
        try database.inBatch {
            try sights.save(document: MutableDocument(id: "a"))
            let sights = sights
            heard.queue.async { heard.add(sights.count) }
            #expect(heard.settled == [0])
        }
        #expect(sights.count == 1)
    }

    @Test func `a conflict handler inside a batch may read and write`() throws {
        try sights.save(document: MutableDocument(id: "a", data: ["n": 1]))
        try database.inBatch {
            let twin = MutableDocument(id: "a", data: ["n": 5])
            let isSaved = try sights.save(document: twin) { document, stored in
                #expect(stored?.int(forKey: "n") == 1)
                #expect(sights.count == 1)
                return true
            }
            #expect(isSaved)
        }
        #expect(try sights.document(id: "a")?.int(forKey: "n") == 5)
    }
}
