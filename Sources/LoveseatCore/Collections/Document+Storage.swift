import Foundation
import LoveseatModel
import LoveseatStorage

extension SaveCondition {
    init(_ concurrencyControl: ConcurrencyControl, of document: Document) {
        self = concurrencyControl == .lastWriteWins ? .lastWriteWins : .unchanged(since: document.revisionID)
    }
}

extension Document {
    /// A document that belongs to no collection, as filters and resolvers see it.
    init(_ record: DocumentRecord) {
        self.init(
            id: record.id,
            revisionID: record.revision,
            version: record.version,
            sequence: record.sequence,
            body: record.body
        )
    }

    /// A document of a collection.
    ///
    /// - Throws: `corruptData` if the stored content is damaged: an empty document that is saved would replace what is left of it.
    init(_ record: DocumentRecord, in collection: Collection) throws(LoveseatError) {
        self.init(
            id: record.id,
            revisionID: record.revision,
            version: record.version,
            sequence: record.sequence,
            body: record.body,
            indexed: try record.element()
        )
        origin = DocumentOrigin(collection)
    }

    mutating func apply(_ saved: SavedRevision, in collection: Collection) {
        revisionID = saved.revision
        version = saved.version
        sequence = saved.sequence
        origin = DocumentOrigin(collection)
    }
}

extension Date {
    /// Creates a date from milliseconds since 1970.
    init(expirationTime: Int64) { self.init(timeIntervalSince1970: Double(expirationTime) / 1_000) }

    /// The date in milliseconds since 1970.
    var expirationTime: Int64 { Int64(min(max(timeIntervalSince1970 * 1_000, 0), 1e15)) }
}

extension DocumentOrigin {
    /// The origin of a collection's documents.
    init(_ collection: Collection) {
        self.init(database: collection.database.instance, collection: collection.handle.number)
    }
}

extension LoveseatError {
    static func noDocument(_ id: String, in collection: Collection) -> LoveseatError {
        LoveseatError(.notFound, "there is no document \"\(id)\" in collection \(collection.fullName)")
    }
}
