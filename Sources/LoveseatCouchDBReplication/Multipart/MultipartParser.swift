/// Reads a multipart body (RFC 2046) as it arrives, in pieces of any size.
///
/// The parser keeps at most the headers of one part and the beginning of one delimiter; data is passed on as slices of
/// the input. A part may be multipart itself: give its data to another parser.
///
/// The grammar is followed where it protects (CRLF only, exact boundaries), and relaxed where peers differ: a preamble,
/// an epilogue, a CRLF before the first boundary, blanks after a boundary, parts without headers or data, and a body
/// with only the closing boundary are accepted.
package struct MultipartParser: Sendable {
    /// The bounds of a body.
    package struct Limits: Hashable, Sendable {
        /// The maximum length of one part's headers, including the empty line, in bytes.
        package var headerBytes = 16 << 10
        /// The maximum number of parts.
        package var parts = 10_000
        /// The maximum length of the text before the first boundary, in bytes.
        package var preambleBytes = 64 << 10
        /// Whether a header may go on after a line feed and a blank, without a carriage return.
        package var foldsAtLineFeeds = false

        /// Creates the default limits.
        package init() {}
    }

    /// A piece of the body.
    package enum Event: Hashable, Sendable {
        /// A part begins; its data follows.
        case partBegan(PartHeaders)
        /// Data of the current part, never empty.
        case data(ArraySlice<UInt8>)
        /// The current part is complete.
        case partEnded
        /// The closing boundary. Everything after it is ignored.
        case ended
    }

    /// The end of a body.
    package struct Completion: Hashable, Sendable {
        /// The events that were held back until the end of the input.
        package let events: [Event]
        /// Whether the closing boundary was found. If not, the last part may be cut off: check its length.
        package let wasClosed: Bool
    }

    private enum State {
        case preamble
        case headers
        case data
        case epilogue
    }

    private let limits: Limits
    private let search: DelimiterSearch
    private var state = State.preamble
    private var failure: MultipartError?
    private var wasClosed = false
    private var partCount = 0
    private var preambleCount = 0
    private var headers: HeaderBlock
    /// The beginning of a possible delimiter.
    private var held = Self.lineBreak
    /// The number of bytes at the front of `held` that are not data. The line break before a delimiter is implied at the
    /// beginning of the body, and it may be the one of the empty line that ends the headers.
    private var impliedCount = Self.lineBreak.count

    private static let lineBreak: [UInt8] = [0x0D, 0x0A]

    /// Creates a parser for one body. An invalid boundary makes every other function throw.
    package init(boundary: String, limits: Limits = Limits()) {
        self.limits = limits
        search = DelimiterSearch(boundary: boundary)
        headers = HeaderBlock(limit: limits.headerBytes, foldsAtLineFeeds: limits.foldsAtLineFeeds)
        if !MultipartBoundary.isValid(boundary) { failure = .invalidBoundary }
    }

    /// Reads the next bytes, and returns what they contain.
    ///
    /// Data events are slices that share the storage of `bytes`, except for a few bytes where a delimiter seemed to begin
    /// in an earlier call.
    ///
    /// - Throws: ``MultipartError``, also from every later call. Events that precede the error in `bytes` are lost.
    package mutating func receive(_ bytes: ArraySlice<UInt8>) throws(MultipartError) -> [Event] {
        if let failure { throw failure }
        do throws(MultipartError) {
            var events: [Event] = []
            var rest = bytes
            while !rest.isEmpty {
                switch state {
                case .preamble, .data:
                    if held.isEmpty {
                        try readData(&rest, &events)
                    } else {
                        try readHeld(&rest, &events)
                    }
                case .headers: try readHeaders(&rest, &events)
                case .epilogue: rest = []
                }
            }
            return events
        } catch {
            failure = error
            (held, headers) = ([], HeaderBlock(limit: 0, foldsAtLineFeeds: false))
            throw error
        }
    }

    /// Ends the input.
    ///
    /// Without a closing boundary, the last part ends here, and the caller decides whether to accept the body. A delimiter
    /// at the very end whose two dashes are missing is not data.
    ///
    /// - Throws: ``MultipartError/missingBoundary`` if no boundary was found, ``MultipartError/truncatedHeaders`` if
    ///   the input ends in the headers of a part, and the error that an earlier call threw.
    package mutating func finish() throws(MultipartError) -> Completion {
        if let failure { throw failure }
        defer { (state, held) = (.epilogue, []) }
        switch state {
        case .preamble: throw fail(.missingBoundary)
        case .headers: throw fail(.truncatedHeaders)
        case .epilogue: return Completion(events: [], wasClosed: wasClosed)
        case .data:
            var events: [Event] = []
            if !held.starts(with: search.pattern) { try emit(held.dropFirst(impliedCount), &events) }
            events.append(.partEnded)
            return Completion(events: events, wasClosed: false)
        }
    }

    private mutating func fail(_ error: MultipartError) -> MultipartError {
        failure = error
        return error
    }

    /// Reads data that continues `held`: decides whether a delimiter begins there.
    private mutating func readHeld(
        _ rest: inout ArraySlice<UInt8>,
        _ events: inout [Event]
    ) throws(MultipartError) {
        let (count, implied) = (held.count, impliedCount)
        let joined = held + rest.prefix(search.window)
        let finding = joined.withUnsafeBufferPointer { search.first(in: $0, before: count) }
        (held, impliedCount) = ([], 0)
        switch finding {
        case .nothing: try emit(joined[implied..<count], &events)
        case .incomplete(let start):
            try emit(joined[min(implied, start)..<start], &events)
            held = Array(joined[start...])
            impliedCount = start == 0 ? implied : 0
            rest = []
        case .delimiter(let start, let end, let isClosing):
            try emit(joined[min(implied, start)..<start], &events)
            rest = rest.dropFirst(end - count)
            try endPart(isClosing: isClosing, &events)
        case .bareLineFeed: throw .bareLineFeed
        }
    }

    /// Reads data up to the next delimiter, to what may be the beginning of one, or to the end of the input.
    private mutating func readData(
        _ rest: inout ArraySlice<UInt8>,
        _ events: inout [Event]
    ) throws(MultipartError) {
        let base = rest.startIndex
        let finding = rest.withUnsafeBufferPointer { search.first(in: $0, before: $0.count) }
        switch finding {
        case .nothing:
            try emit(rest, &events)
            rest = []
        case .incomplete(let start):
            try emit(rest[..<(base + start)], &events)
            held = Array(rest[(base + start)...])
            rest = []
        case .delimiter(let start, let end, let isClosing):
            try emit(rest[..<(base + start)], &events)
            rest = rest[(base + end)...]
            try endPart(isClosing: isClosing, &events)
        case .bareLineFeed: throw .bareLineFeed
        }
    }

    private mutating func readHeaders(
        _ rest: inout ArraySlice<UInt8>,
        _ events: inout [Event]
    ) throws(MultipartError) {
        // The headers go on in the next piece.
        guard let block = try headers.read(&rest) else { return }
        events.append(.partBegan(try PartHeaders(parsing: block[...])))
        (state, held, impliedCount) = (.data, Self.lineBreak, Self.lineBreak.count)
    }

    /// Passes data on, or counts it if it belongs to the preamble.
    private mutating func emit(_ data: ArraySlice<UInt8>, _ events: inout [Event]) throws(MultipartError) {
        if data.isEmpty { return }
        if case .preamble = state {
            preambleCount += data.count
            if preambleCount > limits.preambleBytes { throw .preambleTooLong(limit: limits.preambleBytes) }
        } else {
            events.append(.data(data))
        }
    }

    private mutating func endPart(isClosing: Bool, _ events: inout [Event]) throws(MultipartError) {
        if case .data = state { events.append(.partEnded) }
        if isClosing {
            events.append(.ended)
            (state, wasClosed) = (.epilogue, true)
            return
        }
        partCount += 1
        guard partCount <= limits.parts else { throw .tooManyParts(limit: limits.parts) }
        state = .headers
    }
}
