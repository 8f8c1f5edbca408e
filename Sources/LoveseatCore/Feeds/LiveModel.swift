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
                } catch is CancellationError {
                    // The same, while it waited.
                } catch {
                    await self?.show(.failure(error))
                }
            }
        }
        return state
    }

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
        self.init(query) { $0 }
    }

    /// Creates a model of a query's rows as values of a type; see ``QueryRow/decode(_:dataKey:)``.
    public convenience init<Model: Decodable & Sendable>(
        _ query: Query,
        as type: Model.Type = Model.self,
        dataKey: String? = nil
    ) where Value == [Model] {
        self.init(query) { try QueryRow.decode($0, type, dataKey) }
    }

    convenience init<Model>(
        _ query: @autoclosure @escaping @Sendable () throws -> Query,
        _ decode: @escaping @Sendable ([QueryRow]) throws -> [Model]
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
    public convenience init<Model: Decodable & Sendable>(
        _ collection: Collection,
        _ listing: DocumentListing = .all,
        as type: Model.Type = Model.self
    ) where Value == [Model] {
        self.init(initial: []) { try collection.observe(listing, as: type) }
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
