import LoveseatModel
import LoveseatTesting
import Testing

/// The clock of versions, and authors with it. Numbers in comments are those of version-vectors.md §18.
@Suite struct HybridClockTests {
    /// The system's clock in version-vectors.md §13.8.
    private static let wall: UInt64 = 0x18E9_F1F2_E876_1234
    private static let second: UInt64 = 1_000_000_000

    // 11 (§13.8)
    @Test func `times follow the system's clock, or count`() {
        var clock = HybridClock()
        #expect(clock.now(wall: Self.wall) == 0x18E9_F1F2_E876_0000)
        #expect(clock.now(wall: Self.wall) == 0x18E9_F1F2_E876_0001)
        #expect(clock.now(wall: Self.wall + 1) == 0x18E9_F1F2_E876_0002)
        #expect(clock.now(wall: Self.wall - Self.second) == 0x18E9_F1F2_E876_0003)
        #expect(clock.now(wall: Self.wall + 0x10000) == 0x18E9_F1F2_E877_0000)
    }

    // 11 (§13.8)
    @Test func `a time that is 5 seconds ahead is followed`() throws {
        var clock = HybridClock()
        let first = clock.now(wall: Self.wall)
        try clock.see(first + 5 * Self.second, wall: Self.wall)
        #expect(clock.last == 0x18E9_F1F4_127B_F200)
        #expect(clock.now(wall: Self.wall) == 0x18E9_F1F4_127B_F201)
    }

    // 11, 15, 16 (§13.8)
    @Test(arguments: [
        (wall + 121 * second, VersionError.Reason.timeTooFarAhead), (0xFF_FFFF_FFFF, .timeOutOfRange),
        (0x8000_0000_0000_0000, .timeOutOfRange), (0, .timeOutOfRange), (.max, .timeOutOfRange),
        (0x7FFF_FFFF_FFFF_FFFF, .timeTooFarAhead),
    ])
    func `a time that no peer should have is refused, and changes nothing`(
        time: UInt64,
        reason: VersionError.Reason
    ) {
        var clock = HybridClock()
        _ = clock.now(wall: Self.wall)
        let before = clock
        #expect(throws: VersionError(reason)) { try clock.see(time, wall: Self.wall) }
        #expect(clock == before)
    }

    // 16
    @Test func `the earliest time stands for the first revision of a tree`() throws {
        var clock = HybridClock()
        try clock.see(0x100_0000_0000, wall: Self.wall)
        #expect(clock.last == Self.wall & ~0xFFFF)
        #expect(clock.now(wall: Self.wall) == Self.wall & ~0xFFFF | 1)
    }

    // 11 (§13.8)
    @Test func `the counter carries into the upper bits`() throws {
        var clock = try HybridClock(after: 0x18E9_F1F2_E876_FFFF)
        #expect(clock.now(wall: Self.wall) == 0x18E9_F1F2_E877_0000)
    }

    // 11 (§13.8)
    @Test func `of equal readings the larger counter counts`() throws {
        var clock = try HybridClock(after: 0x18E9_F1F2_E876_0002)
        try clock.see(0x18E9_F1F2_E876_0009, wall: Self.wall)
        #expect(clock.last == 0x18E9_F1F2_E876_0009)
        #expect(clock.now(wall: Self.wall) == 0x18E9_F1F2_E876_000A)
        try clock.see(0x18E9_F1F2_E876_0003, wall: Self.wall)
        #expect(clock.last == 0x18E9_F1F2_E876_000A)
    }

    // 12
    @Test func `200,000 times in one tick increase`() {
        var clock = HybridClock()
        var last: UInt64 = 0
        for _ in 0..<200_000 {
            let time = clock.now(wall: Self.wall)
            if time <= last { Issue.record("\(time) after \(last)") }
            last = time
        }
        #expect(last == (Self.wall & ~0xFFFF) + 199_999)
    }

    // 13
    @Test func `edits go on while the system's clock is set back by an hour`() throws {
        var author = try VersionAuthor(source("a"))
        var vector = try author.edit(VersionVector(), wall: Self.wall)
        for round in 0..<10 {
            let edited = try author.edit(vector, wall: Self.wall - 3_600 * Self.second + UInt64(round))
            #expect(edited.relation(to: vector) == .newer)
            #expect(edited.versions.count == 1)
            vector = edited
        }
    }

