import LoveseatModel
import LoveseatTesting
import Testing

/// The versions that a vector loses (version-vectors.md §7.5).
@Suite struct VersionPruningTests {
    private static let wall: UInt64 = 0x18E9_F1F2_E876_1234
    private static let day: UInt64 = 24 * 60 * 60 * 1_000_000_000

    /// A vector whose previous versions are these numbers of days old.
    private static func vector(daysOld: [UInt64]) throws -> VersionVector {
        var versions = [try Version(time: wall, source: SourceID(high: 1, low: 0))]
        for (number, days) in daysOld.enumerated() {
            versions.append(
                try Version(time: wall - days * day, source: SourceID(high: 2, low: UInt64(number)))
            )
        }
        return try VersionVector(versions, currentCount: 1)
    }

    @Test func `a vector of 64 versions loses nothing`() throws {
        let vector = try Self.vector(daysOld: (0..<63).map { 100 + $0 })
        #expect(vector.versions.count == 64)
        #expect(vector.pruned(wall: Self.wall) == vector)
    }

    @Test func `a larger vector loses the versions that are older than 60 days`() throws {
        let vector = try Self.vector(daysOld: (0..<100).map { $0 })
        let pruned = vector.pruned(wall: Self.wall)
        #expect(Array(pruned.versions) == Array(vector.versions.prefix(62)))
        #expect(pruned.current == vector.current)
        #expect(
            try Self.vector(daysOld: (0..<100).map { $0 / 2 }).pruned(wall: Self.wall).versions.count == 101
        )
    }

    @Test func `eight previous versions stay, the latest ones`() throws {
        let vector = try Self.vector(daysOld: (0..<100).map { 61 + $0 })
        let pruned = vector.pruned(wall: Self.wall)
        #expect(Array(pruned.versions) == Array(vector.versions.prefix(9)))
    }

    @Test func `merge versions and encoded revisions stay, whatever their times`() throws {
        let old = try Self.vector(daysOld: (0..<100).map { 61 + $0 })
        let encoded = try #require(RevisionID("2-bb")?.encodedVersion)
        let vector = try VersionVector(Array(old.versions) + [encoded], currentCount: 3)
        let pruned = vector.pruned(wall: Self.wall)
        #expect(pruned.mergeVersions == vector.mergeVersions)
        #expect(pruned.covers(encoded))
        #expect(pruned.versions.count == 3 + 8)
    }

    @Test func `a reading of the system's clock in 1970 makes nothing old`() throws {
        let vector = try Self.vector(daysOld: (0..<100).map { 61 + $0 })
        #expect(vector.pruned(wall: 0) == vector)
    }

    // 10: what is written here can be read elsewhere.
    @Test func `edits, merges and resolutions have 1,000 versions at most, and keep what they replace`()
        throws
    {
        func large(_ half: UInt64) throws -> VersionVector {
            // The current version is older than all others.
            let versions = try (UInt64(1)...1_000).map { number in
                try Version(time: VersionNotation.time(1) + number, source: SourceID(high: half, low: number))
            }
            return try VersionVector(versions, currentCount: 1)
        }
        let (one, other) = try (large(1), large(2))
        let time = VersionNotation.time(2)
        let results = [
            try one.edited(by: source("a"), at: time),
            try VersionVector.merge(one, other, by: source("a"), at: time),
            try one.winning(over: other),
        ]
        for result in results {
            #expect(result.versions.count == 1_000)
            #expect(try VersionVector(result.text) == result)
            #expect(result.covers(try #require(one.current)))
        }
        #expect(results[1].covers(try #require(other.current)))
        #expect(results[2].covers(try #require(other.current)))
        #expect(results[2].relation(to: one) == .same)
    }
}
