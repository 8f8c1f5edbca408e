/// Deflates the messages of one connection (RFC 1951), each so far that it can be read without the next.
///
/// It serves the lowest level, where zlib spends much of its time on new Huffman codes for each small message, although they
/// hardly differ. This type keeps its codes as long as they serve (docs/decisions/0002-pipelining.md).
// @unchecked because the one owner, a connection, is itself used from one place at a time.
final class FastDeflater: @unchecked Sendable {
    /// The longest piece that becomes one block, in bytes.
    private static let longestPiece = 16 << 10
    /// After how many literals and matches there are new codes.
    private static let tokensPerCode = 8 << 10
    /// For how many codes a symbol is remembered that does not occur.
    private static let codesRemembered = 16
    /// A piece that is shorter gets no codes of its own.
    private static let shortPiece = 200

    /// What went before, and the piece.
    private let history = DeflateHistory()
    private var windowCount = 0
    /// The piece as literals and matches. A literal is a byte; a match is ``matchFlag``, its length less 3 from bit 16 on, and its
    /// distance less 1.
    private let tokens: UnsafeMutablePointer<UInt32>
    private let output: UnsafeMutablePointer<UInt8>
    private static let (symbolCount, distanceCount) = (286, 30)
    /// How often each symbol occurs in the piece, and in those since the codes were made.
    private let symbols: UnsafeMutablePointer<UInt32>
    private let distances: UnsafeMutablePointer<UInt32>
    private var recentSymbols = [UInt32](repeating: 0, count: symbolCount)
    private var recentDistances = [UInt32](repeating: 0, count: distanceCount)
    /// The symbol of each length less 3, from 257.
    private let lengthSymbols: UnsafeMutablePointer<UInt8>
    private var tokensSinceCode = 0
    private var codesMade = 0
    private var kept: BlockCodes?

    private static let matchFlag = UInt32(1) << 31
    private static let endOfBlock = 256
    private static let lengthBases =
        [
            3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
            163, 195, 227, 258,
        ]
    private static func extraBits(ofLengthSymbol symbol: Int) -> Int {
        symbol < 8 || symbol == 28 ? 0 : symbol / 4 - 1
    }
    private static func extraBits(ofDistanceSymbol symbol: Int) -> Int { symbol < 4 ? 0 : symbol / 2 - 1 }

    init() {
        tokens = .allocate(capacity: Self.longestPiece)
        tokens.initialize(repeating: 0, count: Self.longestPiece)
        output = .allocate(capacity: Self.longestPiece + 64)
        output.initialize(repeating: 0, count: Self.longestPiece + 64)
        symbols = .allocate(capacity: Self.symbolCount)
        symbols.initialize(repeating: 0, count: Self.symbolCount)
        distances = .allocate(capacity: Self.distanceCount)
        distances.initialize(repeating: 0, count: Self.distanceCount)
        lengthSymbols = .allocate(capacity: 256)
        for length in 0..<256 {
            let symbol = Self.lengthBases.lastIndex { $0 <= length + 3 } ?? 0
            (lengthSymbols + length).initialize(to: UInt8(symbol))
        }
    }

    deinit {
        history.deallocate()
        tokens.deallocate()
        output.deallocate()
        symbols.deallocate()
        distances.deallocate()
        lengthSymbols.deallocate()
    }

    /// Appends the deflated message, flushed, without the four bytes that end every flush.
    func deflate(_ message: ArraySlice<UInt8>, to frame: inout [UInt8]) {
        var rest = message
        while !rest.isEmpty {
            let piece = rest.prefix(Self.longestPiece)
            rest = rest.dropFirst(Self.longestPiece)
            piece.withUnsafeBufferPointer { deflate($0, isLast: rest.isEmpty, to: &frame) }
        }
    }

