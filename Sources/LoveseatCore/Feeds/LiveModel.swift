public import LoveseatModel
public import Observation

/// Models of a query's rows, or of a collection's documents, that views watch; see ``LiveModel``.
public typealias LiveQuery<Model: Sendable> = LiveModel<[Model]>

/// A document that views watch, as a model; nil while it does not exist. See ``LiveModel``.
public typealias LiveDocument<Model: Sendable> = LiveModel<Model?>

/// A value of a database that views watch.
///
/// ```swift
/// @MainActor @Observable
/// final class TripModel {
///     let sights: LiveQuery<Sight>
///     let tower: LiveDocument<Sight>
///
///     init(_ collection: Loveseat.Collection) {
///         sights = LiveQuery(collection, .prefix("paris:"))
///         tower = LiveDocument(collection, id: "tower")
///     }
/// }
/// ```
///
/// A view that reads ``value`` is drawn anew when it changes: with the Observation module, so SwiftUI needs nothing else, and a program without
/// views uses `withObservationTracking`. In SwiftUI keep it in `@State`, or in a model that is kept there.
///
/// Observation begins when a property is read for the first time, and ends when nobody holds the object any more. Values are read and decoded on
/// other threads. No change is lost; several within a sixtieth of a second make one update, with the latest value.
@MainActor @Observable
public final class LiveModel<Value: Sendable> {
    /// The shortest time between two updates.
    private static var frame: Duration { .milliseconds(16) }

    private typealias Results = any AsyncSequence<Result<Value, any Error>, Never> & Sendable

    private struct State {
        var value: Value
        var error: (any Error)?
        var isLoading = true
    }

    private var state: State
    /// Whether nothing can come any more.
    private var hasEnded = false
    @ObservationIgnored private let results: @Sendable () throws -> Results
    @ObservationIgnored private var task: Task<Void, Never>?

    private init(initial: Value, _ results: @escaping @Sendable () throws -> Results) {
        state = State(value: initial)
        self.results = results
    }

    deinit { task?.cancel() }

    /// The latest value. Before the first one has been read it is empty, nil, or what the initializer was given.
    ///
    /// It stays as it is while reading fails, and after the database was closed.
    public var value: Value { started.value }

    /// Why the value could not be read after the latest change; nil if it could. It is read again after the next change.
    public var error: (any Error)? { started.error }

    /// Whether neither a value nor an error has come yet.
    public var isLoading: Bool { started.isLoading }

    private var started: State {
        if task == nil {
            task = Task { @concurrent [weak self, results] in
                do {
                    for await result in try results() {
                        // Nobody holds this model any more.
                        guard await self?.show(result) != nil else { return }
                        try await Task.sleep(for: Self.frame)
                    }
                    await self?.end()
                } catch is CancellationError {
                    // The same, while it waited.
                } catch {
                    await self?.show(.failure(error))
                }
            }
        }
        return state
    }

    /// Waits until the value meets a condition: for programs without views, such as a terminal's, and for tests.
    ///
    /// ```swift
    /// let model = await LiveQuery<Sight>(sights)
    /// print(try await model.wait { !$0.isEmpty })
    /// ```
    ///
    /// - Parameter isWanted: The condition. It is asked about the first value that was read, and after each change; not while ``error`` is set.
    /// - Returns: The value that meets the condition.
    /// - Throws: ``error`` as soon as a value cannot be read; ``LoveseatError``: `notOpen` as soon as the database is closed, or the collection
    ///   deleted; `CancellationError` if the task is cancelled.
    @discardableResult
    public func wait(until isWanted: (Value) throws -> Bool) async throws -> Value {
        while true {
            try Task.checkCancellation()
            let (changes, change) = AsyncStream.makeStream(of: Void.self)
            let (state, hasEnded) = withObservationTracking {
                (started, self.hasEnded)
            } onChange: {
                change.finish()
            }
            if let error = state.error { throw error }
            if !state.isLoading, try isWanted(state.value) { return state.value }
            if hasEnded {
                throw LoveseatError(
                    .notOpen,
                    "the database was closed, or the collection deleted, before there was such a value"
                )
            }
            // Nothing comes but the end, at the next change or when the task is cancelled.
            for await _ in changes {}
        }
    }

    private func end() { hasEnded = true }

    private func show(_ result: Result<Value, any Error>) {
        switch result {
        case .success(let value): state = State(value: value, isLoading: false)
        case .failure(let error): state = State(value: state.value, error: error, isLoading: false)
        }
    }
}

extension LiveModel {
    /// Creates a model of any values that are observed.
    ///
    /// - Parameters:
    ///   - initial: The value before the first one has been read.
    ///   - observe: Begins to observe, such as ``Collection/observeCount()``. It is called once. ``error`` is what it throws.
    public convenience init(initial: Value, _ observe: @escaping @Sendable () throws -> LiveValues<Value>) {
        self.init(initial: initial) { try observe().results }
    }

    /// Creates a model of a query's rows; see ``Query/changes()``.
    public convenience init(_ query: Query) where Value == [QueryRow] {
        self.init {
            query
        } decode: {
            $0
        }
    }

