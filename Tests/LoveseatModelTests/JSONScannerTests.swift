import Foundation
import LoveseatModel
import LoveseatTesting
import Testing

@Suite struct JSONScannerTests {
    static let valid = [
        "0", "-0", "1", "-1.5e+10", "1E5", "0.1", "true", "false", "null", "\"\"", "[]", "{}", " [ 1 , 2 ] ",
        "{\"a\":{\"b\":[null,{}]}}", "\"\\u0041\\n\\/\\\"\\\\\"", "\"\\ud83d\\udecb\"",
        "\"\u{1F6CB}é\u{7f}\"",
        "[[[[[]]]]]", "\t\r\n1", "123456789012345678901234567890", "1e999", "{\"a\":1,\"a\":2}",
        "[1,\"x\",{},[]]",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\tbbbbbbbbbbbbbbbb\"", "{\"\":0}",
        "\"\u{FFFF}\u{10FFFF}\"",
    ]

    static let invalid: [(String, JSONError.Reason, Int)] = [
        ("", .truncated, 0), (" ", .truncated, 1), ("{", .truncated, 1), ("[1", .truncated, 2),
        ("\"abc", .truncated, 4), ("tru", .truncated, 3), ("-", .truncated, 1), ("1.", .truncated, 2),
        ("1e", .truncated, 2), ("\"\\", .truncated, 2), ("\"\\u12", .truncated, 5), ("{\"a\"", .truncated, 4),
        ("{\"a\":", .truncated, 5), ("[1,", .truncated, 3), ("\"\\ud800", .truncated, 7),
        ("01", .invalidNumber, 1), ("-01", .invalidNumber, 2), ("1.x", .invalidNumber, 2),
        ("1ex", .invalidNumber, 2),
        ("-x", .invalidNumber, 1), ("[1,]", .unexpectedByte, 3), ("[,1]", .unexpectedByte, 1),
        ("{\"a\":1,}", .unexpectedByte, 7), ("{a:1}", .unexpectedByte, 1), ("{\"a\" 1}", .unexpectedByte, 5),
        ("{\"a\":1 \"b\":2}", .unexpectedByte, 7), ("[1}", .unexpectedByte, 2),
        ("{\"a\":1]", .unexpectedByte, 6),
        ("NaN", .unexpectedByte, 0), ("nan", .unexpectedByte, 1), ("Infinity", .unexpectedByte, 0),
        ("+1", .unexpectedByte, 0), (".5", .unexpectedByte, 0), ("'a'", .unexpectedByte, 0),
        ("trux", .unexpectedByte, 3),
        ("1 2", .trailingBytes, 2), ("{}x", .trailingBytes, 2), ("[]]", .trailingBytes, 2),
        ("1.0.0", .trailingBytes, 3),
        ("\"a\u{01}\"", .controlCharacter, 2), ("\"a\n\"", .controlCharacter, 2),
        ("\"\\x\"", .invalidEscape, 2),
        ("\"\\u12g4\"", .invalidEscape, 5), ("\"\\ud800\"", .truncated, 8),
        ("\"\\ud800abcdef\"", .loneSurrogate, 1),
        ("\"\\udc00\"", .loneSurrogate, 1), ("\"\\ud800\\u0041\"", .loneSurrogate, 1),
        ("/**/1", .unexpectedByte, 0),
        ("\u{FEFF}1", .unexpectedByte, 0),
    ]

    @Test(arguments: valid) func `accepts what the grammar allows`(text: String) throws {
        #expect(try JSONText(text).description == text)
    }

    @Test(arguments: invalid)
    func `refuses what the grammar forbids, and says where`(
        text: String,
        reason: JSONError.Reason,
        offset: Int
    ) {
        do {
            _ = try JSONText(text)
            Issue.record("accepted \(text)")
        } catch {
            #expect(error.code == .invalidJSON)
            #expect(error.jsonError == JSONError(reason, at: offset))
        }
    }

    static let badUTF8: [([UInt8], Int)] = [
        ([0xC0, 0x80], 1), ([0xC1, 0xBF], 1), ([0xE0, 0x80, 0x80], 2), ([0xED, 0xA0, 0x80], 2),
        ([0xF5, 0x80, 0x80, 0x80], 1),
        ([0xF4, 0x90, 0x80, 0x80], 2), ([0x80], 1), ([0xFF], 1), ([0xE2, 0x28, 0xA1], 2),
        ([0xF0, 0x8F, 0xBF, 0xBF], 2),
        ([0xC3, 0x22], 2),
    ]

    @Test(arguments: badUTF8) func `refuses bytes that are not UTF-8`(bytes: [UInt8], offset: Int) {
        expectJSONError(JSONError(.invalidUTF8, at: offset)) {
            try JSONText([0x22] + bytes + [0x22, 0x20, 0x20])
        }
    }