    private func deflate(_ piece: UnsafeBufferPointer<UInt8>, isLast: Bool, to frame: inout [UInt8]) {
        guard let source = piece.baseAddress else { return }
        if windowCount + piece.count > DeflateHistory.capacity {
            history.shorten(from: windowCount)
            windowCount = DeflateHistory.kept
        }
        let start = windowCount
        windowCount += piece.count
        (history.window + start).update(from: source, count: piece.count)
        let tokenCount = makeTokens(from: start)
        let codes = chooseCodes(tokens: tokenCount, bytes: piece.count)
        var writer = BitWriter(target: output)
        if let codes {
            write(codes, tokenCount, to: &writer)
        } else {
            // Stored: a header, and the bytes from the next whole one on.
            writer.write(0, 3)
            writer.align()
            writer.write(UInt64(piece.count), 16)
            writer.write(UInt64(~UInt16(piece.count)), 16)
            writer.append(piece)
        }
        if isLast {
            writer.write(0, 3)
        } else if codes != nil {
            // A piece in the middle ends on a whole byte too, by an empty stored block.
            writer.write(0, 3)
            writer.align()
            writer.write(0xFFFF_0000, 32)
        }
        writer.align()
        frame.append(contentsOf: UnsafeBufferPointer(start: output, count: writer.count))
    }

    // MARK: Tokens

    /// Cuts the end of the window, from `start`, into tokens, and counts their symbols.
    private func makeTokens(from start: Int) -> Int {
        // In local variables, which nothing that is written through a pointer can change.
        let (history, tokens, end) = (history, tokens, windowCount)
        let (symbols, distances, lengthSymbols) = (symbols, distances, lengthSymbols)
        symbols.update(repeating: 0, count: Self.symbolCount)
        distances.update(repeating: 0, count: Self.distanceCount)
        symbols[Self.endOfBlock] = 1
        var (position, count, misses) = (start, 0, 0)
        while position &+ DeflateHistory.wordSize <= end {
            let match = history.longestMatch(at: position, end: end)
            if match.length == 0 {
                // Where nothing matches, less is tried.
                misses &+= 1
                let next = min(position &+ 1 &+ misses &>> 7, end)
                while position < next {
                    let byte = history.window[position]
                    tokens[count] = UInt32(byte)
                    symbols[Int(byte)] &+= 1
                    count &+= 1
                    position &+= 1
                }
            } else {
                misses = 0
                let (length, distance) = (match.length &- 3, match.distance &- 1)
                tokens[count] = Self.matchFlag | UInt32(truncatingIfNeeded: length &<< 16 | distance)
                symbols[257 &+ Int(lengthSymbols[length])] &+= 1
                distances[Self.distanceSymbol(distance)] &+= 1
                count &+= 1
                let next = position &+ match.length
                // The places near the end of a match are where another begins most often.
                history.remember(
                    from: max(position &+ 1, next &- 3),
                    to: min(next, end &- DeflateHistory.wordSize &+ 1)
                )
                position = next
            }
        }
        while position < end {
            let byte = history.window[position]
            tokens[count] = UInt32(byte)
            symbols[Int(byte)] &+= 1
            count &+= 1
            position &+= 1
        }
        return count
    }

    @inline(__always)
    private static func distanceSymbol(_ distance: Int) -> Int {
        guard distance >= 4 else { return distance }
        let bits = Int.bitWidth &- 1 &- distance.leadingZeroBitCount
        return 2 &* bits &+ (distance &>> (bits &- 1) & 1)
    }

    // MARK: Codes

    /// The codes that make the least of the piece; nil if it is best stored as it is.
    private func chooseCodes(tokens: Int, bytes: Int) -> BlockCodes? {
        tokensSinceCode += tokens
        for index in 0..<Self.symbolCount { recentSymbols[index] &+= symbols[index] }
        for index in 0..<Self.distanceCount { recentDistances[index] &+= distances[index] }
        let fixed = size(with: .fixed) ?? .max
        var size = kept.flatMap { self.size(with: $0) }
        if bytes > Self.shortPiece, size == nil || tokensSinceCode > Self.tokensPerCode {
            let codes = BlockCodes(symbols: recentSymbols, distances: recentDistances)
            kept = codes
            size = self.size(with: codes)
            tokensSinceCode = 0
            forgetHalf()
        }
        let best = min(size ?? .max, fixed)
        if best > 8 * (bytes + 5) { return nil }
        return best == fixed ? .fixed : kept
    }

    /// Halves how often each symbol occurred. That it occurred at all is remembered for longer, because a piece that has a
    /// symbol without a code needs new codes.
    private func forgetHalf() {
        codesMade += 1
        let least: UInt32 = codesMade % Self.codesRemembered == 0 ? 0 : 1
        for index in recentSymbols.indices where recentSymbols[index] > least { recentSymbols[index] >>= 1 }
        for index in recentDistances.indices where recentDistances[index] > least {
            recentDistances[index] >>= 1
        }
    }