    /// Creates a model of a query's rows as values of a type; see ``QueryRow/decode(_:dataKey:)``.
    ///
    /// - Parameters:
    ///   - query: The query, with its parameters.
    ///   - type: The type of the values.
    ///   - dataKey: The column that has a value's properties; nil if they are columns themselves.
    ///   - skip: Is called with each row that does not fit the type, and why; the row is left out then. By default it is nil, and one such row
    ///     makes ``error``, so that nothing is missing without anybody noticing. It is called again for each new result, on another thread.
    public convenience init<Model: Decodable & Sendable>(
        _ query: Query,
        as type: Model.Type = Model.self,
        dataKey: String? = nil,
        skipping skip: (@Sendable (QueryRow, LoveseatError) -> Void)? = nil
    ) where Value == [Model] {
        self.init {
            query
        } decode: { rows in
            try Self.decode(rows, skip) { row throws(LoveseatError) in try row.decode(type, dataKey: dataKey)
            }
        }
    }

    /// Creates a model of the rows of a query in SQL++; see ``Database/createQuery(_:)``.
    ///
    /// ``error`` is what is wrong with the text or the parameters.
    public convenience init(_ text: String, _ parameters: QueryParameters = [:], in database: Database)
    where Value == [QueryRow] {
        self.init {
            try Query(text, parameters, in: database)
        } decode: {
            $0
        }
    }

    /// Creates a model of the rows of a query in SQL++ as values of a type; see ``QueryRow/decode(_:dataKey:)``.
    ///
    /// ``error`` is what is wrong with the text or the parameters.
    ///
    /// - Parameters:
    ///   - text: The text of the query.
    ///   - parameters: The values of its parameters. The default is none.
    ///   - database: The database that the query reads.
    ///   - type: The type of the values.
    ///   - dataKey: The column that has a value's properties; nil if they are columns themselves.
    ///   - skip: Is called with each row that does not fit the type, which is left out then. The default is nil: such a row makes ``error``.
    public convenience init<Model: Decodable & Sendable>(
        _ text: String,
        _ parameters: QueryParameters = [:],
        in database: Database,
        as type: Model.Type = Model.self,
        dataKey: String? = nil,
        skipping skip: (@Sendable (QueryRow, LoveseatError) -> Void)? = nil
    ) where Value == [Model] {
        self.init {
            try Query(text, parameters, in: database)
        } decode: { rows in
            try Self.decode(rows, skip) { row throws(LoveseatError) in try row.decode(type, dataKey: dataKey)
            }
        }
    }

    /// Decodes elements. Those that cannot be are reported and left out, or, without `skip`, the first one is thrown.
    nonisolated private static func decode<Element, Model>(
        _ elements: [Element],
        _ skip: (@Sendable (Element, LoveseatError) -> Void)?,
        _ decode: (Element) throws(LoveseatError) -> Model
    ) throws(LoveseatError) -> [Model] {
        var models: [Model] = []
        models.reserveCapacity(elements.count)
        for element in elements {
            do throws(LoveseatError) { models.append(try decode(element)) } catch {
                guard let skip else { throw error }
                skip(element, error)
            }
        }
        return models
    }

    convenience init<Model>(
        _ query: @escaping @Sendable () throws -> Query,
        decode: @escaping @Sendable ([QueryRow]) throws -> [Model]
    )
    where Value == [Model] {
        self.init(initial: []) {
            try query().changes().map { change in
                Result {
                    if let error = change.error { throw error }
                    return try decode(change.results ?? [])
                }
            }
        }
    }

    /// Creates a model of documents; see ``Collection/observe(_:)``.
    public convenience init(_ collection: Collection, _ listing: DocumentListing = .all)
    where Value == [Document] {
        self.init(initial: []) { try collection.observe(listing) }
    }

    /// Creates a model of documents as values of a type; see ``Collection/observe(_:as:)``.
    ///
    /// - Parameters:
    ///   - collection: The collection.
    ///   - listing: Which of its documents, in which order. The default is all, in the order of their IDs.
    ///   - type: The type of the values.
    ///   - skip: Is called with each document that does not fit the type, and why; the document is left out then. By default it is nil, and one such
    ///     document makes ``error``. It is called again after each change, on another thread and outside the transaction's closure.
    public convenience init<Model: Decodable & Sendable>(
        _ collection: Collection,
        _ listing: DocumentListing = .all,
        as type: Model.Type = Model.self,
        skipping skip: (@Sendable (Document, LoveseatError) -> Void)? = nil
    ) where Value == [Model] {
        guard let skip else {
            self.init(initial: []) { try collection.observe(listing, as: type) }
            return
        }
        self.init(initial: []) {
            try collection.observe(listing).results.map { result in
                result.flatMap { documents in
                    Result {
                        try Self.decode(documents, skip) { document throws(LoveseatError) in
                            try document.decode(type)
                        }
                    }
                }
            }
        }
    }

    /// Creates a model of one document; see ``Collection/observe(id:)``.
    public convenience init(_ collection: Collection, id: some DocumentKey) where Value == Document? {
        self.init(initial: nil) { try collection.observe(id: id) }
    }

    /// Creates a model of one document as a value of a type; see ``Collection/observe(id:as:)``.
    public convenience init<Model: Decodable & Sendable>(
        _ collection: Collection,
        id: some DocumentKey,
        as type: Model.Type = Model.self
    ) where Value == Model? {
        self.init(initial: nil) { try collection.observe(id: id, as: type) }
    }
}

extension Query {
    /// Creates a query with its parameters.
    fileprivate init(_ text: String, _ parameters: QueryParameters, in database: Database)
        throws(LoveseatError)
    {
        self = try database.createQuery(text)
        self.parameters = parameters
    }
}
