/// A part of a regular expression.
indirect enum RegularExpressionNode: Sendable {
    case empty
    case set(ScalarSet)
    case assertion(RegularExpressionProgram.Assertion)
    case backreference(Int)
    case sequence([RegularExpressionNode])
    case either([RegularExpressionNode])
    case group(Int, RegularExpressionNode)
    case look(isNegated: Bool, RegularExpressionNode)
    /// `maximum`: nil without a limit.
    case repeated(RegularExpressionNode, minimum: Int, maximum: Int?, isLazy: Bool)

    /// Whether it may match the empty text.
    var canBeEmpty: Bool {
        switch self {
        case .empty, .assertion, .backreference, .look: true
        case .set: false
        case .sequence(let nodes): nodes.allSatisfy(\.canBeEmpty)
        case .either(let nodes): nodes.contains(where: \.canBeEmpty)
        case .group(_, let inner): inner.canBeEmpty
        case .repeated(let inner, let minimum, _, _): minimum == 0 || inner.canBeEmpty
        }
    }
}

/// Parses a pattern of a dialect.
struct RegularExpressionParser {
    private struct Options {
        var ignoresCase = false
        var isMultiline = false
        var dotTakesLineEnds = false
    }

    private let dialect: RegularExpressionDialect
    private let pattern: [Unicode.Scalar]
    private var index = 0
    private var options = Options()
    private var depth = 0
    private var count = 0
    /// The number of groups, the whole pattern included; 0 if the dialect does not number them.
    private(set) var groups: Int
    private(set) var needsBacktracking = false

    init(_ pattern: String, _ dialect: RegularExpressionDialect) {
        self.dialect = dialect
        self.pattern = Array(pattern.unicodeScalars)
        groups = dialect.features.contains(.numberedGroups) ? 1 : 0
    }

    mutating func parseAll() throws(RegularExpressionError) -> RegularExpressionNode {
        let node = try parseAlternatives()
        guard index == pattern.count else { throw malformed("a closing parenthesis without an opening one") }
        return node
    }

    private func malformed(_ what: String) -> RegularExpressionError {
        RegularExpressionError(
            message: "The regular expression is not valid: \(what) at character \(index + 1)"
        )
    }

    private func has(_ feature: RegularExpressionDialect.Features) -> Bool {
        dialect.features.contains(feature)
    }

    private var next: Unicode.Scalar? { index < pattern.count ? pattern[index] : nil }

    private mutating func consume(_ scalar: Unicode.Scalar) -> Bool {
        guard next == scalar else { return false }
        index += 1
        return true
    }

    private mutating func consumeNext(orMissing what: String) throws(RegularExpressionError) -> Unicode.Scalar
    {
        guard let scalar = next else { throw malformed(what) }
        index += 1
        return scalar
    }

    // MARK: Structure

    private mutating func parseAlternatives() throws(RegularExpressionError) -> RegularExpressionNode {
        var nodes = [try parseSequence()]
        while consume("|") { nodes.append(try parseSequence()) }
        return nodes.count == 1 ? nodes[0] : .either(nodes)
    }

    private mutating func parseSequence() throws(RegularExpressionError) -> RegularExpressionNode {
        var nodes: [RegularExpressionNode] = []
        while let scalar = next, scalar != "|", scalar != ")" {
            count += 1
            guard count <= dialect.maximumSteps else { throw .isTooLarge }
            nodes.append(try parseQuantifier(of: try parseAtom(), isGroup: scalar == "("))
        }
        return nodes.count == 1 ? nodes[0] : .sequence(nodes)
    }

    private mutating func parseAtom() throws(RegularExpressionError) -> RegularExpressionNode {
        guard let scalar = next else { return .empty }
        index += 1
        switch scalar {
        case "(": return try parseGroup()
        case "[": return .set(try parseBrackets())
        case ".": return .set(options.dotTakesLineEnds ? .any : dialect.anyInLine)
        case "^": return .assertion(options.isMultiline ? .startOfLine : .start)
        case "$": return .assertion(options.isMultiline ? .endOfLine : dialect.atEnd)
        case "\\": return try parseEscape()
        case "*", "+", "?": break
        case "{" where !has(.literalBraces): break
        default: return .set(cased(.one(scalar)))
        }
        index -= 1
        throw malformed("nothing to repeat")
    }

    private func cased(_ set: ScalarSet) -> ScalarSet {
        var set = set
        set.ignoresCase = options.ignoresCase
        return set
    }

