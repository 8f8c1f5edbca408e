/// A part of a regular expression.
indirect enum RegularExpressionNode: Sendable {
    case empty
    case set(ScalarSet)
    case assertion(RegularExpression.Assertion)
    case sequence([RegularExpressionNode])
    case either(RegularExpressionNode, RegularExpressionNode)
    /// `maximum`: nil without a limit.
    case repeated(RegularExpressionNode, minimum: Int, maximum: Int?)
}

/// Parses a pattern. Every function returns nil for syntax that is not valid or not supported.
struct RegularExpressionParser {
    private static let maximumDepth = 50
    private static let maximumCount = 1_000

    private struct Options {
        var ignoresCase = false
        var isMultiline = false
        var dotTakesLineEnds = false
    }

    private let pattern: [Unicode.Scalar]
    private var index = 0
    private var options = Options()
    private var depth = 0

    init(_ pattern: String) { self.pattern = Array(pattern.unicodeScalars) }

    mutating func parseAll() -> RegularExpressionNode? {
        guard let node = parseAlternatives(), index == pattern.count else { return nil }
        return node
    }

    private var next: Unicode.Scalar? { index < pattern.count ? pattern[index] : nil }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard next == scalar else { return false }
        index += 1
        return true
    }

    private mutating func takeNext() -> Unicode.Scalar? {
        defer { index += 1 }
        return next
    }

    private mutating func parseAlternatives() -> RegularExpressionNode? {
        guard let first = parseSequence() else { return nil }
        guard take("|") else { return first }
        guard let rest = parseAlternatives() else { return nil }
        return .either(first, rest)
    }

    private mutating func parseSequence() -> RegularExpressionNode? {
        var nodes: [RegularExpressionNode] = []
        while let scalar = next, scalar != "|", scalar != ")" {
            guard let atom = parseAtom(), let node = parseQuantifiers(of: atom) else { return nil }
            nodes.append(node)
        }
        return nodes.count == 1 ? nodes[0] : .sequence(nodes)
    }

    private mutating func parseQuantifiers(of atom: RegularExpressionNode) -> RegularExpressionNode? {
        let counts: (Int, Int?)
        switch next {
        case "*": counts = (0, nil)
        case "+": counts = (1, nil)
        case "?": counts = (0, 1)
        case "{":
            guard let (found, end) = braces() else { return atom }
            guard found.0 <= Self.maximumCount,
                found.1.map({ found.0 <= $0 && $0 <= Self.maximumCount }) ?? true
            else { return nil }
            counts = found
            index = end - 1
        default: return atom
        }
        index += 1
        // Whether a quantifier is lazy makes no difference to whether there is a match. A possessive one does.
        if !take("?"), next == "+" || next == "*" || (next == "{" && braces() != nil) { return nil }
        if case .assertion = atom { return counts.0 == 0 ? .empty : atom }
        return .repeated(atom, minimum: counts.0, maximum: counts.1)
    }

    /// The counts in braces, and the place after them; nil if they are an ordinary text.
    private func braces() -> ((Int, Int?), Int)? {
        guard let close = pattern[index...].firstIndex(of: "}") else { return nil }
        let parts = pattern[(index + 1)..<close].split(separator: ",", omittingEmptySubsequences: false)
        let texts = parts.map { part in String(String.UnicodeScalarView(part)) }
        guard (1...2).contains(texts.count), let minimum = Int(texts[0]), minimum >= 0,
            texts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        if texts.count == 1 { return ((minimum, minimum), close + 1) }
        if texts[1].isEmpty { return ((minimum, nil), close + 1) }
        return Int(texts[1]).map { ((minimum, $0), close + 1) }
    }

    private mutating func parseAtom() -> RegularExpressionNode? {
        guard let scalar = takeNext() else { return nil }
        switch scalar {
        case "(": return parseGroup()
        case "[": return parseClass().map { .set($0) }
        case ".": return .set(options.dotTakesLineEnds ? .any : .anyInLine)
        case "^": return .assertion(options.isMultiline ? .startOfLine : .start)
        case "$": return .assertion(options.isMultiline ? .endOfLine : .lastLine)
        case "*", "+", "?": return nil
        case "\\": return parseEscape()
        default: return .set(cased(.one(scalar)))
        }
    }

    private func cased(_ set: ScalarSet) -> ScalarSet {
        var set = set
        set.ignoresCase = options.ignoresCase
        return set
    }

    private mutating func parseGroup() -> RegularExpressionNode? {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.maximumDepth else { return nil }
        let outer = options
        if take("?") {
            switch next {
            case ":": index += 1
            case "P", "<", "'":
                guard takeName() else { return nil }
            default:
                guard parseOptions() else { return nil }
                // They are valid until the end of the group around them.
                if take(")") { return .empty }
                guard take(":") else { return nil }
            }
        }
        guard let node = parseAlternatives(), take(")") else { return nil }
        options = outer
        return node
    }

    /// The name of a group; lookbehind begins like one.
    private mutating func takeName() -> Bool {
        _ = take("P")
        guard let open = takeNext(), open == "<" || open == "'", next != "=", next != "!" else {
            return false
        }
        let close: Unicode.Scalar = open == "<" ? ">" : "'"
        let start = index
        while let scalar = next, scalar != close, ScalarSet.word.contains(scalar) { index += 1 }
        return index > start && take(close)
    }

    private mutating func parseOptions() -> Bool {
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

    private mutating func parseEscape() -> RegularExpressionNode? {
        switch next {
        case "b": index += 1; return .assertion(.wordBoundary)
        case "B": index += 1; return .assertion(.noWordBoundary)
        case "A": index += 1; return .assertion(.start)
        case "z": index += 1; return .assertion(.end)
        case "Z": index += 1; return .assertion(.lastLine)
        default: return parseEscapedSet().map { .set(cased($0)) }
        }
    }

    /// Parses the rest of an escape that has the same meaning within a class.
    private mutating func parseEscapedSet() -> ScalarSet? {
        guard let scalar = takeNext() else { return nil }
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
        case "e": return .one("\u{1B}")
        case "x": return take("{") ? parseNumber(until: "}") : parseNumber(digits: 2)
        case "u": return parseNumber(digits: 4)
        default:
            // Other letters and digits are not supported, or have no meaning.
            return ScalarSet.word.contains(scalar) && scalar != "_" ? nil : .one(scalar)
        }
    }

    private mutating func parseNumber(digits: Int) -> ScalarSet? {
        guard index + digits <= pattern.count else { return nil }
        defer { index += digits }
        return Self.scalar(pattern[index..<(index + digits)])
    }

    private mutating func parseNumber(until end: Unicode.Scalar) -> ScalarSet? {
        guard let close = pattern[index...].firstIndex(of: end) else { return nil }
        defer { index = close + 1 }
        return Self.scalar(pattern[index..<close])
    }

    private static func scalar(_ digits: ArraySlice<Unicode.Scalar>) -> ScalarSet? {
        let text = String(String.UnicodeScalarView(digits))
        guard text.utf8.first != UInt8(ascii: "+"), text.utf8.first != UInt8(ascii: "-") else { return nil }
        return UInt32(text, radix: 16).flatMap { Unicode.Scalar($0) }.map { .one($0) }
    }

    private static let named: [String: ScalarSet] = [
        "alpha": ScalarSet(ranges: [0x41...0x5A, 0x61...0x7A]), "digit": .digit, "space": .space,
        "alnum": ScalarSet(ranges: [0x30...0x39, 0x41...0x5A, 0x61...0x7A]), "word": .word,
        "upper": ScalarSet(ranges: [0x41...0x5A]), "lower": ScalarSet(ranges: [0x61...0x7A]),
        "punct": ScalarSet(ranges: [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E]),
        "xdigit": ScalarSet(ranges: [0x30...0x39, 0x41...0x46, 0x61...0x66]),
    ]

    private mutating func parseClass() -> ScalarSet? {
        let isNegated = take("^")
        var ranges: [ClosedRange<UInt32>] = []
        var isFirst = true
        while let scalar = takeNext() {
            if scalar == "]", !isFirst {
                var set = ScalarSet(ranges: ranges, isNegated: isNegated)
                set.ignoresCase = options.ignoresCase
                return set
            }
            isFirst = false
            guard let low = parseMember(scalar) else { return nil }
            guard next == "-", index + 1 < pattern.count, pattern[index + 1] != "]" else {
                ranges += Self.flattened(low)
                continue
            }
            index += 1
            guard let end = takeNext(), let high = parseMember(end), let first = Self.single(low),
                let last = Self.single(high), first <= last
            else { return nil }
            ranges.append(first...last)
        }
        return nil
    }

    private mutating func parseMember(_ scalar: Unicode.Scalar) -> ScalarSet? {
        if scalar == "[", next == ":" {
            guard let close = pattern[index...].firstIndex(of: "]"), close > index + 1,
                pattern[close - 1] == ":"
            else { return .one(scalar) }
            let name = String(String.UnicodeScalarView(pattern[(index + 1)..<(close - 1)]))
            index = close + 1
            return Self.named[name]
        }
        guard scalar == "\\" else { return .one(scalar) }
        if take("b") { return .one("\u{08}") }
        return parseEscapedSet()
    }

    private static func single(_ set: ScalarSet) -> UInt32? {
        guard !set.isNegated, set.ranges.count == 1, set.ranges[0].count == 1 else { return nil }
        return set.ranges[0].lowerBound
    }

    /// The ranges of a set, which may be a negated one.
    private static func flattened(_ set: ScalarSet) -> [ClosedRange<UInt32>] {
        guard set.isNegated else { return set.ranges }
        var ranges: [ClosedRange<UInt32>] = []
        var low: UInt32 = 0
        for range in set.ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if range.lowerBound > low { ranges.append(low...(range.lowerBound - 1)) }
            low = range.upperBound + 1
        }
        if low <= 0x10_FFFF { ranges.append(low...0x10_FFFF) }
        return ranges
    }
}
