public import LoveseatModel

/// A value that is read from a database, and again after each change, as an asynchronous sequence.
///
/// The first value comes at once. Then there is at most one value for each transaction that changed what is observed: a consumer that
/// falls behind gets the value after the last transaction, and not those in between. Each value is read as of one moment, on one of the
/// database's own threads, when it is asked for; nothing is buffered. As with a ``Feed``, there is one consumer, and observation begins
/// when the sequence is created.
///
/// The sequence ends when a collection that is observed is deleted, when the database is closed, and when the iterating task is cancelled.
/// It throws the error that reading throws, and then it ends.
public struct LiveValues<Element: Sendable>: AsyncSequence, Sendable {
    /// Iterating throws ``LoveseatError``, or the error of the closure that reads the value.
    public typealias Failure = any Error

    private let changes: Feed<Void>
    private let read: @Sendable () async throws -> Element

    init(_ changes: Feed<Void>, _ read: @escaping @Sendable () async throws -> Element) {
        self.changes = changes
        self.read = read
    }

    /// The values, and the errors of reading; it goes on after an error.
    var results: LiveResults<Element> { LiveResults(changes: changes, read: read) }

    /// Returns the iterator of the sequence's only consumer.
    public func makeAsyncIterator() -> Iterator {
        Iterator(results: results.makeAsyncIterator())
    }

    /// Waits for changes, and reads.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var results: LiveResults<Element>.Iterator
        private var isAtEnd = false

        fileprivate init(results: LiveResults<Element>.Iterator) { self.results = results }

        /// Waits for a change, and returns the value after it; nil at the end, or if the task is cancelled.
        public mutating func next() async throws -> Element? {
            guard !isAtEnd, let result = await results.next() else { return nil }
            if case .failure = result { isAtEnd = true }
            return try result.get()
        }

        /// Waits for a change, and returns the value after it; nil at the end, or if the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try await next()
        }
    }
}

/// The results of reading after each change. A value that cannot be read may be readable after the next change.
struct LiveResults<Value: Sendable>: AsyncSequence, Sendable {
    typealias Failure = Never
    typealias Element = Result<Value, any Error>

    fileprivate let changes: Feed<Void>
    fileprivate let read: @Sendable () async throws -> Value

    func makeAsyncIterator() -> Iterator { Iterator(changes: changes.makeAsyncIterator(), read: read) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var changes: Feed<Void>.Iterator
        fileprivate let read: @Sendable () async throws -> Value

        mutating func next() async -> Element? {
            guard await changes.next() != nil else { return nil }
            do { return .success(try await read()) } catch is CancellationError {
                return nil
            } catch {
                return (error as? LoveseatError)?.code == .notOpen ? nil : .failure(error)
            }
        }

        mutating func next(isolation actor: isolated (any Actor)?) async -> Element? { await next() }
    }
}

extension Database {
    /// Observes the value that a closure reads: its first value, and the value after each change of some collections.
    ///
    /// ```swift
    /// for try await (count, tower) in try database.observe([sights], { transaction in
    ///     (try transaction.count(in: sights), try transaction.document(id: "tower", in: sights))
    /// }) {
    ///     print(count, tower?["likes"] ?? .null)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - collections: The collections whose changes make the closure run again.
    ///   - body: Reads the value from a snapshot, on one of the database's own threads.
    /// - Returns: The values.
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed` inside a transaction's closure.
    public func observe<Value: Sendable>(
        _ collections: [Collection],
        _ body: @escaping @Sendable (ReadTransaction) throws -> Value
    ) throws(LoveseatError) -> LiveValues<Value> {
        try observe(collections, isRelevant: { _ in true }, body)
    }

    /// Observes the value that a closure reads. `isRelevant`: whether a commit of documents of these IDs may change the value.
    func observe<Value: Sendable>(
        _ collections: [Collection],
        isRelevant: @escaping @Sendable ([String]) -> Bool,
        _ body: @escaping @Sendable (ReadTransaction) throws -> Value
    ) throws(LoveseatError) -> LiveValues<Value> {
        // One waiting event stands for all changes since the last value.
        let buffer = FeedBuffer<Void>(limit: 1, cost: { _ in 1 }, merge: { _, _ in })
        let changes = try Feed(of: collections, in: self, buffer) { if isRelevant($0) { buffer.push(()) } }
        buffer.push(())
        return LiveValues(changes) { [self] in try await read(body) }
    }
}

/// Observing documents.
extension Collection {
    /// Observes documents: those of a listing now, and again after each change of a document that may be in the listing.
    ///
    /// ```swift
    /// for try await newest in try sights.observe(DocumentListing(order: .sequence, descending: true, limit: 10)) {
    ///     print(newest.map(\.id))
    /// }
    /// ```
    ///
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed` inside a transaction's closure.
    public func observe(_ listing: DocumentListing = .all) throws(LoveseatError) -> LiveValues<[Document]> {
        try observe(listing) { try $0.documents(listing, in: self) }
    }

    /// Observes documents as values of a type; see ``observe(_:)``.
    ///
    /// Iterating throws `decodingError` if one of the documents does not fit the type.
    public func observe<T: Decodable & Sendable>(_ listing: DocumentListing = .all, as type: T.Type)
        throws(LoveseatError) -> LiveValues<[T]>
    {
        try observe(listing) { try $0.documents(listing, in: self, as: T.self) }
    }

    /// Observes the IDs of documents; see ``observe(_:)``. There is also a value after a change that leaves the IDs as they are.
    public func observeDocumentIDs(_ listing: DocumentListing = .all) throws(LoveseatError)
        -> LiveValues<[String]>
    {
        try observe(listing) { try $0.documentIDs(listing, in: self) }
    }

    /// Observes the number of documents. There is also a value after a change that leaves the number as it is.
    public func observeCount() throws(LoveseatError) -> LiveValues<UInt64> {
        try observe(.all) { try $0.count(in: self) }
    }

    /// Observes one document: its content now, and again after each change. It is nil while the document does not exist or is deleted.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed` inside a transaction's closure.
    public func observe(id: some DocumentKey) throws(LoveseatError) -> LiveValues<Document?> {
        let id = id.documentID
        return try database.observe([self], isRelevant: { $0.contains { $0.isExactly(id) } }) {
            try $0.document(id: id, in: self)
        }
    }

    /// Observes one document as a value of a type; see ``observe(id:)``.
    ///
    /// Iterating throws `decodingError` if the document does not fit the type.
    public func observe<T: Decodable & Sendable>(id: some DocumentKey, as type: T.Type)
        throws(LoveseatError) -> LiveValues<T?>
    {
        let id = id.documentID
        return try database.observe([self], isRelevant: { $0.contains { $0.isExactly(id) } }) {
            try $0.document(id: id, in: self, as: T.self)
        }
    }

    private func observe<Value: Sendable>(
        _ listing: DocumentListing,
        _ body: @escaping @Sendable (ReadTransaction) throws -> Value
    ) throws(LoveseatError) -> LiveValues<Value> {
        try database.observe([self], isRelevant: { $0.contains(where: listing.mayContain) }, body)
    }
}
