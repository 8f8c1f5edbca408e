import CouchbaseLiteSwift
import Foundation
import Testing

/// Calls after the database was closed, or the collection deleted.
@Suite(.ownThreads) struct ClosedDatabaseTests {
    private let world: World
    private let blob = Blob(contentType: "text/plain", data: Data("hello".utf8))
    private var database: Database { world.database }
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws {
        world = try World()
        try world.database.saveBlob(blob: blob)
    }

    @Test func `every call of a closed database that can throw throws notOpen`() throws {
        let scope = sights.scope
        try database.close()
        expectError(CBLError.notOpen) { try database.defaultScope() }
        expectError(CBLError.notOpen) { try database.scope(name: "travel") }
        expectError(CBLError.notOpen) { try database.collections() }
        expectError(CBLError.notOpen) { try database.collection(name: "sights", scope: "travel") }
        expectError(CBLError.notOpen) { try database.createCollection(name: "sights", scope: "travel") }
        expectError(CBLError.notOpen) { try database.deleteCollection(name: "nowhere") }
        expectError(CBLError.notOpen) { try database.performMaintenance(type: .compact) }
        expectError(CBLError.notOpen) { try database.performMaintenance(type: .integrityCheck) }
        expectError(CBLError.notOpen) {
            try database.saveBlob(blob: Blob(contentType: "text/plain", data: Data("new".utf8)))
        }
        expectError(CBLError.notOpen) { try database.getBlob(properties: blob.properties) }
        expectError(CBLError.notOpen) { try scope.collections() }
        expectError(CBLError.notOpen) { try scope.collection(name: "sights") }
    }

    @Test func `queries of a closed database throw notOpen, and their listeners are not called`() throws {
        let query = try database.createQuery("SELECT meta().id FROM travel.sights")
        let built = QueryBuilder.select(SelectResult.all()).from(DataSource.collection(sights))
        try database.close()
        expectError(CBLError.notOpen) { try query.explain() }
        expectError(CBLError.notOpen) { try built.execute() }
        query.addChangeListener { _ in }.remove()
        sights.addDocumentChangeListener(id: "tower") { _ in }.remove()
    }

    @Test(arguments: [false, true])
    func `every call about indexes throws notOpen`(isDeleted: Bool) throws {
        if isDeleted {
            try database.deleteCollection(name: "sights", scope: "travel")
        } else {
            try database.close()
        }
        expectError(CBLError.notOpen) { try sights.indexes() }
        expectError(CBLError.notOpen) { try sights.index(withName: "a") }
        expectError(CBLError.notOpen) { try sights.deleteIndex(forName: "a") }
        let configs: [any IndexConfiguration] = [
            ValueIndexConfiguration(["city"]), FullTextIndexConfiguration(["text"]),
            ArrayIndexConfiguration(path: "tags"),
        ]
        for config in configs {
            expectError(CBLError.notOpen) { try sights.createIndex(withName: "a", config: config) }
        }
        let built = IndexBuilder.valueIndex(items: ValueIndexItem.property("city"))
        expectError(CBLError.notOpen) { try sights.createIndex(built, name: "a") }
    }

    @Test func `a replicator of a deleted collection has no pending documents to tell`() throws {
        let pair = try ReplicaPair()
        let replicator = Replicator(config: pair.config())
        try pair.world.database.deleteCollection(name: "sights", scope: "travel")
        expectError(CBLError.notOpen) { try replicator.pendingDocumentIds(collection: pair.ours) }
        expectError(CBLError.notOpen) {
            try replicator.isDocumentPending("tower", collection: pair.ours)
        }
    }
}
