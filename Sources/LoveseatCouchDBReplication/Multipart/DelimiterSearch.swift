/// Finds the delimiters of one boundary in a buffer.
///
/// A delimiter is `CRLF -- boundary`, followed by `--` or by optional blanks and CRLF. Everything else that begins like
/// one is data, so an inner boundary may begin with the outer one.
struct DelimiterSearch: Sendable {
    /// The result of a search, with offsets from the beginning of the buffer.
    enum Finding: Hashable {
        /// No delimiter, and none that may begin in this buffer.
        case nothing
        /// The bytes from `start` to the end of the buffer may be the beginning of a delimiter.
        case incomplete(start: Int)
        /// A whole delimiter.
        case delimiter(start: Int, end: Int, isClosing: Bool)
        /// A delimiter line that ends with LF alone.
        case bareLineFeed
    }

    private enum Match {
        case mismatch
        case incomplete
        case complete(end: Int, isClosing: Bool)
        case bareLineFeed
    }

    /// The maximum number of blanks between a boundary and the end of its line.
    static let maximumPadding = 128

    /// `CRLF -- boundary`.
    let pattern: [UInt8]

    /// The number of bytes that is always enough to recognize a delimiter.
    var window: Int { pattern.count + Self.maximumPadding + 2 }

    init(boundary: String) {
        pattern = [0x0D, 0x0A, 0x2D, 0x2D] + Array(boundary.utf8)
    }

    /// Finds the first delimiter that begins before an offset.
    func first(in buffer: UnsafeBufferPointer<UInt8>, before limit: Int) -> Finding {
        var offset = 0
        while let start = nextCandidate(in: buffer, from: offset, before: limit) {
            switch match(buffer, at: start) {
            case .mismatch: offset = start + 1
            case .incomplete: return .incomplete(start: start)
            case .complete(let end, let isClosing):
                return .delimiter(start: start, end: end, isClosing: isClosing)
            case .bareLineFeed: return .bareLineFeed
            }
        }
        return .nothing
    }

    /// Finds `CR LF - -`, or a CR among the last three bytes.
    ///
    /// Eight positions are compared at once: a byte of `difference` is zero where all four characters match.
    private func nextCandidate(
        in buffer: UnsafeBufferPointer<UInt8>,
        from first: Int,
        before limit: Int
    ) -> Int? {
        let bytes = UnsafeRawBufferPointer(buffer)
        let (ones, highs) = (0x0101_0101_0101_0101 as UInt64, 0x8080_8080_8080_8080 as UInt64)
        let (cr, lf, dash) = (ones &* 0x0D, ones &* 0x0A, ones &* 0x2D)
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        var offset = first
        while offset < limit, offset + 11 <= bytes.count {
            let difference =
                (word(offset) ^ cr) | (word(offset + 1) ^ lf) | (word(offset + 2) ^ dash)
                | (word(offset + 3) ^ dash)
            let zeros = (difference &- ones) & ~difference & highs
            if zeros != 0 {
                let candidate = offset + zeros.trailingZeroBitCount / 8
                return candidate < limit ? candidate : nil
            }
            offset += 8
        }
        while offset < min(limit, bytes.count) {
            if bytes[offset] == 0x0D { return offset }
            offset += 1
        }
        return nil
    }

    private func match(_ buffer: UnsafeBufferPointer<UInt8>, at start: Int) -> Match {
        let available = min(pattern.count, buffer.count - start)
        for index in 0..<available where buffer[start + index] != pattern[index] { return .mismatch }
        var offset = start + pattern.count
        guard offset < buffer.count else { return .incomplete }
        if buffer[offset] == 0x2D {
            guard offset + 1 < buffer.count else { return .incomplete }
            return buffer[offset + 1] == 0x2D ? .complete(end: offset + 2, isClosing: true) : .mismatch
        }
        let paddingEnd = offset + Self.maximumPadding
        while offset < buffer.count, buffer[offset] == 0x20 || buffer[offset] == 0x09 {
            guard offset < paddingEnd else { return .mismatch }
            offset += 1
        }
        guard offset < buffer.count else { return .incomplete }
        if buffer[offset] == 0x0A { return .bareLineFeed }
        guard buffer[offset] == 0x0D else { return .mismatch }
        guard offset + 1 < buffer.count else { return .incomplete }
        return buffer[offset + 1] == 0x0A ? .complete(end: offset + 2, isClosing: false) : .mismatch
    }
}