    /// How many bits the piece takes; nil if a symbol has no code.
    private func size(with codes: BlockCodes) -> Int? {
        var bits = codes.headerBits
        var isComplete = true
        codes.symbols.lengths.withUnsafeBufferPointer { lengths in
            for index in 0..<Self.symbolCount where symbols[index] > 0 {
                if lengths[index] == 0 { isComplete = false }
                var length = Int(lengths[index])
                if index > Self.endOfBlock { length += Self.extraBits(ofLengthSymbol: index - 257) }
                bits &+= Int(symbols[index]) &* length
            }
        }
        codes.distances.lengths.withUnsafeBufferPointer { lengths in
            for index in 0..<Self.distanceCount where distances[index] > 0 {
                if lengths[index] == 0 { isComplete = false }
                bits &+=
                    Int(distances[index]) &* (Int(lengths[index]) &+ Self.extraBits(ofDistanceSymbol: index))
            }
        }
        return isComplete ? bits : nil
    }

    // MARK: Writing

    private func write(_ codes: BlockCodes, _ tokenCount: Int, to output: inout BitWriter) {
        var writer = output
        for bits in codes.header { writer.write(bits) }
        let (tokens, lengthSymbols) = (tokens, lengthSymbols)
        codes.symbols.codes.withUnsafeBufferPointer { symbols in
            codes.distances.codes.withUnsafeBufferPointer { distances in
                for index in 0..<tokenCount {
                    let token = tokens[index]
                    if token < Self.matchFlag {
                        writer.write(symbols[Int(token)])
                        continue
                    }
                    let length = Int(token &>> 16 & 0xFF)
                    let distance = Int(token & 0x7FFF)
                    let lengthSymbol = Int(lengthSymbols[length])
                    writer.write(symbols[257 &+ lengthSymbol])
                    let lengthBits = Self.extraBits(ofLengthSymbol: lengthSymbol)
                    writer.write(
                        UInt64(truncatingIfNeeded: length & ((1 &<< lengthBits) &- 1)),
                        UInt64(truncatingIfNeeded: lengthBits)
                    )
                    let symbol = Self.distanceSymbol(distance)
                    writer.write(distances[symbol])
                    let distanceBits = Self.extraBits(ofDistanceSymbol: symbol)
                    writer.write(
                        UInt64(truncatingIfNeeded: distance & ((1 &<< distanceBits) &- 1)),
                        UInt64(truncatingIfNeeded: distanceBits)
                    )
                }
                writer.write(symbols[Self.endOfBlock])
            }
        }
        output = writer
    }
}

/// Writes bits to memory that has room for them and eight bytes more, the lowest bit of a byte first.
private struct BitWriter {
    private let target: UnsafeMutablePointer<UInt8>
    /// How many bytes are written.
    private(set) var count = 0
    private var bits: UInt64 = 0
    private var bitCount: UInt64 = 0

    init(target: UnsafeMutablePointer<UInt8>) { self.target = target }

    /// At most 32 bits.
    mutating func write(_ value: UInt64, _ length: UInt64) {
        bits |= value &<< bitCount
        bitCount &+= length
        if bitCount >= 32 { flush() }
    }

    /// Bits in the low 16 bits, and their number above.
    mutating func write(_ code: UInt32) { write(UInt64(code & 0xFFFF), UInt64(code &>> 16)) }

    private mutating func flush() {
        UnsafeMutableRawPointer(target).storeBytes(
            of: bits.littleEndian,
            toByteOffset: count,
            as: UInt64.self
        )
        count &+= Int(bitCount &>> 3)
        bits = bitCount >= 64 ? 0 : bits &>> (bitCount & ~7)
        bitCount &= 7
    }

    /// Goes on with a whole byte.
    mutating func align() {
        bitCount = (bitCount &+ 7) & ~7
        flush()
    }

    /// Whole bytes, after ``align()``.
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        flush()
        guard let source = bytes.baseAddress else { return }
        (target + count).update(from: source, count: bytes.count)
        count &+= bytes.count
    }
}