    private mutating func parseQuantifier(of atom: RegularExpressionNode, isGroup: Bool)
        throws(RegularExpressionError)
        -> RegularExpressionNode
    {
        let isAssertion = if case .assertion = atom { true } else { false }
        // One that cannot be repeated leaves the quantifier without anything to repeat.
        if isAssertion, !isGroup, !has(.repeatedAssertions) { return atom }
        guard let (minimum, maximum) = try parseCounts() else { return atom }
        let isLazy = consume("?")
        // A second one would make the first possessive, or repeat a repetition.
        if !isLazy, next == "+" || next == "*" { throw malformed("nothing to repeat") }
        if !isLazy, next == "{", has(.literalBraces), braces() != nil { throw malformed("nothing to repeat") }
        if isAssertion { return minimum == 0 ? .empty : atom }
        return .repeated(atom, minimum: minimum, maximum: maximum, isLazy: isLazy)
    }

    private mutating func parseCounts() throws(RegularExpressionError) -> (Int, Int?)? {
        switch next {
        case "*": index += 1; return (0, nil)
        case "+": index += 1; return (1, nil)
        case "?": index += 1; return (0, 1)
        case "{":
            guard let (minimum, maximum, end) = braces() else {
                if has(.literalBraces) { return nil }
                throw malformed("the braces have no numbers")
            }
            guard minimum <= maximum ?? minimum else {
                throw malformed("the numbers are the wrong way round")
            }
            guard max(minimum, maximum ?? 0) <= dialect.maximumCount else {
                throw malformed("too many repetitions")
            }
            index = end
            return (minimum, maximum)
        default: return nil
        }
    }

