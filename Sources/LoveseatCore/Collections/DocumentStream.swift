import LoveseatModel
import LoveseatStorage

/// Documents, or values made of them, as an asynchronous sequence; see ``Collection/documentStream(_:)``.
///
/// It can be iterated more than once, each time from the start.
public struct DocumentStream<Element>: AsyncSequence, Sendable {
    /// Iterating throws ``LoveseatError`` or `CancellationError`.
    public typealias Failure = any Error

    private let collection: Collection
    private let listing: DocumentListing
    private let convert: @Sendable (Document) throws(LoveseatError) -> Element

    init(
        _ collection: Collection,
        _ listing: DocumentListing,
        _ convert: @escaping @Sendable (Document) throws(LoveseatError) -> Element
    ) {
        self.collection = collection
        self.listing = listing
        self.convert = convert
    }

    /// Returns an iterator that begins at the start of the listing.
    public func makeAsyncIterator() -> Iterator { Iterator(collection, listing, convert) }

    /// Reads documents a part at a time.
    public struct Iterator: AsyncIteratorProtocol {
        private let collection: Collection
        private let convert: @Sendable (Document) throws(LoveseatError) -> Element
        private var parts: DocumentParts
        /// The rest of the part that was read, the next document last.
        private var documents: [Document] = []

        fileprivate init(
            _ collection: Collection,
            _ listing: DocumentListing,
            _ convert: @escaping @Sendable (Document) throws(LoveseatError) -> Element
        ) {
            self.collection = collection
            self.convert = convert
            parts = DocumentParts(listing)
        }

        /// Returns the next element, or nil at the end.
        public mutating func next() async throws -> Element? {
            do {
                try Task.checkCancellation()
                if documents.isEmpty { try await readPart() }
                return try documents.popLast().map(convert)
            } catch {
                documents = []
                parts.isAtEnd = true
                throw error
            }
        }

        /// Returns the next element, or nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try await next()
        }

        private mutating func readPart() async throws {
            if parts.isAtEnd { return }
            let (collection, before) = (collection, parts)
            (documents, parts) = try await CollectionReader.snapshotOfTask(of: collection) {
                var parts = before
                let documents = try parts.next(of: collection, $0) ?? []
                return (documents.reversed(), parts)
            }
        }
    }
}

/// Reads the documents of a listing, some at a time.
struct DocumentParts: Sendable {
    private static let maximumCount = 500
    private static let maximumBytes = 1 << 20

    /// The rest of the listing.
    private var listing: DocumentListing
    var isAtEnd = false

    init(_ listing: DocumentListing) { self.listing = listing }

    /// Reads the next documents, at least one; nil at the end.
    mutating func next(of collection: Collection, _ reader: CollectionReader) throws -> [Document]? {
        if isAtEnd { return nil }
        var stored = try listing.stored
        stored.limit = min(stored.limit, Self.maximumCount)
        var documents: [Document] = []
        var bytes = 0
        try reader.forEachRecord(stored) { record in
            documents.append(try Document(record, in: collection))
            bytes += record.body.bytes.count
            return bytes < Self.maximumBytes
        }
        if let limit = listing.limit { listing.limit = limit - documents.count }
        guard let last = documents.last else {
            isAtEnd = true
            return nil
        }
        listing.cursor = DocumentCursor(last)
        isAtEnd = listing.limit == 0 || (documents.count < stored.limit && bytes < Self.maximumBytes)
        return documents
    }
}
