/// The last bytes that a ``FastDeflater`` has deflated, and where in them some bytes are found again.
///
/// Its owner deallocates it. A value of pointers, so that a loop over it reads no memory that it might have written itself.
struct DeflateHistory {
    /// How many bytes are looked at at once.
    static let wordSize = 8
    /// How much stays when room is made, in bytes.
    static let kept = 16 << 10
    /// How far back deflate can refer.
    static let longestDistance = 32 << 10
    /// How many bytes there are at most.
    static let capacity = 48 << 10
    /// Shorter matches hardly take fewer bits than their bytes do.
    static let (shortestMatch, longestMatch) = (5, 258)
    static let hashBits = UInt64(12)
    static let slots = 1 << hashBits

    let window: UnsafeMutablePointer<UInt8>
    /// By a hash of five bytes, the last two places in the window where such bytes may be. 0 for none.
    let places: UnsafeMutablePointer<UInt16>

    init() {
        window = .allocate(capacity: Self.capacity)
        window.initialize(repeating: 0, count: Self.capacity)
        places = .allocate(capacity: 2 * Self.slots)
        places.initialize(repeating: 0, count: 2 * Self.slots)
    }

    func deallocate() {
        window.deallocate()
        places.deallocate()
    }

    /// Forgets all but the last bytes.
    func shorten(from count: Int) {
        let dropped = count - Self.kept
        window.update(from: window + dropped, count: Self.kept)
        let limit = SIMD8(repeating: UInt16(dropped))
        let raw = UnsafeMutableRawPointer(places)
        for offset in stride(from: 0, to: 2 * Self.slots * MemoryLayout<UInt16>.size, by: 16) {
            let some = raw.loadUnaligned(fromByteOffset: offset, as: SIMD8<UInt16>.self)
            raw.storeBytes(
                of: pointwiseMax(some, limit) &- limit,
                toByteOffset: offset,
                as: SIMD8<UInt16>.self
            )
        }
    }

    @inline(__always)
    private func word(_ place: Int) -> UInt64 {
        UnsafeRawPointer(window).loadUnaligned(fromByteOffset: place, as: UInt64.self).littleEndian
    }

    @inline(__always)
    private func slot(_ word: UInt64) -> Int {
        Int(truncatingIfNeeded: ((word &<< 24) &* 0x9E37_79B1_85EB_CA87) &>> (64 &- Self.hashBits)) &<< 1
    }

    @inline(__always)
    func remember(from start: Int, to end: Int) {
        var place = start
        while place < end {
            let slot = slot(word(place))
            places[slot &+ 1] = places[slot]
            places[slot] = UInt16(truncatingIfNeeded: place)
            place &+= 1
        }
    }

    /// The longer of the two matches that are known; its length is 0 if there is none. Remembers the position.
    @inline(__always)
    func longestMatch(at position: Int, end: Int) -> (length: Int, distance: Int) {
        let word = word(position)
        let slot = slot(word)
        let (first, second) = (Int(places[slot]), Int(places[slot &+ 1]))
        places[slot &+ 1] = UInt16(truncatingIfNeeded: first)
        places[slot] = UInt16(truncatingIfNeeded: position)
        let limit = min(end &- position, Self.longestMatch)
        var (length, distance) = (0, 0)
        if (self.word(first) ^ word) & Self.hashed == 0, first < position,
            position &- first <= Self.longestDistance
        {
            length = matchLength(first, position, word, limit)
            distance = position &- first
        }
        if (self.word(second) ^ word) & Self.hashed == 0, second < position, length < limit,
            position &- second <= Self.longestDistance
        {
            let other = matchLength(second, position, word, limit)
            if other > length { (length, distance) = (other, position &- second) }
        }
        return (length, distance)
    }

    /// The bytes of a word that are hashed.
    private static let hashed: UInt64 = 0xFF_FFFF_FFFF

    /// How many bytes are the same at both places. `word`: the first eight at `position`.
    @inline(__always)
    private func matchLength(_ place: Int, _ position: Int, _ word: UInt64, _ limit: Int) -> Int {
        let difference = self.word(place) ^ word
        if difference != 0 { return min(difference.trailingZeroBitCount &>> 3, limit) }
        var length = Self.wordSize
        while length &+ Self.wordSize <= limit {
            let difference = self.word(place &+ length) ^ self.word(position &+ length)
            if difference != 0 { return length &+ difference.trailingZeroBitCount &>> 3 }
            length &+= Self.wordSize
        }
        while length < limit, window[place &+ length] == window[position &+ length] { length &+= 1 }
        return length
    }
}
