/// A Huffman code for deflate (RFC 1951 §3.2): the length in bits and the bits of each symbol's code.
///
/// Symbols that did not occur have no code, except that there are always two codes: some inflaters refuse fewer.
struct HuffmanCode: Sendable {
    /// The length of each symbol's code in bits; 0 for none.
    private(set) var lengths: [UInt8]
    /// Each symbol's code in the low 16 bits, first bit lowest, and its length in the bits above.
    private(set) var codes: [UInt32]

    /// Makes the best code whose longest code has `limit` bits, or nearly the best where the limit matters.
    init(frequencies: [UInt32], limit: Int) {
        lengths = [UInt8](repeating: 0, count: frequencies.count)
        codes = []
        var symbols = frequencies.indices.filter { frequencies[$0] > 0 }
        var spare = 0
        while symbols.count < 2 {
            if !symbols.contains(spare) { symbols.append(spare) }
            spare += 1
        }
        symbols.sort { (frequencies[$0], $0) < (frequencies[$1], $1) }
        let counts = Self.countsByLength(symbols.map { UInt64(max(1, frequencies[$0])) }, limit: limit)
        var next = symbols.startIndex
        for length in stride(from: limit, to: 0, by: -1) {
            for symbol in symbols[next..<next + counts[length]] { lengths[symbol] = UInt8(length) }
            next += counts[length]
        }
        codes = Self.codes(ofLengths: lengths, limit: limit)
    }

    /// The code with these lengths, which must be those of a code.
    init(lengths: [UInt8]) {
        self.lengths = lengths
        codes = Self.codes(ofLengths: lengths, limit: 15)
    }

    /// How many codes there are of each length. `weights` ascend, and are at least two.
    private static func countsByLength(_ weights: [UInt64], limit: Int) -> [Int] {
        let leaves = weights.count
        // The leaves, and behind them the inner nodes in the order in which they are made, which is ascending too.
        var weights = weights
        weights.reserveCapacity(2 * leaves - 1)
        var parents = [Int](repeating: 0, count: 2 * leaves - 1)
        var (leaf, inner) = (0, leaves)
        func takeLightest() -> Int {
            if leaf < leaves, inner == weights.count || weights[leaf] <= weights[inner] {
                leaf += 1
                return leaf - 1
            }
            inner += 1
            return inner - 1
        }
        for node in leaves..<2 * leaves - 1 {
            let (first, second) = (takeLightest(), takeLightest())
            weights.append(weights[first] + weights[second])
            (parents[first], parents[second]) = (node, node)
        }
        var depths = [Int](repeating: 0, count: 2 * leaves - 1)
        var counts = [Int](repeating: 0, count: limit + 1)
        for node in stride(from: 2 * leaves - 3, through: 0, by: -1) {
            depths[node] = depths[parents[node]] + 1
            if node < leaves { counts[min(limit, depths[node])] += 1 }
        }
        // Codes that were cut to the limit take more room than there is: others are made longer in exchange.
        var room = (1...limit).reduce(0) { $0 + counts[$1] << (limit - $1) }
        while room > 1 << limit {
            counts[limit] -= 1
            for length in stride(from: limit - 1, to: 0, by: -1) where counts[length] > 0 {
                counts[length] -= 1
                counts[length + 1] += 2
                break
            }
            room -= 1
        }
        return counts
    }

    private static func codes(ofLengths lengths: [UInt8], limit: Int) -> [UInt32] {
        var next = [UInt32](repeating: 0, count: limit + 2)
        for length in lengths where length > 0 { next[Int(length) + 1] += 1 }
        for length in 1...limit { next[length + 1] = (next[length] + next[length + 1]) << 1 }
        return lengths.map { length in
            guard length > 0 else { return 0 }
            let code = next[Int(length)]
            next[Int(length)] += 1
            return UInt32(UInt16(truncatingIfNeeded: code).bitReversed >> (16 - UInt16(length)))
                | UInt32(length) << 16
        }
    }
}

