import LoveseatModel
import LoveseatTesting
import Testing

/// The canonical form that is written straight from the index, against the one of the decoded value.
@Suite struct CanonicalJSONTests {
    private func expectSame(_ text: String) throws {
        let decoded = JSONText(canonical: try JSONValue(parsing: text))
        #expect(try JSONText(text).canonical == decoded, "\(text)")
    }

    @Test(
        arguments: [
            #"{"b":1,"a":2,"b":3}"#, #"{"a":1,"a":{"z":1,"y":[]},"a":null}"#, #"{"":0," ":1}"#,
            #"{"\u0061":1,"a":2}"#, #"{"a":2,"\u0061":1}"#, #"{"z":1,"\n":2,"\u007f":3}"#,
            #"{"ä":1,"a":2,"😀":3,"\ud83d\ude00":4}"#,
            #"{"ab":1,"a":2,"abc":3}"#, #" [ 1 , { "b" : [ ] , "a" : { } } ] "#,
            #"{"nested":{"b":{"d":1,"c":2},"a":3}}"#,
            "[\"\u{7F}\",\"\\u0000\\/\\\"\",\"\\ud834\\udd1e\"]",
        ]
    )
    func `keys are sorted by their bytes, the last of equal ones counts, and escapes are the least`(
        _ text: String
    ) throws {
        try expectSame(text)
    }

    @Test(
        arguments: [
            "-0", "0", "-5", "1.0", "1.10", "1.00", "-0.0", "0.00001", "0.0001", "0.00012345",
            "12345678901234.5",
            "123456789012345.5", "0.1e1", "1E400", "-1e-400", "9007199254740993", "18446744073709551616",
            "5e-324", "100000.0",
            "123456789.123456", "0.30000000000000004", "1e5", "1e15", "1e16", "99999999999999.9",
        ]
    )
    func `a number is written in its shortest form`(_ number: String) throws { try expectSame("[\(number)]") }

    @Test func `a decimal of up to fifteen digits that is copied is what its double would be written as`()
        throws
    {
        var dice = SeededGenerator(seed: 15)
        for _ in 0..<100_000 {
            let digits = (0..<dice.int(1...10)).map { _ in String(dice.int(0...9)) }.joined()
            let whole = dice.chance(0.5) ? "0" : String(dice.int(1...99_999))
            let text = "\(dice.chance(0.3) ? "-" : "")\(whole).\(digits)"
            let value = try #require(Double(text))
            #expect(try JSONText("[\(text)]").canonical.description == "[\(value)]")
        }
    }

    @Test(arguments: 1...200) func `random texts have one canonical form, however it is reached`(
        _ seed: UInt64
    ) throws {
        var dice = SeededGenerator(seed: seed)
        for _ in 0..<50 { try expectSame(Self.text(&dice, depth: 4)) }
    }

    private static let strings = [
        "a", "b", "ab", "", "ä", "\\u0061", "\\n", "\\\"", "x\\/y", "\\ud83d\\ude00", "😀", "\u{7F}", "zz",
        "_id", "Z",
    ]

    private static func text(_ dice: inout SeededGenerator, depth: Int) -> String {
        let space = dice.chance(0.2) ? " \n" : ""
        switch dice.int(0...(depth > 0 ? 8 : 5)) {
        case 0: return "\(space)null"
        case 1: return "true\(space)"
        case 2: return String(dice.int(-100_000...100_000))
        case 3:
            return
                "\(dice.int(0...999)).\(dice.int(0...99_999))\(dice.chance(0.2) ? "e\(dice.int(-30...30))" : "")"
        case 4, 5: return "\"\(strings[dice.int(0...strings.count - 1)])\""
        case 6:
            let items = (0..<dice.int(0...4)).map { _ in text(&dice, depth: depth - 1) }
            return "[\(space)\(items.joined(separator: ","))]"
        default:
            let members = (0..<dice.int(0...6)).map { _ in
                "\"\(strings[dice.int(0...strings.count - 1)])\"\(space):\(text(&dice, depth: depth - 1))"
            }
            return "{\(members.joined(separator: ",\(space)"))}"
        }
    }
}
