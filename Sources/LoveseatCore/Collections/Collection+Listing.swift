public import LoveseatModel
import LoveseatStorage

/// Listing documents.
///
/// A call that returns an array reads one snapshot: all of its documents are as of one moment. The sequences of
/// ``documentStream(_:)`` read a part at a time, and need little memory.
///
/// Calls without `await` block the thread. In async code, the calls of the same names with `await` run on one of the database's own
/// threads; they also throw `CancellationError` if the task is cancelled meanwhile.
extension Collection {
    // MARK: Arrays

    /// Returns documents in an array. Use ``documentStream(_:)`` if there may be too many for the memory.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for a negative limit, or a cursor of the other order; `corruptData` or
    ///   `corruptRevisionData` if what is stored of a document is damaged; `busy`; `notOpen`.
    public func documents(_ listing: DocumentListing = .all) throws(LoveseatError) -> [Document] {
        try CollectionReader.snapshot(of: self) { try $0.documents(listing) }
    }

    /// Returns documents in an array without blocking a thread of Swift's pool; see `documents(_:)`.
    public func documents(_ listing: DocumentListing = .all) async throws -> [Document] {
        try await CollectionReader.snapshotOfTask(of: self) { try $0.documents(listing) }
    }

    /// Returns documents as values of a type, in an array.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if one of the documents does not fit the type, which the message names; otherwise as
    ///   `documents(_:)`.
    public func documents<T: Decodable>(_ listing: DocumentListing = .all, as type: T.Type)
        throws(LoveseatError) -> [T]
    {
        try Document.decode(try documents(listing), type)
    }

    /// Returns documents as values of a type without blocking a thread of Swift's pool.
    public func documents<T: Decodable>(_ listing: DocumentListing = .all, as type: T.Type) async throws
        -> [T]
    {
        try Document.decode(try await documents(listing), type)
    }

    /// Returns the IDs of documents, without reading the documents.
    ///
    /// - Throws: As `documents(_:)`.
    public func documentIDs(_ listing: DocumentListing = .all) throws(LoveseatError) -> [String] {
        try CollectionReader.snapshot(of: self) { try $0.documentIDs(listing) }
    }

    /// Returns the IDs of documents without blocking a thread of Swift's pool.
    public func documentIDs(_ listing: DocumentListing = .all) async throws -> [String] {
        try await CollectionReader.snapshotOfTask(of: self) { try $0.documentIDs(listing) }
    }

    // MARK: By their IDs

    /// Returns the documents of some IDs, in the order of the IDs, without those that do not exist or were deleted.
    ///
    /// - Throws: ``LoveseatError``: `corruptData`, `corruptRevisionData`, `busy`, `notOpen`.
    public func documents(ids: [String]) throws(LoveseatError) -> [Document] {
        try CollectionReader.snapshot(of: self) { try $0.documents(ids: ids) }
    }

    /// Returns the documents of some IDs without blocking a thread of Swift's pool.
    public func documents(ids: [String]) async throws -> [Document] {
        try await CollectionReader.snapshotOfTask(of: self) { try $0.documents(ids: ids) }
    }

    /// Returns the documents of some IDs as values of a type, in the order of the IDs, without those that do not exist or were deleted.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if one of the documents does not fit the type; `corruptData`,
    ///   `corruptRevisionData`, `busy`, `notOpen`.
    public func documents<T: Decodable>(ids: [some DocumentKey], as type: T.Type) throws(LoveseatError) -> [T]
    {
        try Document.decode(try documents(ids: ids.map(\.documentID)), type)
    }

    /// Returns the documents of some IDs as values of a type without blocking a thread of Swift's pool.
    public func documents<T: Decodable>(ids: [some DocumentKey], as type: T.Type) async throws -> [T] {
        try Document.decode(try await documents(ids: ids.map(\.documentID)), type)
    }

    /// Returns whether there is a document of this ID that is not deleted.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; an error of the disk.
    public func exists(id: some DocumentKey) throws(LoveseatError) -> Bool {
        let store = try openStore()
        return try DocumentStore.wrapping { try store.readRows { try $0.exists(id.documentID, in: handle) } }
    }

    // MARK: Sequences

    /// Returns documents as an asynchronous sequence, which reads some hundred at a time, up to 1 MB.
    ///
    /// ```swift
    /// for try await document in sights.documentStream(.prefix("paris:")) { print(document.id) }
    /// ```
    ///
    /// Each part is read as of a moment of its own, and nothing is held in between: the sequence may take hours, and does not keep
    /// SQLite's log from being reused. In order of IDs, a document that exists all the time comes exactly once, with the content that it
    /// had when its part was read. In order of sequences, a document that is saved meanwhile moves to the end, so that it may come twice in
    /// an ascending sequence, and may be left out of a descending one. Use ``Database/read(_:)-8zqyx`` and
    /// ``ReadTransaction/documents(_:in:)`` for a view of one moment.
    ///
    /// Iterating throws ``LoveseatError`` as `documents(_:)` does, `notOpen` if the collection is deleted or the
    /// database closed meanwhile, and `CancellationError` if the task is cancelled: a sequence that ends without an error is complete.
    public func documentStream(_ listing: DocumentListing = .all) -> DocumentStream<Document> {
        DocumentStream(self, listing) { $0 }
    }

    /// Returns documents as an asynchronous sequence of values of a type; see ``documentStream(_:)``.
    ///
    /// Iterating also throws `decodingError` if a document does not fit the type.
    public func documentStream<T: Decodable & SendableMetatype>(
        _ listing: DocumentListing = .all,
        as type: T.Type
    ) -> DocumentStream<T> {
        DocumentStream(self, listing) { document throws(LoveseatError) in try document.decode(T.self) }
    }
}
