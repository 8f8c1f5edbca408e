package import LoveseatText

/// Translates a search from the language's syntax, which is FTS4's enhanced one, to FTS5's.
package struct FullTextQuery {
    private let text: [Character]
    private var position = 0
    private let columns: [String]
    private let tokenizer: FullTextTokenizer
    private var depth = 0

    /// Matches no document.
    package static let nothing = "\"\""

    /// Translates a search.
    ///
    /// The names of the index's columns are `c0`, `c1` and so on in FTS5. Throws ``QueryRunError`` if the text is malformed.
    package static func translate(
        _ text: String,
        columns: [String],
        tokenizer: FullTextTokenizer
    ) throws(QueryRunError) -> String {
        var query = FullTextQuery(text: Array(text), columns: columns, tokenizer: tokenizer)
        guard let result = try query.disjunction() else {
            guard query.position >= query.text.count else { throw query.malformed() }
            return nothing
        }
        guard query.position >= query.text.count else { throw query.malformed() }
        return result
    }

    private init(text: [Character], columns: [String], tokenizer: FullTextTokenizer) {
        self.text = text
        self.columns = columns
        self.tokenizer = tokenizer
    }

    private func malformed() -> QueryRunError {
        QueryRunError(
            "malformed MATCH expression: [\(String(text))]: check quotes, parentheses and operators"
        )
    }

    private mutating func skipSpace() {
        while position < text.count, text[position].isWhitespace { position += 1 }
    }

    /// Reads an operator in capitals.
    private mutating func consume(_ word: String) -> Bool {
        skipSpace()
        let end = position + word.count
        guard end <= text.count, String(text[position..<end]) == word else { return false }
        guard end == text.count || text[end].isWhitespace || text[end] == "(" || text[end] == "\"" else {
            return false
        }
        position = end
        return true
    }

    private var isAtOperator: Bool {
        var copy = self
        return copy.consume("OR") || copy.consume("AND") || copy.consume("NOT")
    }

    private func joined(_ one: String?, _ other: String?, _ name: String) -> String? {
        guard let one else { return other }
        guard let other else { return one }
        return "(\(one) \(name) \(other))"
    }

    private mutating func disjunction() throws(QueryRunError) -> String? {
        depth += 1
        defer { depth -= 1 }
        guard depth < 12 else { throw malformed() }
        var result = try conjunction()
        while consume("OR") {
            guard hasOperand else { throw malformed() }
            result = joined(result, try conjunction(), "OR")
        }
        return result
    }

    private var hasOperand: Bool {
        var copy = self
        copy.skipSpace()
        return copy.position < text.count && text[copy.position] != ")" && !copy.isAtOperator
    }

    private mutating func conjunction() throws(QueryRunError) -> String? {
        var result = try difference()
        while true {
            if consume("AND") {
                guard hasOperand else { throw malformed() }
            } else if !hasOperand {
                return result
            }
            result = joined(result, try difference(), "AND")
        }
    }

    private mutating func difference() throws(QueryRunError) -> String? {
        if isAtOperator { throw malformed() }
        var result = try operand()
        while consume("NOT") {
            guard hasOperand else { throw malformed() }
            let other = try operand()
            result = result.flatMap { one in other.map { "(\(one) NOT \($0))" } ?? one }
        }
        return result
    }

    private mutating func operand() throws(QueryRunError) -> String? {
        skipSpace()
        guard position < text.count else { return nil }
        if text[position] == "(" {
            position += 1
            let result = try disjunction()
            skipSpace()
            guard position < text.count, text[position] == ")" else { throw malformed() }
            position += 1
            return result
        }
        var near: [String] = []
        var distance = 10
        guard let first = try phrase() else { return nil }
        near.append(first.text)
        var isNear = false
        while let next = nearDistance() {
            guard let other = try phrase() else { throw malformed() }
            isNear = true
            distance = next
            near.append(other.text)
        }
        let column = first.column.map { "{c\($0)} : " } ?? ""
        if isNear { return "\(column)NEAR(\(near.joined(separator: " ")), \(distance))" }
        return column + first.text
    }

    /// Reads `NEAR` or `NEAR/3`.
    private mutating func nearDistance() -> Int? {
        let mark = position
        skipSpace()
        guard position + 4 <= text.count, String(text[position..<position + 4]) == "NEAR" else {
            position = mark
            return nil
        }
        position += 4
        var distance = 10
        if position < text.count, text[position] == "/" {
            var digits = ""
            position += 1
            while position < text.count, text[position].isASCII, text[position].isNumber {
                digits.append(text[position])
                position += 1
            }
            guard let value = Int(digits) else {
                position = mark
                return nil
            }
            distance = min(value, 100_000)
        }
        guard position >= text.count || text[position].isWhitespace || text[position] == "\"" else {
            position = mark
            return nil
        }
        return distance
    }

    /// Reads a word or a quoted phrase, with its column; nil if no word is in it.
    private mutating func phrase() throws(QueryRunError) -> (text: String, column: Int?)? {
        while true {
            skipSpace()
            guard position < text.count, text[position] != "(", text[position] != ")" else { return nil }
            if isAtOperator { return nil }
            let column = column()
            var isFirst = false
            if position < text.count, text[position] == "^" {
                isFirst = true
                position += 1
            }
            guard position < text.count else { return nil }
            let written: String
            var isPrefix = false
            if text[position] == "\"" {
                guard let close = text[(position + 1)...].firstIndex(of: "\"") else { throw malformed() }
                written = String(text[(position + 1)..<close])
                position = close + 1
                isPrefix = written.last == "*"
            } else {
                let start = position
                while position < text.count, !text[position].isWhitespace, !"()\"".contains(text[position]) {
                    position += 1
                }
                written = String(text[start..<position])
                isPrefix = written.last == "*"
            }
            let words = words(written, isPrefix: isPrefix)
            // A phrase without a word counts as if it were not there.
            guard !words.isEmpty else { continue }
            let quoted = "\"" + words.joined(separator: " ") + "\""
            return ((isFirst ? "^ " : "") + quoted + (isPrefix ? " *" : ""), column)
        }
    }

    /// The words that count, as they were written: FTS5 passes them to the tokenizer again.
    private func words(_ written: String, isPrefix: Bool) -> [String] {
        let bytes = Array(written.utf8)
        var tokens = bytes.withUnsafeBufferPointer { tokenizer.tokens($0) }
        if isPrefix {
            // The last word is a prefix, which is not a stop word.
            let all = bytes.withUnsafeBufferPointer { tokenizer.tokens($0, isPrefix: true) }
            guard let last = all.last else { return [] }
            tokens.removeAll { $0.end > last.start }
            tokens.append(last)
        }
        return tokens.map { String(decoding: bytes[$0.start..<$0.end], as: UTF8.self) }
    }

    /// Reads `name:` if the index has such a column.
    private mutating func column() -> Int? {
        for (index, name) in columns.enumerated() where !name.isEmpty {
            let end = position + name.count
            if end < text.count, text[end] == ":",
                String(text[position..<end]).lowercased() == name.lowercased()
            {
                position = end + 1
                return index
            }
        }
        return nil
    }
}
