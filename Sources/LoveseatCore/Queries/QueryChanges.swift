public import LoveseatModel
import LoveseatStorage

/// A result of a live query.
public struct QueryChange: Sendable {
    /// The query.
    public let query: Query
    /// The rows as of one moment; nil if the query failed.
    public let results: [QueryRow]?
    /// Why the query failed; nil if it did not. It is run again after the next change.
    public let error: LoveseatError?
}

extension Query {
    /// Runs the query now, and again when its collections change, as an asynchronous sequence of results.
    ///
    /// ```swift
    /// for await change in try database.createQuery("SELECT name FROM travel.sights ORDER BY likes DESC LIMIT 10").changes() {
    ///     print(change.results?.compactMap { $0["name"]?.string } ?? [])
    /// }
    /// ```
    ///
    /// The first result comes at once, also if it has no rows; a later one only if its rows differ from those before, in their values or
    /// their order. A transaction in quiet times is followed by its result at once; under load the query runs at most every 200
    /// milliseconds. Results are not buffered: a consumer that falls behind gets the latest. The parameters are those of this value. Each
    /// run reads one snapshot, on one of the database's own threads.
    ///
    /// The sequence has one consumer. It ends when the database is closed, one of the query's collections is deleted, or the task is
    /// cancelled; nothing comes after that.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed` inside a transaction's closure.
    public func changes() throws(LoveseatError) -> QueryChanges {
        var found: [Collection] = []
        for name in collections {
            guard let collection = try database.collection(name) else {
                throw LoveseatError(.notOpen, "collection \(name.fullName) was deleted")
            }
            found.append(collection)
        }
        // One waiting event stands for all commits since the last run.
        let buffer = FeedBuffer<Void>(limit: 1, cost: { _ in 1 }, merge: { _, _ in })
        let commits = try Feed(of: found, in: database, buffer) { _ in buffer.push(()) }
        buffer.push(())
        return QueryChanges(query: self, commits: commits)
    }
}

/// The results of a live query; see ``Query/changes()``.
public struct QueryChanges: AsyncSequence, Sendable {
    /// Iterating never throws: an error of the query is part of the ``QueryChange``.
    public typealias Failure = Never
    /// The elements are results.
    public typealias Element = QueryChange

    let query: Query
    let commits: Feed<Void>

    /// Returns the iterator of the only consumer.
    public func makeAsyncIterator() -> Iterator {
        Iterator(query: query, commits: commits.makeAsyncIterator())
    }

    /// Waits for results.
    public struct Iterator: AsyncIteratorProtocol {
        private static let interval = Duration.milliseconds(200)

        private let query: Query
        private var commits: Feed<Void>.Iterator
        private var lastRun: ContinuousClock.Instant?
        /// The digest of the last result; nil before the first one, and after an error.
        private var digest: Int?

        fileprivate init(query: Query, commits: Feed<Void>.Iterator) {
            self.query = query
            self.commits = commits
        }

        /// Waits for the next result and returns it, or nil at the end or if the task is cancelled.
        public mutating func next() async -> QueryChange? {
            while await commits.next() != nil {
                // Commits that come while it waits are part of the result. It wakes up early if the task is cancelled.
                if let lastRun { try? await Task.sleep(until: lastRun + Self.interval, clock: .continuous) }
                if Task.isCancelled { return nil }
                lastRun = .now
                do {
                    let rows = try await query.execute()
                    let new = Self.digest(of: rows)
                    if new == digest { continue }
                    digest = new
                    return QueryChange(query: query, results: rows, error: nil)
                } catch is CancellationError {
                    return nil
                } catch LoveseatError.Code.notOpen {
                    return nil
                } catch {
                    digest = nil
                    return QueryChange(query: query, results: nil, error: LoveseatError(storage: error))
                }
            }
            return nil
        }

        /// Waits for the next result and returns it, or nil at the end or if the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> QueryChange? {
            await next()
        }

        /// The seed is random in each process, so that different results with equal digests cannot be constructed.
        private static func digest(of rows: [QueryRow]) -> Int {
            var hasher = Hasher()
            for row in rows { hasher.combine(row.values) }
            return hasher.finalize()
        }
    }
}
