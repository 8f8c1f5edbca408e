import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// The counts of a server's nonces, without a connection.
struct DigestNoncesTests {
    private static func nonces() -> DigestNonces {
        DigestNonces { content in (0..<16).map { content.reduce(UInt8($0)) { $0 &* 31 &+ $1 } } }
    }

    private static let random = [UInt8](repeating: 7, count: 12)

    /// A nonce of which these counts were used.
    private func used(_ counts: [UInt32]) -> (DigestNonces, String) {
        var nonces = Self.nonces()
        let nonce = nonces.make(random: Self.random, now: 10)
        for count in counts { #expect(nonces.use(nonce, count: count, now: 11) == .accepted, "\(count)") }
        return (nonces, nonce)
    }

    /// `CountWindow.use` without its look at counts too far behind, or with a larger window.
    @Test(arguments: [512, 513, 600, 1_000, 1_024, 5_000] as [UInt32])
    func `a count that is further behind than the window is a replay, whether its place is free or not`(
        _ ahead: UInt32
    ) {
        for first: UInt32 in [1, 2, 64, 511, 512, 700] {
            var (nonces, nonce) = used([first, first + ahead])
            #expect(nonces.use(nonce, count: first, now: 11) == .stale, "\(first)")
            if first > 1 { #expect(nonces.use(nonce, count: first - 1, now: 11) == .stale, "\(first)") }
            // It has taken no place from a later one.
            let isOpen = (513...1_023).contains(ahead)
            #expect(nonces.use(nonce, count: first + 512, now: 11) == (isOpen ? .accepted : .stale))
        }
    }

    /// `CountWindow.use` with a smaller window.
    @Test func `each count within the window is accepted once`() {
        var (nonces, nonce) = used([1_000])
        for count: UInt32 in 489...999 {
            #expect(nonces.use(nonce, count: count, now: 11) == .accepted)
            #expect(nonces.use(nonce, count: count, now: 11) == .stale)
        }
        #expect(nonces.use(nonce, count: 488, now: 11) == .stale)
    }

    /// `CountWindow.use` without clearing the places that are passed.
    @Test(arguments: [1, 2, 63, 64, 511, 512, 513, 1_024] as [UInt32])
    func `counts that go on for long are accepted, in steps of any size`(_ step: UInt32) {
        let counts = (1...2_000).map { UInt32($0) * step }
        var (nonces, nonce) = used(counts)
        for count in counts.suffix(600) { #expect(nonces.use(nonce, count: count, now: 11) == .stale) }
    }

    @Test func `the counts of one nonce are not those of another`() {
        var (nonces, nonce) = used([1])
        let other = nonces.make(random: Self.random.map { $0 + 1 }, now: 10)
        #expect(nonces.use(other, count: 1, now: 11) == .accepted)
        #expect(nonces.use(nonce, count: 1, now: 11) == .stale)
        #expect(nonces.keptCount == 2)
    }

    @Test func `a nonce is valid to the end of its lifetime, and its counts are then forgotten`() {
        var (nonces, nonce) = used([1])
        let end = 10 + DigestNonces.lifetime
        #expect(nonces.use(nonce, count: 2, now: end) == .accepted)
        #expect(nonces.use(nonce, count: 3, now: end + 0.002) == .stale)
        #expect(nonces.keptCount == 0)
    }

    /// `DigestNonces.forget` with another bound.
    @Test func `the counts of a limited number of nonces are kept, and older ones are then refused`() {
        var nonces = Self.nonces()
        // Each some milliseconds after the other, and none expires.
        let made = (0...DigestNonces.maximumKept).map { number in
            nonces.make(random: Self.random, now: 10 + Double(number) / 128)
        }
        for nonce in made.dropLast() { #expect(nonces.use(nonce, count: 1, now: 60) == .accepted) }
        #expect(nonces.keptCount == DigestNonces.maximumKept)
        #expect(made.last.map { nonces.use($0, count: 1, now: 60) } == .accepted)
        #expect(nonces.keptCount <= DigestNonces.maximumKept)
        // The first is forgotten with its counts, and the newest is not.
        #expect(nonces.use(made[0], count: 1, now: 60) == .stale)
        #expect(nonces.use(made[0], count: 2, now: 60) == .stale)
        #expect(nonces.use(made[made.count - 2], count: 1, now: 60) == .stale)
        #expect(nonces.use(made[made.count - 2], count: 2, now: 60) == .accepted)
    }

    @Test func `a nonce of which a byte is another is unknown`() throws {
        var (nonces, nonce) = used([])
        let bytes = try #require(Base64.decode(Substring(nonce)))
        #expect(bytes.count == 36)
        for place in bytes.indices {
            var forged = bytes
            forged[place] ^= 1
            #expect(nonces.use(Base64.encode(forged), count: 1, now: 11) == .unknown, "\(place)")
        }
        #expect(nonces.use(Base64.encode(Array(bytes.dropLast())), count: 1, now: 11) == .unknown)
        #expect(nonces.keptCount == 0)
    }
}
