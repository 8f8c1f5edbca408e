/// A path as SQL contains it: `.address.zip`, `.tags[0]`, `.list[-1]`, or nothing for the whole value.
///
/// Dots, brackets and backslashes in keys have a backslash in front. The same path has always the same text, because
/// SQLite uses an index only for the very same expression.
package struct QueryPath: Hashable, Sendable {
    package enum Step: Hashable, Sendable {
        /// The key's bytes, in UTF-8.
        case key([UInt8])
        case index(Int)
    }

    package let steps: [Step]

    package init(_ steps: some Sequence<PathStep>) {
        self.steps = steps.map { step in
            switch step {
            case .key(let key): .key(Array(key.utf8))
            case .index(let index): .index(index)
            }
        }
    }

    /// Reads the text of a path; nil if it is not one.
    package init?(_ text: UnsafeBufferPointer<UInt8>) {
        var steps: [Step] = []
        var position = 0
        while position < text.count {
            if text[position] == UInt8(ascii: ".") {
                position += 1
                var key: [UInt8] = []
                while position < text.count, text[position] != UInt8(ascii: "."),
                    text[position] != UInt8(ascii: "[")
                {
                    if text[position] == UInt8(ascii: "\\"), position + 1 < text.count { position += 1 }
                    key.append(text[position])
                    position += 1
                }
                steps.append(.key(key))
            } else if text[position] == UInt8(ascii: "["),
                let close = text[position...].firstIndex(of: UInt8(ascii: "]")),
                let index = Int(String(decoding: text[(position + 1)..<close], as: UTF8.self))
            {
                steps.append(.index(index))
                position = close + 1
            } else {
                return nil
            }
        }
        self.steps = steps
    }

    /// The text of the path.
    package var text: String {
        var bytes: [UInt8] = []
        for step in steps {
            switch step {
            case .key(let key):
                bytes.append(UInt8(ascii: "."))
                for byte in key {
                    if byte == UInt8(ascii: ".") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "\\") {
                        bytes.append(UInt8(ascii: "\\"))
                    }
                    bytes.append(byte)
                }
            case .index(let index): bytes.append(contentsOf: "[\(index)]".utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension PathStep {
    /// Reads a path as apps write it, `address.zip` or `tags[0]`; nil if it is not one.
    package static func steps(_ text: String) -> [PathStep]? {
        var steps: [PathStep] = []
        var key = ""
        var isInKey = true
        // By scalars: a dot with a combining accent behind it is one `Character`.
        var rest = Substring(text).unicodeScalars
        while let scalar = rest.first {
            switch scalar {
            case "\\":
                rest.removeFirst()
                guard let next = rest.first else { return nil }
                key.unicodeScalars.append(next)
            case ".":
                if isInKey { steps.append(.key(key)) }
                key = ""
                isInKey = true
            case "[":
                if isInKey, !(key.isEmpty && steps.isEmpty) { steps.append(.key(key)) }
                key = ""
                isInKey = false
                guard let close = rest.firstIndex(of: "]"),
                    let index = Int(String(rest[rest.index(after: rest.startIndex)..<close]))
                else { return nil }
                steps.append(.index(index))
                rest = rest[close...]
            default:
                guard isInKey else { return nil }
                key.unicodeScalars.append(scalar)
            }
            rest.removeFirst()
        }
        if isInKey { steps.append(.key(key)) }
        return steps
    }
}
