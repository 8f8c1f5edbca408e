import HTTPTypes
import HummingbirdCore
import LoveseatCore
package import LoveseatCouchDBReplication
import LoveseatModel
import NIOCore
import Synchronization

/// The bytes of requests and large answers that a listener holds at the moment.
package final class BodyBudget: Sendable {
    private let limit: Int
    private let used = Mutex(0)

    package init(limit: Int) { self.limit = limit }

    /// `extra`: by how much the limit may be exceeded.
    package func reserve(_ count: Int, extra: Int = 0) throws(CouchDBError) {
        let isFull = used.withLock { used in
            guard used.addingSaturated(count) <= limit.addingSaturated(extra) else { return true }
            used += count
            return false
        }
        if isFull {
            throw CouchDBError(503, "service_unavailable", "too many requests at once: try again in a second")
        }
    }

    /// Takes what is there already, whatever the limit is.
    package func add(_ count: Int) { used.withLock { $0 += count } }

    package func give(_ count: Int) { used.withLock { $0 -= count } }
}

/// The bytes that one request takes from a budget, until its answer was sent.
package final class RequestMemory: Sendable {
    /// By how much small requests may exceed the limit together, so that large ones do not shut them out.
    private static let extra = 128 << 20

    private let budget: BodyBudget
    private let taken = Mutex(0)

    package init(_ budget: BodyBudget) { self.budget = budget }

    deinit { budget.give(taken.withLock { $0 }) }

    package func reserve(_ count: Int) throws(CouchDBError) {
        let isSmall = taken.withLock { $0 + count <= BodyWorkers.smallBody }
        try budget.reserve(count, extra: isSmall ? Self.extra : 0)
        taken.withLock { $0 += count }
    }

    /// Takes what is there already, whatever the limit is.
    package func add(_ count: Int) {
        budget.add(count)
        taken.withLock { $0 += count }
    }
}

/// Bodies of requests, as all resources read them.
extension Resource {
    /// Reads a body of limited size, inflated if it is compressed, and calls a closure with it.
    func withBody<T: Sendable>(
        _ exchange: Exchange,
        _ use: ([UInt8]) async throws -> T
    ) async throws -> T {
        let limit = server.settings.maximumRequestSize
        if let length = exchange.headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw Self.tooLarge(limit)
        }
        return try await withBody(exchange, through: { $1.append(contentsOf: $0) }, use)
    }

    /// Reads a body through a filter, which appends what is to be held of each piece.
    func withBody<T: Sendable>(
        _ exchange: Exchange,
        through filter: (UnsafeRawBufferPointer, inout [UInt8]) throws -> Void,
        _ use: ([UInt8]) async throws -> T
    ) async throws -> T {
        let limit = server.settings.maximumRequestSize
        var bytes: [UInt8] = []
        let inflater = try BodyInflater(encoding: exchange.header("Content-Encoding"))
        func receive(_ part: ByteBuffer) async throws {
            for piece in inflater.pieces(of: part) {
                let before = bytes.count
                try await work(
                    exchange,
                    size: inflater.mayGrow ? .max : before + piece.readableBytes,
                    done: before
                ) {
                    try piece.withUnsafeReadableBytes { piece in
                        try inflater.inflate(piece) {
                            try filter($0, &bytes)
                            guard bytes.count <= limit else { throw Self.tooLarge(limit) }
                        }
                    }
                }
                try exchange.memory.reserve(bytes.count - before)
            }
        }
        // A client may send byte by byte.
        var small = ByteBuffer()
        for try await part in exchange.requestedBody() {
            if small.readableBytes == 0, part.readableBytes >= BodyWorkers.smallestPart {
                try await receive(part)
                continue
            }
            small.writeImmutableBuffer(part)
            if small.readableBytes < BodyWorkers.smallestPart { continue }
            try await receive(small)
            small.clear()
        }
        try await receive(small)
        try inflater.finish()
        return try await use(bytes)
    }

    /// Does work that takes time in proportion to the size of a body: at once if that is small, and else by the workers. `size`: in bytes;
    /// `.max` if it is not known. `done`: how many bytes of the request were worked on before.
    func work<Value>(
        _ exchange: Exchange,
        size: Int,
        done: Int = 0,
        _ work: () throws -> Value
    ) async throws -> Value {
        guard size > BodyWorkers.smallBody, !server.settings.worksInPlace else { return try work() }
        return try await BodyWorkers.shared.turn(of: exchange.peer.address, done: done, work)
    }

    /// Does the next part of a long piece of work: the first one as ``work(_:size:done:_:)`` does, and the others when it is their turn, so that
    /// small requests never wait for all of a long one. `done`: how much was done before. `size`: that of the first part, in bytes.
    func part<Value>(_ exchange: Exchange, done: Int, size: Int = 0, _ work: () throws -> Value) async throws
        -> Value
    {
        try await self.work(exchange, size: done > 0 ? .max : size, done: done, work)
    }

    /// Parses a body, as ``work(_:size:done:_:)`` does.
    func parsed(_ bytes: [UInt8], _ exchange: Exchange, maximumValues: Int = RequestJSON.allValues)
        async throws -> JSONElement
    {
        let element = try await work(exchange, size: bytes.count, done: bytes.count) {
            try RequestJSON.parse(bytes, maximumValues: maximumValues)
        }
        try exchange.memory.reserve(RequestJSON.indexSize(of: element))
        return element
    }

    private static func tooLarge(_ limit: Int) -> CouchDBError {
        CouchDBError(413, "too_large", "the request is larger than \(limit) bytes")
    }

    /// Reads a JSON body other than documents. `isNeeded`: whether an empty one is refused.
    func json(_ exchange: Exchange, isNeeded: Bool = true) async throws -> JSONElement? {
        try await withBody(exchange) { bytes in
            if bytes.isEmpty, !isNeeded { return nil }
            return try await self.parsed(bytes, exchange, maximumValues: RequestJSON.maximumValues)
        }
    }

    /// - Throws: `bad_content_type` for a body that is not announced as JSON.
    static func requireJSON(_ exchange: Exchange) throws(CouchDBError) {
        let type = exchange.headers[.contentType].flatMap { MediaType($0) }
        guard type?.matches("application", "json") ?? false else {
            throw CouchDBError(415, "bad_content_type", "Content-Type must be application/json")
        }
    }
}

