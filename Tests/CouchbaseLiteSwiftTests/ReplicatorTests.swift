import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct ReplicatorTests {
    private let pair: ReplicaPair

    init() throws { pair = try ReplicaPair() }

    @Test func `one pass replicates both directions, and ends with one status of its end`() async throws {
        try pair.save("tower", "Eiffel", in: pair.ours)
        try pair.save("louvre", "Louvre", in: pair.theirs)
        let observed = Observed(pair.config())
        #expect(observed.replicator.status.activity == .stopped)
        #expect(observed.replicator.status.progress.total == 0)
        #expect(observed.replicator.status.error == nil)
        #expect(observed.replicator.correlationID == nil)
        #expect(observed.replicator.serverCertificate == nil)
        try await observed.run()
        #expect(try pair.name("louvre") == "Louvre")
        #expect(try pair.theirs.document(id: "tower")?.string(forKey: "name") == "Eiffel")
        _ = observed.statuses.settled
        #expect(observed.statuses.all.first?.activity == .connecting)
        #expect(observed.statuses.all.last?.activity == .stopped)
        #expect(observed.stops == 1)
        #expect(observed.error == nil)
        let progress = observed.replicator.status.progress
        #expect(progress.completed == progress.total)
        #expect(observed.replicator.status.activity == .stopped)
        #expect(observed.replicator.correlationID?.isEmpty == false)
    }

    @Test func `all events of documents come before the end`() async throws {
        for number in 0..<230 { try pair.save("\(number)", "n", in: pair.ours) }
        let order = Heard<String>()
        let replicator = Replicator(config: pair.config(.push))
        replicator.addChangeListener(withQueue: order.queue) { change in
            if change.status.activity == .stopped { order.add("stopped") }
        }
        replicator.addDocumentReplicationListener(withQueue: order.queue) { [weak replicator] event in
            #expect(event.replicator === replicator)
            #expect(event.isPush)
            for document in event.documents { order.add(document.id) }
        }
        replicator.start()
        try await eventually { order.all.contains("stopped") }
        #expect(order.settled.count == 231)
        #expect(order.all.last == "stopped")
        #expect(Set(order.all).count == 231)
    }

    @Test func `an event names the collection, and says that a document was deleted`() async throws {
        let document = MutableDocument(id: "tower")
        try pair.ours.save(document: document)
        try await pair.replicate()
        try pair.ours.delete(document: document)
        let observed = try await pair.replicate(pair.config(.push))
        let event = try observed.event
        #expect(event.id == "tower")
        #expect(event.scope == "travel")
        #expect(event.collection == "sights")
        #expect(event.flags == .deleted)
        #expect(event.error == nil)
        #expect(observed.directions.all == [true])
        #expect(try pair.theirs.document(id: "tower") == nil)
    }

    @Test func `a continuous replicator goes on until it is stopped`() async throws {
        var config = pair.config()
        config.continuous = true
        let observed = Observed(config)
        observed.replicator.start()
        try await eventually { observed.isAt(.idle) }
        try pair.save("tower", "Eiffel", in: pair.ours)
        try await eventually { try pair.theirs.document(id: "tower") != nil }
        try pair.save("louvre", "Louvre", in: pair.theirs)
        try await eventually { try pair.name("louvre") == "Louvre" }
        // One that is running is not started again.
        observed.replicator.start()
        observed.replicator.stop()
        try await eventually { observed.isAt(.stopped) }
        #expect(observed.error == nil)
        observed.replicator.stop()
        _ = observed.statuses.settled
        #expect(observed.stops == 1)
        #expect(observed.statuses.all.count { $0.activity == .connecting } == 1)
    }

    @Test func `a replicator can be started again, and continues where it was`() async throws {
        try pair.save("tower", "Eiffel", in: pair.ours)
        let observed = Observed(pair.config(.push))
        try await observed.run()
        try pair.save("louvre", "Louvre", in: pair.ours)
        try await observed.run()
        #expect(observed.stops == 2)
        #expect(observed.documents.all.map(\.id) == ["tower", "louvre"])
    }

    @Test func `a listener may start the replicator again when it has stopped`() async throws {
        let observed = Observed(pair.config())
        let token = observed.replicator.addChangeListener(withQueue: observed.statuses.queue) { change in
            if change.status.activity == .stopped, observed.stops == 1 { change.replicator.start() }
        }
        observed.replicator.start()
        try await eventually { observed.stops == 2 }
        token.remove()
        #expect(observed.statuses.all.count { $0.activity == .connecting } == 2)
    }

    @Test func `a reset brings back what was purged`() async throws {
        try pair.save("tower", "Eiffel", in: pair.theirs)
        let observed = Observed(pair.config(.pull))
        try await observed.run()
        try pair.ours.purge(id: "tower")
        try await observed.run()
        #expect(try pair.name() == nil)
        try await observed.run(reset: true)
        #expect(try pair.name() == "Eiffel")
    }

    @Test func `a listener that was removed is not called again`() async throws {
        let heard = Heard<String>()
        let replicator = Replicator(config: pair.config())
        let token = replicator.addChangeListener(withQueue: heard.queue) { _ in heard.add("change") }
        let other = replicator.addDocumentReplicationListener(withQueue: heard.queue) { _ in
            heard.add("document")
        }
        token.remove()
        other.remove()
        try pair.save("tower", "Eiffel", in: pair.ours)
        replicator.start()
        try await eventually { replicator.status.activity == .stopped }
        #expect(heard.settled.isEmpty)
    }

    @Test(arguments: [false, true])
    func `closing or deleting the database stops its replicators, whose listeners hear it`(isDeleted: Bool)
        async throws
    {
        var config = pair.config()
        config.continuous = true
        let observed = Observed(config)
        observed.replicator.start()
        try await eventually { observed.isAt(.idle) }
        if isDeleted { try pair.world.database.delete() } else { try pair.world.database.close() }
        #expect(observed.replicator.status.activity == .stopped)
        try await eventually { observed.isAt(.stopped) }
        #expect(observed.stops == 1)
    }

    @Test func `an error ends in a status, with domain and code`() async throws {
        try pair.peer.deleteCollection(name: "sights", scope: "travel")
        let missing = try await pair.replicate()
        #expect(missing.error?.domain == CBLError.domain)
        #expect(missing.error?.code == CBLError.httpNotFound)
        let config = pair.config()
        try pair.world.database.close()
        let closed = try await pair.replicate(config)
        #expect(closed.error?.code == CBLError.notOpen)
    }

    @Test func `a revision has the same timestamp everywhere, and a later one a greater timestamp`()
        async throws
    {
        for number in 1...3 { try pair.save("other\(number)", "n", in: pair.theirs) }
        let document = MutableDocument(id: "tower")
        for number in 1...2 { try pair.ours.save(document: document.setInt(number, forKey: "n")) }
        try await pair.replicate()
        let theirs = try #require(try pair.theirs.document(id: "tower")).toMutable()
        #expect(theirs.timestamp == document.timestamp)
        try pair.theirs.save(document: theirs.setInt(3, forKey: "n"))
        try await pair.replicate()
        let ours = try #require(try pair.ours.document(id: "tower"))
        #expect(ours.timestamp == theirs.timestamp)
        #expect(ours.timestamp > document.timestamp)
    }

    @Test func `documents are pending until they were pushed`() async throws {
        let document = MutableDocument(id: "tower")
        try pair.ours.save(document: document)
        try pair.save("hidden", "n", in: pair.ours)
        let observed = Observed(
            pair.config(.push) { $0.pushFilter = { document, _ in document.id != "hidden" } }
        )
        let replicator = observed.replicator
        #expect(try replicator.pendingDocumentIds(collection: pair.ours) == ["tower"])
        #expect(try replicator.isDocumentPending("tower", collection: pair.ours))
        #expect(try !replicator.isDocumentPending("hidden", collection: pair.ours))
        try await observed.run()
        #expect(try replicator.pendingDocumentIds(collection: pair.ours).isEmpty)
        try pair.ours.delete(document: document)
        #expect(try replicator.isDocumentPending("tower", collection: pair.ours))
        let pulling = Replicator(config: pair.config(.pull))
        expectError(CBLError.unsupported) { try pulling.pendingDocumentIds(collection: pair.ours) }
        let other = try pair.world.database.defaultCollection()
        expectError(CBLError.invalidParameter) { try replicator.pendingDocumentIds(collection: other) }
        expectError(CBLError.invalidParameter) {
            try replicator.isDocumentPending("tower", collection: other)
        }
    }
}
