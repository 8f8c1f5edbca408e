import LoveseatModel
import LoveseatStorage

/// Changes documents of a collection within a transaction: one of its own for each call of ``Collection``, or the app's.
struct DocumentEditor {
    private let collection: Collection
    private let transaction: StoreWriteTransaction

    init(_ collection: Collection, _ transaction: StoreWriteTransaction) {
        (self.collection, self.transaction) = (collection, transaction)
    }

    /// Saves a document; nil if it was changed since it was read.
    ///
    /// `body`: its body, as the ``DocumentValidator`` returns it.
    func save(_ document: Document, _ body: JSONText, _ concurrencyControl: ConcurrencyControl) throws
        -> SavedRevision?
    {
        try transaction.save(
            document.id,
            in: collection.handle,
            body: body,
            isDeleted: false,
            condition: SaveCondition(concurrencyControl, of: document)
        )
    }

    /// Deletes a document; false if it was changed since it was read.
    func delete(_ document: Document, _ concurrencyControl: ConcurrencyControl) throws -> Bool {
        guard document.revisionID != nil else { throw LoveseatError.noDocument(document.id, in: collection) }
        return try delete(document.id, SaveCondition(concurrencyControl, of: document))
    }

    /// Deletes a document, and returns its tombstone; nil if it was changed since it was read.
    ///
    /// A document whose revision is the tombstone gets another one. A document that was deleted otherwise is returned as it is.
    func tombstone(of document: Document, _ concurrencyControl: ConcurrencyControl) throws -> Document? {
        guard let base = document.revisionID,
            let record = try transaction.record(document.id, in: collection.handle)
        else { throw LoveseatError.noDocument(document.id, in: collection) }
        if record.isDeleted, record.revision != base { return document }
        let saved = try transaction.save(
            document.id,
            in: collection.handle,
            body: .emptyObject,
            isDeleted: true,
            condition: SaveCondition(concurrencyControl, of: document)
        )
        guard let saved else { return nil }
        var tombstone = document
        tombstone.apply(saved, in: collection)
        return tombstone
    }

    /// Deletes a document, whatever its revision.
    func delete(_ id: String) throws { _ = try delete(id, .lastWriteWins) }

    private func delete(_ id: String, _ condition: SaveCondition) throws -> Bool {
        guard let record = try transaction.record(id, in: collection.handle) else {
            throw LoveseatError.noDocument(id, in: collection)
        }
        // Deleting a deleted document succeeds.
        if record.isDeleted { return true }
        return try transaction.save(
            id,
            in: collection.handle,
            body: .emptyObject,
            isDeleted: true,
            condition: condition
        ) != nil
    }

    func purge(_ id: String) throws {
        guard try transaction.purge(id, in: collection.handle) else {
            throw LoveseatError.noDocument(id, in: collection)
        }
    }

    /// Sets an expiration in milliseconds since 1970, or removes it.
    func setExpiration(of id: String, at time: Int64?) throws {
        guard try transaction.setExpiration(id, in: collection.handle, at: time) else {
            throw LoveseatError.noDocument(id, in: collection)
        }
    }
}
