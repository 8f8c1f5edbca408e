public import LoveseatModel
import LoveseatStorage

/// Which documents of a collection are listed, and in which order.
///
/// ```swift
/// let first = try sights.documents(DocumentListing(prefix: "paris:", limit: 20))
/// let next = try sights.documents(DocumentListing(prefix: "paris:", after: first.last.map(DocumentCursor.init), limit: 20))
/// let newest = try sights.documents(DocumentListing(order: .sequence, descending: true, limit: 10))
/// ```
///
/// Deleted documents are never listed. IDs are compared by their bytes, which is also their order: `B` comes before `a`, and `z`
/// before `é`.
public struct DocumentListing: Hashable, Sendable {
    /// The order of a listing.
    public enum Order: UInt8, Hashable, Sendable {
        /// In order of the documents' IDs.
        case id
        /// In order of the last changes: a document that is saved moves to the end.
        case sequence
    }

    /// The text that the IDs begin with. An empty prefix, the default, is that of every ID.
    public var prefix: String
    /// The lowest ID that is listed. Nil, the default, means no limit.
    public var lowestID: String?
    /// The highest ID that is listed. Nil, the default, means no limit.
    public var highestID: String?
    /// The order of the documents. The default is ``Order/id``.
    public var order: Order
    /// Whether the order is reversed. The default is false.
    public var isDescending: Bool
    /// The position behind which the listing begins, in its direction. Nil, the default, begins at the start.
    public var cursor: DocumentCursor?
    /// The maximum number of documents. Nil, the default, lists all.
    public var limit: Int?

    /// Creates a listing. Every parameter has the default of the property that it sets.
    ///
    /// - Parameters:
    ///   - prefix: The text that the IDs begin with.
    ///   - from: The lowest ID that is listed, whatever the direction.
    ///   - through: The highest ID that is listed.
    ///   - order: The order of the documents.
    ///   - descending: Whether the order is reversed.
    ///   - after: The position behind which the listing begins.
    ///   - limit: The maximum number of documents.
    public init(
        prefix: String = "",
        from: String? = nil,
        through: String? = nil,
        order: Order = .id,
        descending: Bool = false,
        after: DocumentCursor? = nil,
        limit: Int? = nil
    ) {
        self.prefix = prefix
        lowestID = from
        highestID = through
        self.order = order
        isDescending = descending
        cursor = after
        self.limit = limit
    }

    /// All documents, in order of their IDs.
    public static let all = DocumentListing()

    /// Returns a listing of the documents whose IDs begin with a text, in order of their IDs.
    public static func prefix(_ prefix: String) -> DocumentListing { DocumentListing(prefix: prefix) }

    /// - Throws: `invalidParameter` for a negative limit, and for a cursor that has no position in this order.
    var stored: StoreReadTransaction.Listing {
        get throws(LoveseatError) {
            var listing = StoreReadTransaction.Listing()
            if let limit {
                guard limit >= 0 else {
                    throw LoveseatError(.invalidParameter, "the limit \(limit) is negative: use 0 or more")
                }
                listing.limit = limit
            }
            listing.order = order == .id ? .id : .sequence
            listing.isDescending = isDescending
            listing.prefix = prefix
            listing.first = isDescending ? highestID : lowestID
            listing.last = isDescending ? lowestID : highestID
            guard let cursor else { return listing }
            switch order {
            case .id:
                guard let id = cursor.id else { throw Self.isUnusable("an ID", order) }
                listing.advance(behind: id, 0)
            case .sequence:
                guard let sequence = cursor.sequence else { throw Self.isUnusable("a sequence", order) }
                listing.advance(behind: "", sequence)
            }
            return listing
        }
    }

    private static func isUnusable(_ part: String, _ order: Order) -> LoveseatError {
        LoveseatError(
            .invalidParameter,
            "the cursor has no position in the order \"\(order)\": make it from a saved document, or from \(part)"
        )
    }

    /// Whether a document of this ID may be in the listing.
    package func mayContain(_ id: String) -> Bool {
        let bytes = id.utf8
        if let lowestID, bytes.lexicographicallyPrecedes(lowestID.utf8) { return false }
        if let highestID, highestID.utf8.lexicographicallyPrecedes(bytes) { return false }
        return bytes.starts(with: prefix.utf8)
    }
}

/// A position in a listing: that of a document, which may have been changed or deleted since.
///
/// A cursor can be encoded, and used after the database was opened again.
public struct DocumentCursor: Hashable, Sendable, Codable {
    let id: String?
    let sequence: UInt64?

    /// Creates the position of a document, in order of IDs, and of sequences if the document was saved.
    public init(_ document: Document) {
        id = document.id
        sequence = document.sequence == 0 ? nil : document.sequence
    }

    private init(id: String?, sequence: UInt64?) {
        self.id = id
        self.sequence = sequence
    }

    /// Returns the position of an ID, for listings in order of IDs. There need not be such a document.
    public static func id(_ id: String) -> DocumentCursor { DocumentCursor(id: id, sequence: nil) }

    /// Returns the position of a sequence, for listings in order of sequences.
    public static func sequence(_ sequence: UInt64) -> DocumentCursor {
        DocumentCursor(id: nil, sequence: sequence)
    }
}

extension StoreReadTransaction.Listing {
    /// Continues behind a document.
    mutating func advance(behind id: String, _ sequence: UInt64) {
        switch order {
        case .sequence: behind = sequence
        case .id:
            if let first {
                let isBehind =
                    isDescending
                    ? first.utf8.lexicographicallyPrecedes(id.utf8)
                    : id.utf8.lexicographicallyPrecedes(first.utf8)
                // The position lies before the range.
                if isBehind { return }
            }
            first = id
            includesFirst = false
        }
    }
}
