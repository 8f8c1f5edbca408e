import Loveseat

/// A position in a text, as all messages about files name it: the line and the column, both from 1. A column is a Unicode scalar.
struct TextPosition: CustomStringConvertible {
    private(set) var line: Int
    private(set) var column: Int

    /// The beginning of a line.
    init(line: Int) { (self.line, column) = (line, 1) }

    /// The position of a byte in a text. `start`: where the text begins.
    init(
        of offset: Int,
        in text: some Sequence<UInt8>,
        startingAt start: TextPosition = TextPosition(line: 1)
    ) {
        self = start
        advance(over: text.prefix(offset))
    }

    /// Moves behind some bytes.
    mutating func advance(over bytes: some Sequence<UInt8>) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                (line, column) = (line + 1, 1)
            } else if byte & 0xC0 != 0x80 {
                // The other bytes of a character do not count.
                column += 1
            }
        }
    }

    var description: String { "line \(line), column \(column)" }
}

extension LoveseatError {
    /// The error for text of a file that is not JSON. `start`: where in the file the text begins.
    init(
        _ error: JSONError,
        in text: some Sequence<UInt8>,
        of file: String,
        startingAt start: TextPosition = TextPosition(line: 1)
    ) {
        let position = TextPosition(of: error.offset, in: text, startingAt: start)
        self.init(.invalidJSON, "\(file), \(position): invalid JSON: \(error.reason.rawValue)")
    }
}
