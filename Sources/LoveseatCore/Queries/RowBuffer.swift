import LoveseatModel
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

        mutating func takeOpen() -> [QueryRow] {
            defer { (open, openBytes) = ([], 0) }
            return open
        }

        /// The next rows; nil if there are none yet, or at the end.
        mutating func take() throws -> [QueryRow]? {
            guard first < chunks.count else { return open.isEmpty ? nil : takeOpen() }
            let chunk = chunks[first]
            first += 1
            if first == chunks.count { (chunks, first) = ([], 0) }
            switch chunk {
            case .kept(let rows, let cost):
                keptBytes -= cost
                return rows
            case .spilled(let key):
                guard let spill, let titles else { return [] }
                return RowCoding.decode(try spill.take(key), titles)
            }
        }
    }

    private let folder: String
    private let state = Mutex(State())

    /// `folder`: where the file is made.
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
                return (waiter, state.takeOpen())
            }
            if state.openBytes >= Self.chunkBytes { try close(&state) }
            return nil
        }
        if let (waiter, rows) = waiter { waiter.resume(returning: rows) }
    }

    private func close(_ state: inout State) throws {
        let cost = state.openBytes
        let rows = state.takeOpen()
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
                        if let rows = try state.take() { return .success(rows) }
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
                _ = state.takeOpen()
            }
            finish(CancellationError())
        }
    }
}

/// Rows as bytes.
enum RowCoding {
    static func encode(_ rows: [QueryRow]) -> [UInt8] {
        var bytes: [UInt8] = []
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

    /// Reads what ``encode(_:)`` wrote, up to where it ends early.
    static func decode(_ bytes: [UInt8], _ titles: QueryTitles) -> [QueryRow] {
        var rest = bytes[...]
        func number() -> UInt64 {
            defer { rest = rest.dropFirst(8) }
            return rest.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        func content() -> ArraySlice<UInt8> {
            let count = Int(clamping: number())
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func value(_ kind: UInt8) -> ResultValue {
            switch kind {
            case 0: .missing
            case 1: .null
            case 2, 3: .boolean(kind == 3)
            case 4: .integer(Int64(bitPattern: number()))
            case 5: .double(Double(bitPattern: number()))
            case 6: .string(String(decoding: content(), as: UTF8.self))
            default: .json(JSONText(trusted: Array(content())))
            }
        }
        var rows: [QueryRow] = []
        while !rest.isEmpty {
            var values: [ResultValue] = []
            values.reserveCapacity(titles.titles.count)
            while values.count < titles.titles.count, let kind = rest.popFirst() {
                values.append(value(kind))
            }
            rows.append(QueryRow(titles: titles, values: values))
        }
        return rows
    }
}
