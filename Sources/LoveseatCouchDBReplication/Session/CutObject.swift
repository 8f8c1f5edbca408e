import LoveseatModel

/// Reads the text of a JSON object of which the end may be missing.
enum CutObject {
    /// The string that a member of the object is; what there is of it if the text ends within it. Nil if there is none.
    static func string(_ name: String, in text: [UInt8]) -> String? {
        guard text.first == UInt8(ascii: "{") else { return nil }
        var depth = 0
        // Where the string begins that is being read.
        var start: Int?
        var boundary = JSONStringBoundary()
        // The last string of the object itself, and whether what follows is its value.
        var (key, isValue): (String?, Bool) = (nil, false)
        for (index, byte) in text.enumerated() {
            if let begin = start {
                guard boundary.isEnd(byte) else { continue }
                start = nil
                guard depth == 1 else { continue }
                let string = try? JSONElement(parsing: Array(text[begin...index])).string
                guard isValue else {
                    key = string
                    continue
                }
                if key.isExactly(name), let string { return string }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): start = index
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ":") where depth == 1: isValue = true
            case UInt8(ascii: ",") where depth == 1: isValue = false
            default: break
            }
        }
        guard let start, depth == 1, isValue, key.isExactly(name) else { return nil }
        return beginning(text[start...])
    }

    /// The longest escaped character, in bytes: a surrogate pair.
    private static let longestCharacter = 12

    /// A string that is cut, without the character that is.
    private static func beginning(_ text: ArraySlice<UInt8>) -> String? {
        for missing in 0..<longestCharacter {
            let whole = Array(text.dropLast(missing)) + [UInt8(ascii: "\"")]
            if let string = try? JSONElement(parsing: whole).string { return string }
        }
        return nil
    }
}
