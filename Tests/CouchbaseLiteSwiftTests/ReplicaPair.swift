import CouchbaseLiteSwift
import Dispatch
import Foundation
import LoveseatTesting
import Testing

/// A database, and another one in this process that it replicates with.
struct ReplicaPair {
    let world: World
    let peer: Database
    let theirs: CouchbaseLiteSwift.Collection
    var ours: CouchbaseLiteSwift.Collection { world.sights }

    init() throws {
        world = try World()
        peer = try Database(name: "peer", config: world.config)
        theirs = try peer.createCollection(name: "sights", scope: "travel")
    }

    /// A configuration of both collections.
    func config(
        _ type: ReplicatorType = .pushAndPull,
        _ change: (inout CollectionConfiguration) -> Void = { _ in }
    ) -> ReplicatorConfiguration {
        var collection = CollectionConfiguration(collection: ours)
        change(&collection)
        var config = ReplicatorConfiguration(
            collections: [collection],
            target: DatabaseEndpoint(database: peer)
        )
        config.replicatorType = type
        return config
    }

    /// Replicates once.
    @discardableResult
    func replicate(_ config: ReplicatorConfiguration? = nil) async throws -> Observed {
        let observed = Observed(config ?? self.config())
        try await observed.run()
        return observed
    }

    /// Saves a document in one of the collections.
    func save(_ id: String, _ name: String, in collection: CouchbaseLiteSwift.Collection) throws {
        try collection.save(document: MutableDocument(id: id, data: ["name": name]))
    }

    /// Gives both sides a document of the same ID.
    func makeConflict(_ id: String = "tower") throws {
        try save(id, "ours", in: ours)
        try save(id, "theirs", in: theirs)
    }

    /// The name in our document.
    func name(_ id: String = "tower") throws -> String? { try ours.document(id: id)?.string(forKey: "name") }
}

/// A replicator with listeners of both kinds, which share a queue.
struct Observed {
    let replicator: Replicator
    let statuses = Heard<Replicator.Status>()
    let documents = Heard<ReplicatedDocument>()
    let directions = Heard<Bool>()

    init(_ config: ReplicatorConfiguration) {
        replicator = Replicator(config: config)
        replicator.addChangeListener(withQueue: statuses.queue) { [statuses] in statuses.add($0.status) }
        replicator.addDocumentReplicationListener(withQueue: statuses.queue) {
            [documents, directions] event in
            directions.add(event.isPush)
            for document in event.documents { documents.add(document) }
        }
    }

    /// Replicates until the listener has heard of the end.
    func run(reset: Bool = false) async throws {
        let before = stops
        replicator.start(reset: reset)
        try await eventually { stops > before }
    }

    func isAt(_ activity: Replicator.ActivityLevel) -> Bool { statuses.all.last?.activity == activity }

    var stops: Int { statuses.all.count { $0.activity == .stopped } }

    /// The error with which the replicator stopped.
    var error: NSError? { statuses.all.last?.error.map { $0 as NSError } }

    /// The only event of a document.
    var event: ReplicatedDocument {
        get throws {
            #expect(documents.all.count == 1)
            return try #require(documents.all.first)
        }
    }
}
