/// Finds the end of a JSON string whose text arrives in pieces.
struct JSONStringBoundary: Sendable {
    private var isEscaped = false

    /// Whether a byte behind the opening quote is the closing one.
    mutating func isEnd(_ byte: UInt8) -> Bool {
        if isEscaped {
            isEscaped = false
            return false
        }
        isEscaped = byte == UInt8(ascii: "\\")
        return byte == UInt8(ascii: "\"")
    }
}

/// Finds the end of a JSON value whose text arrives in pieces.
struct JSONValueBoundary: Sendable {
    private var depth = 0
    private var isInString = false
    private var string = JSONStringBoundary()

    /// Reads bytes from the value's first or next one on.
    ///
    /// - Returns: the index behind the value; nil if it goes on.
    mutating func end(in bytes: [UInt8], from start: Int) -> Int? {
        for index in start..<bytes.count {
            let byte = bytes[index]
            if isInString {
                guard string.isEnd(byte) else { continue }
                isInString = false
                if depth == 0 { return index + 1 }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                // The end of what a number or a word is in.
                if depth == 0 { return index }
                depth -= 1
                if depth == 0 { return index + 1 }
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D: if depth == 0 { return index }
            default: break
            }
        }
        return nil
    }
}
