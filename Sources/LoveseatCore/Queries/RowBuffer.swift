import LoveseatAssertions
package import LoveseatModel
import LoveseatStorage
private import Synchronization

/// Rows between a query that runs and its consumer, in memory up to a megabyte and beyond that in a file.
final class RowBuffer: Sendable {
    private static let chunkBytes = 64 << 10
    private static let keptBytes = 1 << 20

    private enum Chunk {
        case kept([QueryRow], cost: Int)
        case spilled(UInt64)
    }

    private struct State {
        var chunks: [Chunk] = []
        /// The first chunk that was not taken.
        var first = 0
        var keptBytes = 0
        /// The rows of the chunk that grows.
        var open: [QueryRow] = []
        var openBytes = 0
        var spill: SpillFile?
        var nextKey: UInt64 = 0
        var titles: QueryTitles?
        var isFinished = false
        var error: (any Error)?
        var waiter: CheckedContinuation<[QueryRow], any Error>?

        mutating func drainOpen() -> [QueryRow] {
            defer { (open, openBytes) = ([], 0) }
            return open
        }

        /// The next rows; nil if there are none yet, or at the end.
        mutating func dequeue() throws -> [QueryRow]? {
            guard first < chunks.count else { return open.isEmpty ? nil : drainOpen() }
            let chunk = chunks[first]
            first += 1
            if first == chunks.count { (chunks, first) = ([], 0) }
            switch chunk {
            case .kept(let rows, let cost):
                keptBytes -= cost
                return rows
            case .spilled(let key):
                guard let spill, let titles else {
                    impossible("rows of a query are in a file that was never made")
                    throw RowCoding.damaged
                }
                return try RowCoding.decode(try spill.remove(key), titles)
            }
        }
    }

    private let folder: String
    private let state = Mutex(State())

    /// `folder`: the folder in which the file is made.
    init(folder: String) { self.folder = folder }

    /// Adds a row. The caller is the query, which never waits.
    func add(_ row: QueryRow) throws {
        let waiter = try state.withLock {
            state -> (CheckedContinuation<[QueryRow], any Error>, [QueryRow])? in
            if state.isFinished { throw CancellationError() }
            state.titles = row.titles
            state.open.append(row)
            state.openBytes += row.values.reduce(64) { $0 + $1.cost }
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, state.drainOpen())
            }
            if state.openBytes >= Self.chunkBytes { try close(&state) }
            return nil
        }
        if let (waiter, rows) = waiter { waiter.resume(returning: rows) }
    }

    private func close(_ state: inout State) throws {
        let cost = state.openBytes
        let rows = state.drainOpen()
        if state.keptBytes + cost <= Self.keptBytes {
            state.keptBytes += cost
            state.chunks.append(.kept(rows, cost: cost))
            return
        }
        let spill = state.spill ?? SpillFile(folder: folder)
        state.spill = spill
        state.nextKey += 1
        try spill.append(RowCoding.encode(rows), to: state.nextKey)
        state.chunks.append(.spilled(state.nextKey))
    }

    /// Ends the rows, after those that were added.
    func finish(_ error: (any Error)?) {
        let (waiter, problem) = state.withLock { state in
            if !state.isFinished { (state.isFinished, state.error) = (true, error) }
            defer { state.waiter = nil }
            return (state.waiter, state.error)
        }
        // The consumer is busy with earlier rows, or has gone.
        guard let waiter else { return }
        if let problem { waiter.resume(throwing: problem) } else { waiter.resume(returning: []) }
    }

    /// Waits for the next rows; none at the end. There is one consumer.
    func next() async throws -> [QueryRow] {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<[QueryRow], any Error>? = state.withLock { state in
                    do {
                        if let rows = try state.dequeue() { return .success(rows) }
                    } catch { return .failure(error) }
                    guard state.isFinished || state.waiter != nil else {
                        state.waiter = continuation
                        return nil
                    }
                    // The error comes once.
                    defer { state.error = nil }
                    return state.error.map { .failure($0) } ?? .success([])
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            state.withLock { state in
                (state.chunks, state.first, state.spill) = ([], 0, nil)
                _ = state.drainOpen()
            }
            finish(CancellationError())
        }
    }
}

/// Rows as bytes.
package enum RowCoding {
    static let damaged = LoveseatError(
        .ioError,
        "the temporary file of a query's rows is damaged: run the query again"
    )

    package static func encode(_ rows: [QueryRow]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(UInt64(rows.count), to: &bytes)
        for row in rows {
            for value in row.values {
                switch value {
                case .missing: bytes.append(0)
                case .null: bytes.append(1)
                case .boolean(let value): bytes.append(value ? 3 : 2)
                case .integer(let value):
                    bytes.append(4)
                    append(UInt64(bitPattern: value), to: &bytes)
                case .double(let value):
                    bytes.append(5)
                    append(value.bitPattern, to: &bytes)
                case .string(let text):
                    bytes.append(6)
                    append(UInt64(text.utf8.count), to: &bytes)
                    bytes.append(contentsOf: text.utf8)
                case .json(let text):
                    bytes.append(7)
                    append(UInt64(text.bytes.count), to: &bytes)
                    bytes.append(contentsOf: text.bytes)
                }
            }
        }
        return bytes
    }

    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Reads rows that ``encode(_:)`` wrote.
    ///
    /// - Throws: `ioError` for anything else, such as bytes that end early.
    package static func decode(_ bytes: [UInt8], _ titles: QueryTitles) throws(LoveseatError) -> [QueryRow] {
        var rest = bytes[...]
        func read(_ count: Int) throws(LoveseatError) -> ArraySlice<UInt8> {
            guard count <= rest.count else { throw damaged }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func number() throws(LoveseatError) -> UInt64 {
            let bytes = try read(8)
            return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        func value() throws(LoveseatError) -> ResultValue {
            guard let kind = rest.popFirst() else { throw damaged }
            switch kind {
            case 0: return .missing
            case 1: return .null
            case 2, 3: return .boolean(kind == 3)
            case 4: return .integer(Int64(bitPattern: try number()))
            case 5: return .double(Double(bitPattern: try number()))
            case 6: return .string(String(decoding: try read(Int(clamping: number())), as: UTF8.self))
            case 7: return .json(JSONText(trusted: Array(try read(Int(clamping: number())))))
            default: throw damaged
            }
        }
        var rows: [QueryRow] = []
        let count = try number()
        while rows.count < count {
            var values: [ResultValue] = []
            values.reserveCapacity(titles.titles.count)
            for _ in titles.titles { values.append(try value()) }
            rows.append(QueryRow(titles: titles, values: values))
        }
        guard rest.isEmpty else { throw damaged }
        return rows
    }
}
