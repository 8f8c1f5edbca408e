import Loveseat

/// A condition on a document: `address.city = "Oslo"`, `n >= 3`, `photo` (is there), `!photo` (is not).
struct FilterExpression: Hashable {
    private enum Comparison: String, CaseIterable {
        // The longer ones first, since they begin like the shorter.
        case notEqual = "!="
        case same = "=="
        case atMost = "<="
        case atLeast = ">="
        case equal = "="
        case less = "<"
        case greater = ">"
    }

    private let path: PropertyPath
    private let comparison: Comparison?
    private let operand: JSONValue
    private let isNegated: Bool

    init?(_ text: String) {
        if let found = Self.comparison(in: text) {
            guard let path = Self.path(Self.trimmed(text[..<found.range.lowerBound])) else { return nil }
            let value = Self.trimmed(text[found.range.upperBound...])
            guard let operand = Self.operand(value) else { return nil }
            self.path = path
            comparison = found.comparison
            self.operand = operand
            isNegated = false
        } else {
            let text = Self.trimmed(text[...])
            isNegated = text.hasPrefix("!")
            let name = isNegated ? Self.trimmed(text.dropFirst()) : text
            // Without a comparison, several words or parentheses are a mistake rather than a part of a property's name.
            guard !name.contains(where: { $0.isWhitespace || "'()".contains($0) }),
                let path = Self.path(name)
            else { return nil }
            self.path = path
            comparison = nil
            operand = .null
        }
    }

    /// Reads a property. A quotation mark is part of something that is not one condition.
    private static func path(_ text: String) -> PropertyPath? {
        text.contains("\"") || text.hasPrefix("!") ? nil : PropertyPath(text)
    }

    /// Reads a JSON value, or a text without quotation marks. Text that looks like more than one condition is refused, since it would be
    /// compared as a text.
    private static func operand(_ text: String) -> JSONValue? {
        if let value = try? JSONValue(parsing: text) { return value }
        let words = text.split(separator: " ").map { $0.lowercased() }
        let isText = !text.isEmpty && !text.contains { "\"'=<>!&|()".contains($0) }
        return isText && !words.contains("and") && !words.contains("or") ? .string(text) : nil
    }

    private static func comparison(in text: String) -> (comparison: Comparison, range: Range<String.Index>)? {
        let found = Comparison.allCases.compactMap { comparison in
            text.firstRange(of: comparison.rawValue).map { (comparison, $0) }
        }
        return found.min { $0.1.lowerBound < $1.1.lowerBound }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while text.first?.isWhitespace == true { text = text.dropFirst() }
        while text.last?.isWhitespace == true { text = text.dropLast() }
        return String(text)
    }

    func matches(_ document: Document) -> Bool {
        let found = path.value(in: document.element)?.value
        guard let comparison else { return (found == nil) == isNegated }
        guard let found else { return comparison == .notEqual }
        switch comparison {
        case .equal, .same: return Self.isEqual(found, operand)
        case .notEqual: return !Self.isEqual(found, operand)
        case .less: return Self.isLess(found, operand)
        case .greater: return Self.isLess(operand, found)
        case .atMost: return Self.isLess(found, operand) || Self.isEqual(found, operand)
        case .atLeast: return Self.isLess(operand, found) || Self.isEqual(found, operand)
        }
    }

    private static func isEqual(_ lhs: JSONValue, _ rhs: JSONValue) -> Bool {
        if let lhs = lhs.double, let rhs = rhs.double { return lhs == rhs }
        return lhs == rhs
    }

    /// Numbers and strings have an order; other values have none.
    private static func isLess(_ lhs: JSONValue, _ rhs: JSONValue) -> Bool {
        if let lhs = lhs.double, let rhs = rhs.double { return lhs < rhs }
        if let lhs = lhs.string, let rhs = rhs.string { return ExactText(lhs) < ExactText(rhs) }
        return false
    }
}
