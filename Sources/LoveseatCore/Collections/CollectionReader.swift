import LoveseatModel
import LoveseatStorage

/// Reads documents of a collection as of one moment.
struct CollectionReader {
    private let collection: Collection
    let view: StoreReadTransaction

    init(_ collection: Collection, _ view: StoreReadTransaction) {
        (self.collection, self.view) = (collection, view)
    }

    /// Reads a snapshot of a collection that exists.
    ///
    /// `call`: the name of the called function, for messages.
    static func snapshot<T>(
        of collection: Collection,
        call: String = #function,
        _ body: (CollectionReader) throws -> T
    ) throws(LoveseatError) -> T {
        let store = try collection.openStore(call)
        return try DocumentStore.wrapping {
            try store.read(within: collection.database.config.busyTimeout, call: call) {
                try body(Self(existing: collection, $0))
            }
        }
    }

    /// Reads a snapshot on one of the store's own threads.
    static func snapshotOfTask<T: Sendable>(
        of collection: Collection,
        call: String = #function,
        _ body: @Sendable (CollectionReader) throws -> T
    ) async throws -> T {
        let store = try collection.openStore(call)
        do {
            return try await store.readFromTask(within: collection.database.config.busyTimeout, call: call) {
                try body(Self(existing: collection, $0))
            }
        } catch { throw Database.mapped(error) }
    }

    private init(existing collection: Collection, _ view: StoreReadTransaction) throws(LoveseatError) {
        guard view.contains(collection.handle) else {
            throw LoveseatError(.notOpen, "collection \(collection.fullName) was deleted")
        }
        self.init(collection, view)
    }

    func documents(_ listing: DocumentListing) throws -> [Document] {
        var found: [Document] = []
        try forEachRecord(try listing.stored) {
            found.append(try Document($0, in: collection))
            return true
        }
        return found
    }

    func documentIDs(_ listing: DocumentListing) throws -> [String] {
        var found: [String] = []
        try view.listIDs(try listing.stored, in: collection.handle) { id, _ in
            found.append(id)
            return true
        }
        return found
    }

    func documents(ids: [String]) throws -> [Document] {
        try ids.compactMap { id in
            guard let record = try view.record(id, in: collection.handle), !record.isDeleted else {
                return nil
            }
            return try Document(record, in: collection)
        }
    }

    /// Calls a closure with one record after another, until it returns false.
    func forEachRecord(
        _ listing: StoreReadTransaction.Listing,
        _ body: (DocumentRecord) throws -> Bool
    ) throws {
        try view.list(listing, in: collection.handle, visit: body)
    }

    func deletedCount() throws -> Int { try view.deletedCount(collection.handle) }
}

extension Document {
    static func decode<T: Decodable>(_ documents: [Document], _ type: T.Type) throws(LoveseatError) -> [T] {
        var values: [T] = []
        values.reserveCapacity(documents.count)
        for document in documents { values.append(try document.decode(type)) }
        return values
    }
}
