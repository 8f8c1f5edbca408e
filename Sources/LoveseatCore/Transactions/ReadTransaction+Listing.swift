public import LoveseatModel
import LoveseatStorage

/// Listing documents; see the calls of the same names of ``Collection``.
extension ReadTransaction {
    /// Returns documents in an array.
    ///
    /// - Throws: As `documents(_:)` of ``Collection``.
    public func documents(_ listing: DocumentListing = .all, in collection: Collection) throws(LoveseatError)
        -> [Document]
    {
        try read(collection) { try CollectionReader(collection, $0).documents(listing) }
    }

    /// Returns documents as values of a type, in an array.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if one of the documents does not fit the type; otherwise as
    ///   `documents(_:)` of ``Collection``.
    public func documents<T: Decodable>(
        _ listing: DocumentListing = .all,
        in collection: Collection,
        as type: T.Type
    ) throws(LoveseatError) -> [T] {
        try Document.decode(try documents(listing, in: collection), type)
    }

    /// Calls a closure with one document after another, without keeping them in memory, until it returns false.
    ///
    /// Some hundred documents are read at a time, up to 1 MB. If the closure changes documents, as in a ``WriteTransaction``, the change
    /// is seen when the document has not been read yet.
    ///
    /// - Throws: The error that the closure throws; otherwise as `documents(_:)` of ``Collection``.
    public func forEachDocument(
        _ listing: DocumentListing = .all,
        in collection: Collection,
        _ body: (Document) throws -> Bool
    ) throws {
        var parts = DocumentParts(listing)
        while let documents = try read(
            collection,
            { try parts.next(of: collection, CollectionReader(collection, $0)) }
        ) {
            for document in documents where try !body(document) { return }
        }
    }

    /// Returns the IDs of documents, without reading the documents.
    ///
    /// - Throws: As `documents(_:)` of ``Collection``.
    public func documentIDs(_ listing: DocumentListing = .all, in collection: Collection)
        throws(LoveseatError) -> [String]
    {
        try read(collection) { try CollectionReader(collection, $0).documentIDs(listing) }
    }

    /// Returns the documents of some IDs, in the order of the IDs, without those that do not exist or were deleted.
    ///
    /// - Throws: As `documents(ids:)` of ``Collection``.
    public func documents(ids: [String], in collection: Collection) throws(LoveseatError) -> [Document] {
        try read(collection) { try CollectionReader(collection, $0).documents(ids: ids) }
    }

    /// Returns the documents of some IDs as values of a type, in the order of the IDs, without those that do not exist or were deleted.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if one of the documents does not fit the type; otherwise as
    ///   `documents(ids:)` of ``Collection``.
    public func documents<T: Decodable>(ids: [some DocumentKey], in collection: Collection, as type: T.Type)
        throws(LoveseatError) -> [T]
    {
        try Document.decode(try documents(ids: ids.map(\.documentID), in: collection), type)
    }

    /// Returns whether there is a document of this ID that is not deleted.
    ///
    /// - Throws: ``LoveseatError``: `notInTransaction`, `notOpen`, `invalidParameter`, as for every call that names a collection.
    public func exists(id: some DocumentKey, in collection: Collection) throws(LoveseatError) -> Bool {
        try read(collection) { try $0.exists(id.documentID, in: collection.handle) }
    }
}
