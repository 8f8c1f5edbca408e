import Foundation
import LoveseatModel
import LoveseatStorage
private import Synchronization

extension Query {
    /// Runs the query, and returns its rows as an asynchronous sequence, which keeps about a megabyte of them in memory.
    ///
    /// ```swift
    /// for try await row in try database.createQuery("SELECT name FROM travel.sights").rows() { print(row["name"] ?? .null) }
    /// ```
    ///
    /// The query begins with the first call of the iterator, and reads one snapshot. It does not wait for its consumer: rows that are not
    /// consumed yet are kept in a temporary file, so that a slow consumer keeps neither a thread nor the snapshot busy. It is interrupted
    /// when the iterator goes.
    ///
    /// Iterating throws as `execute()` does, and `CancellationError` if the task is cancelled.
    public func rows() -> QueryRows { QueryRows(query: self) }
}

/// The rows of a query as an asynchronous sequence; see ``Query/rows()``. Each iteration runs the query again.
public struct QueryRows: AsyncSequence, Sendable {
    /// Iterating throws ``LoveseatError`` or `CancellationError`.
    public typealias Failure = any Error
    /// The elements are rows.
    public typealias Element = QueryRow

    let query: Query

    /// Returns an iterator that runs the query.
    public func makeAsyncIterator() -> Iterator { Iterator(query: query) }

    /// Waits for rows.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let query: Query
        private var run: QueryRun?
        /// Rows that were taken and not returned yet, the next one last.
        private var rows: [QueryRow] = []

        fileprivate init(query: Query) { self.query = query }

        /// Returns the next row, or nil after the last one.
        public mutating func next() async throws -> QueryRow? {
            if let row = rows.popLast() { return row }
            let run = try run ?? QueryRun(query)
            self.run = run
            rows = try await run.next().reversed()
            return rows.popLast()
        }

        /// Returns the next row, or nil after the last one.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> QueryRow? {
            try await next()
        }
    }
}

/// One run of a query whose rows are consumed while it goes on.
private final class QueryRun: Sendable {
    private let buffer: RowBuffer
    private let task: Task<Void, Never>

    init(_ query: Query) throws(LoveseatError) {
        let opened = try query.database.opened
        let isReadOnly = query.database.config.readOnly
        let buffer = RowBuffer(
            folder: isReadOnly ? FileManager.default.temporaryDirectory.path : opened.folder
        )
        self.buffer = buffer
        task = Task {
            do {
                try await query.runningFromTask { view in
                    try query.forEachRow(in: view) {
                        try buffer.add($0)
                        return true
                    }
                }
                buffer.finish(nil)
            } catch { buffer.finish(error) }
        }
    }

    deinit { task.cancel() }

    /// The next rows, none at the end.
    func next() async throws -> [QueryRow] { try await buffer.next() }
}