    @Test func `depth and size are bounded`() throws {
        let deep = { (depth: Int) in
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(throws: Never.self) { try JSONText(deep(128)) }
        expectJSONError(JSONError(.tooDeep, at: 128)) { try JSONText(deep(129)) }
        expectJSONError(JSONError(.tooDeep, at: 128)) {
            try JSONText(String(repeating: "[", count: 1_000_000))
        }
        expectJSONError(JSONError(.tooLarge, at: 3)) {
            try JSONText("[1]x", limits: JSONLimits(maximumBytes: 3))
        }
    }

    @Test func `duplicate keys: the last one wins, unless they are refused`() throws {
        let text = "{\"a\":1,\"b\":0,\"\\u0061\":2}"
        #expect(try JSONValue(parsing: text)["a"]?.int == 2)
        #expect(try JSONElement(parsing: Array(text.utf8))["a"]?.int == 2)
        #expect(
            JSONText(canonical: try JSONElement(parsing: Array(text.utf8))).description == "{\"a\":2,\"b\":0}"
        )
        expectJSONError(JSONError(.duplicateKey, at: 13)) {
            try JSONText(text, limits: JSONLimits(refusesDuplicateKeys: true))
        }
        #expect(throws: Never.self) {
            try JSONText("[{\"a\":1},{\"a\":1}]", limits: JSONLimits(refusesDuplicateKeys: true))
        }
    }

    @Test func `every truncation of a document is refused within its bytes`() throws {
        let text = Array("{\"k\":[1.5e3,\"\\u00e9\\ud83d\\udecb é\",true,null,{\"x\":-7}]}".utf8)
        for count in 0..<text.count {
            let error = #expect(throws: LoveseatError.self) { try JSONText(Array(text.prefix(count))) }?
                .jsonError
            #expect(error?.reason == .truncated, "\(count)")
            #expect(error?.offset ?? .max <= count)
        }
    }

    @Test func `any bytes end in a value or an error`() {
        var generator = SeededGenerator(seed: 7)
        let alphabet =
            Array("{}[]\",:\\u0dn19.eE-+ truefalsnu\u{e9}".utf8) + [0x00, 0x80, 0xC3, 0xED, 0xF0, 0xFF]
        for _ in 0..<200_000 {
            let count = Int.random(in: 0..<24, using: &generator)
            let bytes = (0..<count).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            guard let text = try? JSONText(bytes) else { continue }
            let canonical = text.canonical
            #expect(canonical.canonical == canonical)
            #expect(JSONElement(text).value == JSONElement(canonical).value)
        }
    }

    @Test func `agrees with Foundation on random values`() throws {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<2_000 {
            let value = Self.random(depth: 3, using: &generator)
            let text = JSONText(canonical: .array([value]))
            let object = try JSONSerialization.jsonObject(with: Data(text.bytes))
            let again = try JSONSerialization.data(
                withJSONObject: object,
                options: [.sortedKeys, .withoutEscapingSlashes]
            )
            let ours = try JSONText(Array(again))
            #expect(Self.loosely(JSONElement(ours).value) == Self.loosely(.array([value])))
        }
    }

    static func random(depth: Int, using generator: inout SeededGenerator) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &generator) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &generator))
        case 2:
            return JSONValue(
                Int64.random(in: .min ... .max, using: &generator)
                    >> Int.random(in: 0..<60, using: &generator)
            )
        case 3: return JSONValue(Double.random(in: -1e6...1e6, using: &generator))
        case 4, 5:
            let scalars = ["a", "é", "🛋", "\"", "\\", "\n", "\u{7f}", "\u{1}", "/", "ß", "z"]
            let count = Int.random(in: 0..<12, using: &generator)
            return .string((0..<count).map { _ in scalars.randomElement(using: &generator) ?? "" }.joined())
        case 6:
            return .array(
                (0..<Int.random(in: 0..<5, using: &generator)).map { _ in
                    random(depth: depth - 1, using: &generator)
                }
            )
        default:
            let keys = (0..<Int.random(in: 0..<5, using: &generator)).map { "key\($0)" }
            return .object(JSONObject(keys.map { ($0, random(depth: depth - 1, using: &generator)) }) { $1 })
        }
    }

    /// Foundation does not tell 1.0 from 1.
    static func loosely(_ value: JSONValue) -> JSONValue {
        switch value {
        case .number(let number): number.exactly(Int64.self).map { JSONValue($0) } ?? value
        case .array(let items): .array(items.map(loosely))
        case .object(let members): .object(members.mapValues(loosely))
        default: value
        }
    }
}