    /// The counts in braces, and the place after them; nil if there are none.
    private func braces() -> (Int, Int?, end: Int)? {
        guard let close = pattern[index...].firstIndex(of: "}") else { return nil }
        let parts = pattern[(index + 1)..<close].split(separator: ",", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let minimum = Self.decimal(parts[0]) else { return nil }
        if parts.count == 1 { return (minimum, minimum, close + 1) }
        if parts[1].isEmpty { return (minimum, nil, close + 1) }
        return Self.decimal(parts[1]).map { (minimum, $0, close + 1) }
    }

    /// A number of decimal digits; a very large one for those that are too many.
    private static func decimal(_ digits: ArraySlice<Unicode.Scalar>) -> Int? {
        guard !digits.isEmpty, digits.allSatisfy({ ("0"..."9").contains($0) }) else { return nil }
        return Int(String(String.UnicodeScalarView(digits))) ?? .max
    }

    // MARK: Groups

    private mutating func parseGroup() throws(RegularExpressionError) -> RegularExpressionNode {
        depth += 1
        defer { depth -= 1 }
        guard depth <= dialect.maximumDepth else { throw malformed("groups are nested too deeply") }
        let outer = options
        if consume("?") {
            switch next {
            case ":": index += 1
            case "=" where has(.lookahead), "!" where has(.lookahead):
                needsBacktracking = true
                let isNegated = next == "!"
                index += 1
                let inner = try parseInner()
                options = outer
                return .look(isNegated: isNegated, inner)
            case "P", "<", "'":
                guard has(.groupNames), consumeName() else { throw malformed("an unknown kind of group") }
            default:
                guard has(.options), consumeOptions() else { throw malformed("an unknown kind of group") }
                // They are valid until the end of the group around them.
                if consume(")") { return .empty }
                guard consume(":") else { throw malformed("an unknown kind of group") }
            }
        } else if has(.numberedGroups) {
            let group = groups
            groups += 1
            let inner = try parseInner()
            options = outer
            return .group(group, inner)
        }
        let node = try parseInner()
        options = outer
        return node
    }

    private mutating func parseInner() throws(RegularExpressionError) -> RegularExpressionNode {
        let node = try parseAlternatives()
        guard consume(")") else { throw malformed("a closing parenthesis is missing") }
        return node
    }

    /// The name of a group; lookbehind begins like one.
    private mutating func consumeName() -> Bool {
        _ = consume("P")
        guard let open = next, open == "<" || open == "'" else { return false }
        index += 1
        let close: Unicode.Scalar = open == "<" ? ">" : "'"
        let start = index
        while let scalar = next, scalar != close, ScalarSet.word.contains(scalar) { index += 1 }
        return index > start && consume(close)
    }

    private mutating func consumeOptions() -> Bool {
        var value = true
        while let scalar = next, scalar != ")", scalar != ":" {
            index += 1
            switch scalar {
            case "i": options.ignoresCase = value
            case "m": options.isMultiline = value
            case "s": options.dotTakesLineEnds = value
            case "-" where value: value = false
            default: return false
            }
        }
        return next != nil
    }

    // MARK: Escapes

    private mutating func parseEscape() throws(RegularExpressionError) -> RegularExpressionNode {
        switch next {
        case "b": index += 1; return .assertion(.wordBoundary)
        case "B": index += 1; return .assertion(.noWordBoundary)
        case "A" where has(.anchorEscapes): index += 1; return .assertion(.start)
        case "z" where has(.anchorEscapes): index += 1; return .assertion(.end)
        case "Z" where has(.anchorEscapes): index += 1; return .assertion(.lastLine)
        case let digit? where has(.backreferences) && ("1"..."9").contains(digit):
            let digits = pattern[index...].prefix { ("0"..."9").contains($0) }
            guard let group = Self.decimal(digits), group < groups else {
                throw malformed("a reference to a group that does not exist")
            }
            index += digits.count
            needsBacktracking = true
            return .backreference(group)
        default: return .set(cased(try parseEscapedSet()))
        }
    }

    /// Parses the rest of an escape that has the same meaning within brackets.
    private mutating func parseEscapedSet() throws(RegularExpressionError) -> ScalarSet {
        let scalar = try consumeNext(orMissing: "the pattern ends in a backslash")
        switch scalar {
        case "d": return .digit
        case "D": return ScalarSet.digit.negated
        case "w": return .word
        case "W": return ScalarSet.word.negated
        case "s": return .space
        case "S": return ScalarSet.space.negated
        case "n": return .one("\n")
        case "r": return .one("\r")
        case "t": return .one("\t")
        case "f": return .one("\u{0C}")
        case "v": return .one("\u{0B}")
        case "e" where has(.longEscapes): return .one("\u{1B}")
        case "0" where has(.controlEscapes): return .one("\0")
        case "c" where has(.controlEscapes):
            let letter = try consumeNext(orMissing: "a letter is missing")
            guard letter.isASCII else { throw malformed("a letter is missing") }
            return .one(Unicode.Scalar(UInt8(letter.value & 31)))
        case "x" where has(.longEscapes) && next == "{":
            guard let close = pattern[index...].firstIndex(of: "}") else {
                throw malformed("a closing brace is missing")
            }
            index += 1
            defer { index += 1 }
            return try parseHexadecimal(digits: close - index)
        case "x": return try parseHexadecimal(digits: 2)
        case "u": return try parseHexadecimal(digits: 4)
        case "0"..."9" where !has(.backreferences): throw malformed("an unknown escape")
        case "A"..."Z", "a"..."z": throw malformed("an unknown escape")
        default: return .one(scalar)
        }
    }

    private mutating func parseHexadecimal(digits: Int) throws(RegularExpressionError) -> ScalarSet {
        let text = pattern[index...].prefix(digits)
        guard text.count == digits, text.allSatisfy(\.properties.isASCIIHexDigit),
            let scalar = UInt32(String(String.UnicodeScalarView(text)), radix: 16).flatMap(
                Unicode.Scalar.init
            )
        else { throw malformed("hexadecimal digits are missing") }
        index += digits
        return .one(scalar)
    }

    // MARK: Brackets

    private mutating func parseBrackets() throws(RegularExpressionError) -> ScalarSet {
        let missing = "a closing bracket is missing"
        var set = ScalarSet(isNegated: consume("^"), ignoresCase: options.ignoresCase)
        var isFirst = has(.literalBrackets)
        while true {
            let scalar = try consumeNext(orMissing: missing)
            if scalar == "]", !isFirst { return set }
            isFirst = false
            let low = try parseMember(scalar)
            guard low.single != nil || !has(.literalHyphens), next == "-", index + 1 < pattern.count,
                pattern[index + 1] != "]"
            else {
                set.formUnion(low)
                continue
            }
            index += 1
            let high = try parseMember(try consumeNext(orMissing: missing))
            if let first = low.single, let last = high.single {
                guard first <= last else { throw malformed("a range is the wrong way round") }
                set.ranges.append(first.value...last.value)
            } else {
                guard has(.literalHyphens) else { throw malformed("a class of characters ends no range") }
                for part in [low, .one("-"), high] { set.formUnion(part) }
            }
        }
    }

    private mutating func parseMember(_ scalar: Unicode.Scalar) throws(RegularExpressionError) -> ScalarSet {
        if scalar == "[", next == ":" {
            let close = pattern[index...].firstIndex(of: "]") ?? index
            guard close > index + 1, pattern[close - 1] == ":" else {
                if has(.literalBrackets) { return .one(scalar) }
                throw malformed("an unknown class")
            }
            let name = String(String.UnicodeScalarView(pattern[(index + 1)..<(close - 1)]))
            guard let set = dialect.classes[name] else { throw malformed("an unknown class") }
            index = close + 1
            return set
        }
        guard scalar == "\\" else { return .one(scalar) }
        if consume("b") { return .one("\u{08}") }
        return try parseEscapedSet()
    }
}
