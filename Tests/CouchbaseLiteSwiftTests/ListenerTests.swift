import CouchbaseLiteSwift
import Dispatch
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct ListenerTests {
    private let world: World
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws { world = try World() }

    @Test func `a listener hears every transaction of its collection, by whatever instance`() throws {
        let heard = Heard<[String]>()
        sights.addChangeListener(queue: heard.queue) { [weak database = world.database] change in
            #expect(change.collection.database === database)
            heard.add(change.documentIDs)
        }
        let document = MutableDocument(id: "tower")
        try sights.save(document: document)
        try world.database.defaultCollection().save(document: MutableDocument(id: "elsewhere"))
        let again = try Database(name: "trips", config: world.config)
        let twin = try #require(try again.collection(name: "sights", scope: "travel"))
        try twin.save(document: MutableDocument(id: "louvre"))
        try sights.delete(document: document)
        try sights.purge(id: "tower")
        #expect(heard.settled == [["tower"], ["louvre"], ["tower"], ["tower"]])
    }

    @Test func `a document's listener hears its changes only`() throws {
        let heard = Heard<String>()
        let token = sights.addDocumentChangeListener(id: "tower", queue: heard.queue) {
            heard.add($0.documentID)
        }
        let document = MutableDocument(id: "tower")
        try sights.save(document: document)
        try sights.save(document: MutableDocument(id: "louvre"))
        try sights.delete(document: document)
        try sights.purge(document: document)
        #expect(heard.settled == ["tower", "tower", "tower"])
        token.remove()
    }

    @Test func `a listener that was removed is not called again`() throws {
        let heard = Heard<[String]>()
        let token = sights.addChangeListener(queue: heard.queue) { heard.add($0.documentIDs) }
        try sights.save(document: MutableDocument(id: "a"))
        #expect(heard.settled.count == 1)
        token.remove()
        token.remove()
        try sights.save(document: MutableDocument(id: "b"))
        #expect(heard.settled.count == 1)
    }

    @Test func `a large transaction is reported in parts`() throws {
        let heard = Heard<Int>()
        let token = sights.addChangeListener(queue: heard.queue) { heard.add($0.documentIDs.count) }
        try world.database.inBatch {
            for number in 0..<2_300 { try sights.save(document: MutableDocument(id: "\(number)")) }
        }
        #expect(heard.settled == [1_000, 1_000, 300])
        token.remove()
    }

    @Test func `setting an expiration is not a change, and the purge is one`() async throws {
        let heard = Heard<[String]>()
        try sights.save(document: MutableDocument(id: "tower"))
        let token = sights.addChangeListener(queue: heard.queue) { heard.add($0.documentIDs) }
        try sights.setDocumentExpiration(id: "tower", expiration: Date(timeIntervalSinceNow: 1_000))
        #expect(heard.settled.isEmpty)
        try sights.setDocumentExpiration(id: "tower", expiration: Date(timeIntervalSinceNow: 0.05))
        try await eventually { heard.all == [["tower"]] }
        token.remove()
    }

    @Test func `a deleted document expires, which is its second change`() async throws {
        let heard = Heard<String>()
        let document = MutableDocument(id: "tower")
        try sights.save(document: document)
        let token = sights.addDocumentChangeListener(id: "tower", queue: heard.queue) {
            heard.add($0.documentID)
        }
        try sights.delete(document: document)
        try sights.setDocumentExpiration(id: "tower", expiration: Date(timeIntervalSinceNow: 0.05))
        try await eventually { heard.all.count == 2 }
        token.remove()
        expectError(CBLError.notFound) { try sights.purge(id: "tower") }
    }

    @Test func `listeners do not keep a database open`() throws {
        let heard = Heard<[String]>()
        func open() throws {
            let other = try Database(name: "other", config: world.config)
            try other.defaultCollection().addChangeListener(queue: heard.queue) {
                heard.add($0.documentIDs)
            }
            try other.defaultCollection().save(document: MutableDocument(id: "a"))
            _ = heard.settled
        }
        try open()
        _ = heard.settled
        try Database.delete(withName: "other", inDirectory: world.scratch.path)
        #expect(heard.all == [["a"]])
    }

    @Test func `listeners without a queue are called on the main queue`() async throws {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        let heard = Heard<String>()
        let note = { (what: String) in heard.add("\(what) \(DispatchQueue.getSpecific(key: key) ?? false)") }
        let pair = try ReplicaPair()
        let query = try pair.world.database.createQuery("SELECT meta().id FROM travel.sights")
        let tokens = [
            pair.ours.addChangeListener { _ in note("collection") },
            pair.ours.addChangeListener(queue: nil) { _ in note("no queue") },
            pair.ours.addDocumentChangeListener(id: "tower") { _ in note("document") },
            query.addChangeListener { _ in note("query") },
        ]
        let replicator = Replicator(config: pair.config())
        replicator.addChangeListener { _ in note("replicator") }
        replicator.addDocumentReplicationListener { _ in note("replication") }
        try pair.save("tower", "Eiffel", in: pair.ours)
        replicator.start()
        let all = ["collection", "no queue", "document", "query", "replicator", "replication"]
        try await eventually { Set(heard.all) == Set(all.map { "\($0) true" }) }
        for token in tokens { token.remove() }
    }

    @Test func `a document's listener hears what is replicated`() async throws {
        let pair = try ReplicaPair()
        let heard = Heard<String>()
        pair.ours.addDocumentChangeListener(id: "tower", queue: heard.queue) { heard.add($0.documentID) }
        try pair.save("tower", "Eiffel", in: pair.theirs)
        try await pair.replicate()
        try await eventually { heard.all == ["tower"] }
    }
}
