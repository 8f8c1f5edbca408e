import CouchbaseLiteSwift
import Dispatch
import Foundation
import LoveseatTesting
import Synchronization
import Testing

/// A database in a folder of its own.
struct World {
    let scratch: Scratch
    let database: Database
    let sights: CouchbaseLiteSwift.Collection

    init() throws {
        scratch = try Scratch()
        database = try Database(name: "trips", config: Self.config(scratch.path))
        sights = try database.createCollection(name: "sights", scope: "travel")
    }

    static func config(_ directory: String) -> DatabaseConfiguration {
        var config = DatabaseConfiguration()
        config.directory = directory
        return config
    }

    var config: DatabaseConfiguration { Self.config(scratch.path) }

    /// Saves a document and reads it back.
    func reloaded(_ document: MutableDocument) throws -> Document {
        try sights.save(document: document)
        return try #require(try sights.document(id: document.id))
    }
}

/// Requires an error of the CouchbaseLite domain with a code.
func expectError(
    _ code: Int,
    at location: SourceLocation = #_sourceLocation,
    _ body: () throws -> some Any
) {
    let error = #expect(throws: (any Error).self, sourceLocation: location) { _ = try body() }
    let bridged = error.map { $0 as NSError }
    #expect(bridged?.domain == CBLError.domain, sourceLocation: location)
    #expect(bridged?.code == code, sourceLocation: location)
}

/// Changes that a listener was called with, in order.
final class Heard<Change: Sendable>: Sendable {
    let queue = DispatchQueue(label: "listener")
    private let changes = Mutex<[Change]>([])

    var all: [Change] { changes.withLock { $0 } }

    func add(_ change: Change) { changes.withLock { $0.append(change) } }

    /// What came until everything that was on its way has arrived.
    var settled: [Change] {
        queue.sync {}
        return all
    }
}