/// Bodies of requests as JSON.
enum RequestJSON {
    /// How many values a body other than documents may have, with the keys of its objects. Arrays and objects count twice.
    static let maximumValues = 1_000_000
    /// How many documents, keys or revisions a request may name.
    static let maximumItems = 100_000

    /// How many values a body with documents may have. Each takes eight bytes in memory, and as little as one in the text.
    static let allValues = 10 << 20

    private static func limits(_ maximumValues: Int) -> JSONLimits {
        var limits = JSONLimits.envelope
        limits.maximumValues = maximumValues
        return limits
    }

    /// How many bytes the index of a body takes.
    static func indexSize(of element: JSONElement) -> Int { element.extent * MemoryLayout<UInt64>.size }

    /// Parses a body. The documents in it are validated one by one.
    static func parse(_ bytes: [UInt8], maximumValues: Int = allValues)
        throws(CouchDBError) -> JSONElement
    {
        let limits = limits(maximumValues)
        do throws(JSONError) { return try JSONElement(scanning: bytes, limits: limits) } catch {
            throw .invalid(error)
        }
    }

    /// Parses a body with several documents. One that is nested too deeply is refused alone, and does not concern the others.
    ///
    /// - Returns: also whether something is nested so deeply that it must not be decoded.
    static func parseBatch(_ bytes: [UInt8]) throws(CouchDBError) -> (JSONElement, isDeep: Bool) {
        let limits = limits(allValues)
        do throws(JSONError) { return try JSONElement.scanningParts(bytes, limits: limits) } catch {
            throw .invalid(error)
        }
    }

    /// Refuses a list with too many items. Each takes hundreds of bytes in memory, and as little as two in the text.
    ///
    /// - Throws: `too_large` for a longer list.
    static func checkCount(_ list: JSONElement, atMost limit: Int) throws(CouchDBError) {
        guard list.count <= limit else { throw tooMany(limit) }
    }

    static func tooMany(_ limit: Int) -> CouchDBError {
        CouchDBError(413, "too_large", "the list has more than \(limit) items: send it in parts")
    }

    /// Refuses a selector, or a request with one, that has too many conditions: each document is compared with all of them, on a thread that
    /// serves other clients too.
    ///
    /// - Throws: `too_large` for more values.
    static func checkConditions(_ element: JSONElement?) throws(CouchDBError) {
        if element?.extent ?? 0 > 100_000 {
            throw CouchDBError(
                413,
                "too_large",
                "a selector has at most 100000 values: send several requests"
            )
        }
    }
}