    // 14: what the clock has to do with it. That its last time is stored with each commit is the store's matter.
    @Test func `a clock that goes on after the last own time gives none twice`() throws {
        var clock = HybridClock()
        var times: Set<UInt64> = []
        for restart in UInt64(0)..<50 {
            for _ in 0..<20 {
                #expect(times.insert(clock.now(wall: Self.wall - restart * Self.second)).inserted)
            }
            clock = try HybridClock(after: try #require(times.max()))
        }
        #expect(throws: VersionError(.timeOutOfRange)) { try HybridClock(after: 1) }
        #expect(throws: VersionError(.timeOutOfRange)) { try HybridClock(after: .max) }
        #expect(try HybridClock(after: 0) == HybridClock())
    }

    // 14
    @Test
    func `an edit is later than the author's version that it replaces, even if the clock has forgotten it`()
        throws
    {
        var author = try VersionAuthor(source("a"))
        let future = try Version(time: Self.wall + 3_600 * Self.second, source: source("a"))
        let edited = try author.edit(VersionVector(future), wall: Self.wall)
        #expect(edited.current?.time == future.time + 1)
        #expect(author.clock.last == future.time + 1)
    }

    // 15
    @Test func `a time up to 120 seconds ahead is accepted, and the next own time is later`() throws {
        for lead in [UInt64(1), 60, 119, 120] {
            var author = try VersionAuthor(source("a"))
            let theirs = VersionVector(
                try Version(time: (Self.wall + lead * Self.second) & ~0xFFFF | 7, source: source("b"))
            )
            try author.see(theirs, wall: Self.wall)
            let edited = try author.edit(theirs, wall: Self.wall)
            #expect(try #require(edited.current).time > #require(theirs.current).time)
            #expect(edited.relation(to: theirs) == .newer)
        }
    }

    // 15
    @Test func `after a time that lies ahead, earlier ones are accepted whatever the system's clock says`()
        throws
    {
        var clock = HybridClock()
        try clock.see(Self.wall + 119 * Self.second, wall: Self.wall)
        try clock.see(Self.wall + 100 * Self.second, wall: Self.wall - 3_600 * Self.second)
        #expect(clock.last == (Self.wall + 119 * Self.second))
    }

    // 15, 17
    @Test func `a vector that is refused leaves the clock as it was`() throws {
        var author = try VersionAuthor(source("a"))
        _ = try author.edit(VersionVector(), wall: Self.wall)
        let before = author
        let good = try Version(time: Self.wall + 60 * Self.second, source: source("b"))
        for time in [Self.wall + 121 * Self.second, 5, .max] {
            let bad = try Version(time: time, source: source("c"))
            let vector = try VersionVector([good, bad], currentCount: 1)
            #expect(throws: VersionError.self) { try author.see(vector, wall: Self.wall) }
            #expect(author == before)
        }
        try author.see(VersionVector(good), wall: Self.wall)
        #expect(author.clock.last == good.time)
    }

    @Test func `a restored database does not give times again that its peers have seen`() throws {
        var author = try VersionAuthor(source("a"))
        let backup = author
        let lost = try author.edit(VersionVector(), wall: Self.wall)
        author = backup
        try author.see(lost, wall: Self.wall)
        let edited = try author.edit(VersionVector(), wall: Self.wall - Self.second)
        #expect(try #require(edited.current) > #require(lost.current))
    }

    @Test func `a peer cannot make a database unwritable by versions in its name`() throws {
        var author = try VersionAuthor(source("a"))
        let forged = VersionVector(try Version(time: 0x7FFF_FFFF_FFFF_FFFF, source: source("a")))
        #expect(throws: VersionError(.timeTooFarAhead)) { try author.see(forged, wall: Self.wall) }
    }

    @Test func `readings of the system's clock that nobody can have make valid times`() {
        for wall in [UInt64.max, 1 << 63, 0] {
            var clock = HybridClock()
            let time = clock.now(wall: wall)
            #expect(HybridClock.validTimes.contains(time))
        }
    }

    @Test func `a conflict is merged though one side lies ahead of a clock that was set back`() throws {
        var author = try VersionAuthor(source("a"))
        let (ours, theirs) = try (vector("T1@a"), vector("T9@b"))
        let wall = VersionNotation.time(9) - 3_600 * Self.second
        let merged = try author.merge(ours, theirs, wall: wall)
        #expect(merged.relation(to: ours) == .newer)
        #expect(merged.relation(to: theirs) == .newer)
        #expect(throws: VersionError(.sameAuthor)) { try author.merge(theirs, vector("T3@b"), wall: wall) }
        #expect(throws: VersionError(.emptyVector)) { try author.merge(theirs, VersionVector(), wall: wall) }
    }

    @Test func `the author of a tree's revisions is not a database`() {
        #expect(throws: VersionError(.reservedSource)) { try VersionAuthor(.revisionTree) }
    }
}