extension UInt16 {
    fileprivate var bitReversed: UInt16 {
        var bits = self
        bits = (bits & 0x5555) << 1 | (bits & 0xAAAA) >> 1
        bits = (bits & 0x3333) << 2 | (bits & 0xCCCC) >> 2
        bits = (bits & 0x0F0F) << 4 | (bits & 0xF0F0) >> 4
        return bits.byteSwapped
    }
}

/// The two codes of a deflate block, and how the block announces them.
struct BlockCodes: Sendable {
    /// Of bytes, the end of the block, and lengths.
    let symbols: HuffmanCode
    let distances: HuffmanCode
    /// The beginning of a block with these codes: bits in the low 16 bits, and their number above.
    let header: [UInt32]
    let headerBits: Int

    /// The codes that need no announcement (RFC 1951 §3.2.6).
    static let fixed = BlockCodes()

    private init() {
        symbols = HuffmanCode(
            lengths: (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 }
        )
        distances = HuffmanCode(lengths: [UInt8](repeating: 5, count: 30))
        (header, headerBits) = ([0b010 | 3 << 16], 3)
    }

    /// The codes for what occurred: `symbols` of 286, `distances` of 30.
    init(symbols symbolFrequencies: [UInt32], distances distanceFrequencies: [UInt32]) {
        symbols = HuffmanCode(frequencies: symbolFrequencies, limit: 15)
        distances = HuffmanCode(frequencies: distanceFrequencies, limit: 15)
        let symbolCount = max(257, (symbols.lengths.lastIndex { $0 > 0 } ?? 0) + 1)
        let distanceCount = (distances.lengths.lastIndex { $0 > 0 } ?? 0) + 1
        let runs = Self.runs(
            of: symbols.lengths.prefix(symbolCount) + distances.lengths.prefix(distanceCount)
        )
        var frequencies = [UInt32](repeating: 0, count: 19)
        for run in runs { frequencies[run.symbol] += 1 }
        let code = HuffmanCode(frequencies: frequencies, limit: 7)
        let sent = max(4, (Self.order.lastIndex { code.lengths[$0] > 0 } ?? 0) + 1)
        var header: [UInt32] = [
            0b100 | 3 << 16,
            UInt32(symbolCount - 257) | 5 << 16,
            UInt32(distanceCount - 1) | 5 << 16,
            UInt32(sent - 4) | 4 << 16,
        ]
        header += Self.order.prefix(sent).map { UInt32(code.lengths[$0]) | 3 << 16 }
        for run in runs {
            header.append(code.codes[run.symbol])
            if run.extraBits > 0 { header.append(run.extra | run.extraBits << 16) }
        }
        self.header = header
        headerBits = header.reduce(0) { $0 + Int($1 >> 16) }
    }

    /// In which order a block gives the lengths of the codes for code lengths.
    private static let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    /// Code lengths as a block gives them: 16 repeats the last one, 17 and 18 are zeros.
    private static func runs(of lengths: ArraySlice<UInt8>) -> [(
        symbol: Int, extra: UInt32, extraBits: UInt32
    )] {
        var runs: [(symbol: Int, extra: UInt32, extraBits: UInt32)] = []
        var rest = lengths
        while let length = rest.first {
            let same = rest.prefix { $0 == length }.count
            var taken = 1
            if length == 0, same >= 11 {
                taken = min(same, 138)
                runs.append((18, UInt32(taken - 11), 7))
            } else if length == 0, same >= 3 {
                taken = same
                runs.append((17, UInt32(taken - 3), 3))
            } else {
                runs.append((Int(length), 0, 0))
                var left = length == 0 ? 0 : same - 1
                while left >= 3 {
                    let repeated = min(left, 6)
                    runs.append((16, UInt32(repeated - 3), 2))
                    left -= repeated
                    taken += repeated
                }
            }
            rest = rest.dropFirst(taken)
        }
        return runs
    }
}
