import Foundation
import LoveseatModel
import LoveseatTesting

/// The sources and times of version-vectors.md §13, under short names.
enum VersionNotation {
    /// The names of sources in short texts, and the sources' texts. No text begins with the name of a later one.
    private static let sources = [
        ("enc", "Revision+Tree+Encoding"), ("a", "VVebVXiW0M4XZMR/7WRPmw"), ("b", "ZwCGnI/3SA40pwpwiwKHAA"),
        ("c", "y90Q1yAAs6QGig6myZrsaw"), ("z", "/////////////////////w"), ("d", "adsxl26tN7hcxCpJyV/Qbg"),
    ]

    /// Spells out a short text, such as `T3@b; T1@a` or `2@a, 1@b`.
    static func spelled(_ short: String) -> String {
        var text = short
        for number in (0...10).reversed() {
            text = text.replacing("T\(number)@", with: String(time(number), radix: 16) + "@")
        }
        for (name, source) in sources { text = text.replacing("@\(name)", with: "@\(source)") }
        return text
    }

    /// T0 to T10.
    static func time(_ number: Int) -> UInt64 { 0x18E9_F1F0_0000_0000 + UInt64(number) * 0x1000_0000 }
}

/// The vector of a short text.
func vector(_ short: String) throws -> VersionVector { try VersionVector(VersionNotation.spelled(short)) }

/// The version of a short text.
func version(_ short: String) throws -> Version { try Version(VersionNotation.spelled(short)) }

/// The source of a short name.
func source(_ name: String) throws -> SourceID {
    try SourceID(VersionNotation.spelled("@\(name)").dropFirst())
}

extension SeededGenerator {
    /// A valid vector of up to 12 versions, of sources and times that often are equal.
    mutating func versionVector() throws -> VersionVector {
        var sources = (UInt64(1)...14).map { SourceID(high: $0 << 60, low: $0) }
        sources.append(.revisionTree)
        sources.shuffle(using: &self)
        let count = int(0...12)
        var versions = try sources.prefix(count).map { source in
            try Version(
                time: chance(0.5) ? UInt64(int(1...9)) : next() >> UInt64(int(0...40)) | 1,
                source: source
            )
        }
        let currentCount = count == 0 ? 0 : chance(0.5) ? 1 : int(1...count)
        if currentCount > 1, chance(0.3), versions[0].time > 1 {
            versions[1] = try Version(time: versions[0].time - 1, source: versions[0].source)
        }
        return try VersionVector(versions, currentCount: currentCount)
    }
}

/// The states of version-vectors.md §13.2, by their names.
func namedVectors() throws -> [(name: String, vector: VersionVector)] {
    let a1 = try vector("T1@a")
    let b3 = try a1.edited(by: source("b"), at: VersionNotation.time(3))
    let c4 = try a1.edited(by: source("c"), at: VersionNotation.time(4))
    let m6 = try VersionVector.merge(b3, c4, by: source("d"), at: VersionNotation.time(6))
    return [
        ("A1", a1), ("A2", try a1.edited(by: source("a"), at: VersionNotation.time(2))), ("B3", b3),
        ("C4", c4),
        ("B5", try c4.edited(by: source("b"), at: VersionNotation.time(5))), ("M6", m6),
        ("M7", try VersionVector.merge(c4, b3, by: source("a"), at: VersionNotation.time(7))),
        ("E8", try m6.edited(by: source("d"), at: VersionNotation.time(8))),
        ("E9", try m6.edited(by: source("b"), at: VersionNotation.time(9))), ("X", try b3.winning(over: c4)),
    ]
}

extension StateRelation {
    /// The relation by its letter in the tables of version-vectors.md §13; x is a conflict.
    init?(letter: Character) {
        switch letter {
        case "s": self = .same
        case "o": self = .older
        case "n": self = .newer
        case "x": self = .conflict
        default: return nil
        }
    }
}

/// The lines of the versions that real peers named, by their kinds (Tests/Fixtures/versions).
func recordedVersions(_ kind: String) throws -> [[String]] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../Fixtures/versions/recorded.tsv"
    )
    let lines = String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n")
    return lines.map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
        .filter { $0[0] == kind }.map { Array($0.dropFirst()) }
}
