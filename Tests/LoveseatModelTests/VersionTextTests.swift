import LoveseatModel
import LoveseatTesting
import Testing

/// The text of versions and vectors. Numbers in comments are those of version-vectors.md §18.
@Suite struct VersionTextTests {
    // 1, 6, 7 (§13.1)
    @Test(arguments: [
        ("2@a, 1@b", "2@a, 1@b;"), ("2@a,1@b;", "2@a, 1@b;"), ("2@a,1@b; ", "2@a, 1@b;"),
        ("2@a;1@b,1@c", "2@a; 1@b, 1@c"), ("2@a, 1@a; 3@b", "2@a, 1@a; 3@b"), ("A@a", "a@a"),
        ("00a@a", "a@a"), ("2@a;", "2@a"), ("", ""), ("2@a,   1@b;    3@c", "2@a, 1@b; 3@c"),
        ("3@a, 1@b, 2@c; 4@d", "3@a, 2@c, 1@b; 4@d"), ("0000000000000001@a", "1@a"),
    ])
    func `a vector is read, and written in one form`(short: String, written: String) throws {
        let vector = try vector(short)
        #expect(vector.text == VersionNotation.spelled(written))
        #expect(try VersionVector(vector.text) == vector)
    }

    // 1, 2, 3, 4, 9 (§13.1)
    @Test(arguments: [
        ("1@a, 2@a;", VersionError.Reason.mergeVersionNotOlder), ("1@a, 1@a;", .mergeVersionNotOlder),
        ("2@a; 1@a", .duplicateSource), ("3@a; 2@b, 1@b", .duplicateSource),
        ("3@a, 2@b, 1@b;", .duplicateSource), ("3@a, 2@a, 1@a;", .duplicateSource),
        ("3@a, 2@a; 1@a", .duplicateSource), ("3@a; 2@b; 1@c", .secondSemicolon),
        ("3@a;; 2@b", .missingVersion), ("1@a,, 2@b", .missingVersion), (";1@a", .missingVersion),
        (",1@a", .missingVersion), (" ", .missingTime), (";", .missingVersion), ("1@a,", .missingVersion),
        ("1@a, ", .missingVersion), ("2@a; 1@b,", .missingVersion), ("1 @a", .missingSource),
        ("1@a ", .unexpectedCharacter), ("1@a ; 2@b", .unexpectedCharacter), (" 1@a", .missingTime),
        ("0@a", .timeIsZero), ("0000@a", .timeIsZero), ("11111111111111111@a", .timeTooLong),
        ("00000000000000001@a", .timeTooLong), ("@a", .missingTime), ("1", .missingSource),
        ("0x1@a", .timeIsZero), ("1x@a", .missingSource), ("1@0", .invalidSource), ("1@", .invalidSource),
        ("1@-1", .invalidSource),
        ("1@ a", .invalidSource), ("1@VVebVXiW0M4XZMR/7WRPm", .invalidSource),
        ("1@VVebVXiW0M4XZMR/7WRPmwA", .invalidSource), ("1@VVebVXiW0M4XZMR/7WRPmB", .invalidSource),
        ("1@VVebVXiW0M4XZMR_7WRPmw", .invalidSource), ("1@VVebVXiW0M4XZMR/7WRPmw==", .unexpectedCharacter),
        ("1@Unknown+Source", .invalidSource), ("1@AAAAAAAAAAAAAAAAAAAAAA", .reservedSource),
        ("1@*", .ownSource), ("2@a, 1@*", .ownSource), ("2@a; 1@*", .ownSource), ("1-aa", .missingSource),
        ("2@a; 1-aa", .missingSource), ("1@a, é", .missingTime),
    ])
    func `text that is not a vector is refused`(short: String, reason: VersionError.Reason) {
        let error = #expect(throws: VersionError.self) { try vector(short) }
        #expect(error?.reason == reason)
    }

    @Test func `an error says what is wrong, and where`() {
        let error = #expect(throws: VersionError.self) { try VersionVector("1@VVebVXiW0M4XZMR/7WRPmw, 2x@") }
        #expect(error?.offset == 27)
        #expect(
            error?.description == "invalid version: a time is not followed by @ and a source at byte 27"
        )
    }

    // 2
    @Test func `the last character of a source carries two bits`() throws {
        let start = "VVebVXiW0M4XZMR/7WRPm"
        for character in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
            let text = "\(start)\(character)"
            if "AQgw".contains(character) {
                #expect(try SourceID(text).text == text)
            } else {
                #expect(throws: VersionError.self) { try SourceID(text) }
            }
        }
    }

    // 2, 3
    @Test func `a source has 16 bytes, not all of them zero`() throws {
        let anna = try source("a")
        #expect(anna.bytes.hexadecimalText == "55579b557896d0ce1764c47fed644f9b")
        #expect(try SourceID(bytes: anna.bytes) == anna)
        #expect(SourceID.revisionTree.bytes.hexadecimalText == "45ebe2b22a27f93ade7be1277287629e")
        #expect(SourceID.revisionTree.text == "Revision+Tree+Encoding")
        #expect(throws: VersionError(.invalidSource)) { try SourceID(bytes: anna.bytes.dropLast()) }
        #expect(throws: VersionError(.invalidSource)) { try SourceID(bytes: anna.bytes + [0]) }
        #expect(throws: VersionError(.reservedSource)) {
            try SourceID(bytes: [UInt8](repeating: 0, count: 16))
        }
    }

    @Test func `sources are ordered by their bytes`() throws {
        let sources = try ["a", "b", "d", "c", "z"].map { try source($0) }
        #expect(sources.reversed().sorted() == sources)
        #expect(sources.map(\.bytes.hexadecimalText) == sources.map(\.bytes.hexadecimalText).sorted())
    }

    // 5
    @Test func `10,000 random vectors are read as they were written`() throws {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<10_000 {
            let vector = try generator.versionVector()
            #expect(try VersionVector(vector.text) == vector)
            #expect(try VersionVector(utf8: Array(vector.text.utf8)) == vector)
        }
    }

    // 6, 7
    @Test func `without a semicolon all versions are current or merged`() throws {
        let merged = try vector("3@a, 2@b, 1@c")
        #expect(merged.isMerge)
        #expect(try Array(merged.mergeVersions) == [version("2@b"), version("1@c")])
        #expect(merged.previous.isEmpty)
        #expect(merged.text.hasSuffix(";"))
        let edited = try vector("3@a; 2@b, 1@c")
        #expect(!edited.isMerge)
        #expect(try Array(edited.previous) == [version("2@b"), version("1@c")])
        #expect(!(try vector("3@a")).text.contains(";"))
    }

    // 8
    @Test func `Sync Gateway's blanks and order mean the same`() throws {
        let written = try vector("T6@d, T4@c, T3@b; T2@z, T1@a")
        for text in [
            "T6@d,T3@b,T4@c;T1@a,T2@z", "T6@d,T4@c,T3@b;T2@z,T1@a", "T6@d,  T3@b,T4@c;   T1@a, T2@z",
        ] {
            #expect(try vector(text) == written)
        }
    }

    // 10
    @Test func `more than 1,000 versions or 64 KiB are refused`() throws {
        func list(_ count: UInt64) throws -> String {
            let sources = (1...count).map { SourceID(high: $0, low: 0) }
            return sources.map { "7fffffffffffffff@\($0.text)" }.joined(separator: ", ") + ";"
        }
        let largest = try VersionVector(try list(1_000))
        #expect(largest.versions.count == 1_000)
        #expect(largest.text.utf8.count <= VersionVector.maximumBytes)
        let tooMany = #expect(throws: VersionError.self) { try VersionVector(try list(1_001)) }
        #expect(tooMany?.reason == .tooManyVersions)
        let blanks =
            "1@VVebVXiW0M4XZMR/7WRPmw;" + String(repeating: " ", count: VersionVector.maximumBytes - 25)
        #expect(try VersionVector(blanks).versions.count == 1)
        #expect(throws: VersionError(.tooLong)) { try VersionVector(blanks + " ") }
        #expect(throws: VersionError(.tooLong)) { try StateHistory(blanks + " ") }
        #expect(throws: VersionError(.tooLong)) { try Version(blanks + " ") }
    }

    // 10
    @Test func `text takes time in proportion to what is read of it`() throws {
        func seconds(_ body: () -> Void) -> Double {
            let times = (0..<7).map { _ in ContinuousClock().measure(body) / .seconds(1) }
            return times.min() ?? 0
        }
        func list(_ count: UInt64) -> [UInt8] {
            Array((1...count).map { "1@\(SourceID(high: $0, low: 0))" }.joined(separator: ", ").utf8)
        }
        let (short, long) = (list(50), list(1_000))
        // Twenty times as much; it would be 400 times if each version were compared with each.
        let one = seconds { for _ in 0..<100 { _ = try? VersionVector(utf8: short) } }
        #expect(seconds { for _ in 0..<100 { _ = try? VersionVector(utf8: long) } } < one * 150)
        // Too long a text is not read.
        let huge = [UInt8](repeating: UInt8(ascii: "1"), count: 50_000_000)
        #expect(seconds { for _ in 0..<100 { _ = try? VersionVector(utf8: huge) } } < one * 150)
        #expect(throws: VersionError(.tooLong)) { try VersionVector(utf8: huge) }
    }

    // 1 (§13.1)
    @Test(arguments: ["1-aa", "97-beef", "8388608-00"])
    func `a revision ID of a tree is told apart by its hyphen`(text: String) throws {
        let name = try RevisionName(text)
        #expect(name == .revision(try #require(RevisionID(text))))
        #expect(name.text == text)
        #expect(try RevisionName(first: text) == name)
    }

    // 1, 4 (§13.1)
    @Test(arguments: [
        "1-", "1-a", "1-AA", "0-11", "1--aa", " 1-aa", "12345678123456789-aa", "1-aa ", "1-aa,", "", "-aa",
        "1@*",
        "1-aa;", "1-aa, 2-bb", "1@-aa", "1-aa@*",
    ])
    func `text that is neither a version nor a revision ID is refused`(text: String) {
        #expect(throws: VersionError.self) { try RevisionName(text) }
    }

    @Test func `the name of a state is its first version`() throws {
        #expect(try RevisionName(first: vector("T3@b; T1@a").text) == .version(version("T3@b")))
        #expect(throws: VersionError.self) { try RevisionName(first: "") }
        #expect(throws: VersionError.self) { try RevisionName(vector("T3@b; T1@a").text) }
    }

    @Test func `every name in the recorded conversations is read, and written as it was`() throws {
        let names = try recordedVersions("name")
        #expect(names.count == 421)
        for name in names {
            let history = try StateHistory(name[1])
            #expect((history.vector.isEmpty ? history.rev : history.vector.text) == name[1])
            #expect(try RevisionName(first: name[1]) == history.name)
        }
    }

    @Test func `every revision in the recorded conversations is read, and written as it was`() throws {
        let revisions = try recordedVersions("rev")
        #expect(revisions.count == 339)
        for revision in revisions {
            let history = try StateHistory(rev: revision[0], history: revision[1])
            #expect(history.rev == revision[0])
            #expect(history.history ?? "" == revision[1])
        }
    }
}
