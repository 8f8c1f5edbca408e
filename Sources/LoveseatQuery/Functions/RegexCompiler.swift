/// Translates a pattern into instructions.
struct RegexCompiler {
    private let pattern: [Unicode.Scalar]
    private var position = 0
    private var program: [QueryRegex.Instruction] = []
    private var groups = 1
    private var extraSlots = 0
    private var depth = 0
    private let slotBase: Int

    static let digits: [ClosedRange<UInt32>] = [0x30...0x39]
    static let word: [ClosedRange<UInt32>] = [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A]
    static let space: [ClosedRange<UInt32>] = [
        0x09...0x0D, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x2028...0x2029,
        0x202F...0x202F,
        0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
    ]

    private static let classes: [String: [ClosedRange<UInt32>]] = [
        "alpha": [0x41...0x5A, 0x61...0x7A], "digit": digits, "d": digits, "w": word,
        "alnum": [0x30...0x39, 0x41...0x5A, 0x61...0x7A], "upper": [0x41...0x5A], "lower": [0x61...0x7A],
        "space": [0x09...0x0D, 0x20...0x20], "s": space, "blank": [0x09...0x09, 0x20...0x20],
        "punct": [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E],
        "xdigit": [0x30...0x39, 0x41...0x46, 0x61...0x66],
        "cntrl": [0x00...0x1F, 0x7F...0x7F], "print": [0x20...0x7E], "graph": [0x21...0x7E],
    ]

    init(_ pattern: [Unicode.Scalar]) {
        self.pattern = pattern
        // As many groups as there are parentheses, at most.
        slotBase = (pattern.filter { $0 == "(" }.count + 1) * 2
    }

    mutating func compile() throws(QueryRunError) -> ([QueryRegex.Instruction], slots: Int, groups: Int) {
        program = [.save(0)]
        try alternatives()
        guard position == pattern.count else {
            throw malformed("a closing parenthesis without an opening one")
        }
        program.append(.save(1))
        program.append(.match)
        return (program, slotBase + extraSlots, groups)
    }

    private func malformed(_ what: String) -> QueryRunError {
        QueryRunError("The regular expression is not valid: \(what) at character \(position + 1)")
    }

    private var next: Unicode.Scalar? { position < pattern.count ? pattern[position] : nil }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard next == scalar else { return false }
        position += 1
        return true
    }

    private mutating func alternatives() throws(QueryRunError) {
        depth += 1
        defer { depth -= 1 }
        guard depth < 100 else { throw malformed("groups are nested too deeply") }
        var ends: [Int] = []
        var start = program.count
        try sequence()
        while take("|") {
            // The sequence that was compiled last becomes the first choice.
            insert(.split(start + 1, program.count + 2), at: start)
            ends.append(program.count)
            program.append(.jump(0))
            start = program.count
            try sequence()
        }
        for end in ends { program[end] = .jump(program.count) }
    }

    /// Puts an instruction in front of others, whose targets move.
    private mutating func insert(_ new: QueryRegex.Instruction, at place: Int) {
        func shift(_ target: Int) -> Int { target >= place ? target + 1 : target }
        for index in place..<program.count {
            switch program[index] {
            case .split(let first, let second): program[index] = .split(shift(first), shift(second))
            case .jump(let target): program[index] = .jump(shift(target))
            case .look(let isNegated, let after):
                program[index] = .look(isNegated: isNegated, after: shift(after))
            default: break
            }
        }
        program.insert(new, at: place)
    }

    private mutating func sequence() throws(QueryRunError) {
        while let scalar = next, scalar != "|", scalar != ")" {
            let start = program.count
            guard try atom() else { continue }
            try quantifier(from: start)
            guard program.count < QueryRegex.maximumInstructions else {
                throw malformed("the pattern is too large")
            }
        }
    }

    /// Reads one item; false if it cannot be repeated.
    private mutating func atom() throws(QueryRunError) -> Bool {
        guard let scalar = next else { return false }
        position += 1
        switch scalar {
        case "^": program.append(.start)
        case "$": program.append(.end)
        case "(":
            try group()
            return true
        case "[":
            try bracket()
            return true
        case ".":
            program.append(.any)
            return true
        case "\\": return try escape()
        case "*", "+", "?", "{":
            position -= 1
            throw malformed("nothing to repeat")
        default:
            program.append(.scalar(scalar))
            return true
        }
        return false
    }

    private mutating func group() throws(QueryRunError) {
        if take("?") {
            if take(":") {
                try alternatives()
            } else {
                let isNegated = next == "!"
                guard take("=") || take("!") else { throw malformed("an unknown kind of group") }
                let place = program.count
                program.append(.look(isNegated: isNegated, after: 0))
                try alternatives()
                program.append(.match)
                program[place] = .look(isNegated: isNegated, after: program.count)
            }
        } else {
            let group = groups
            groups += 1
            program.append(.save(group * 2))
            try alternatives()
            program.append(.save(group * 2 + 1))
        }
        guard take(")") else { throw malformed("a closing parenthesis is missing") }
    }

    private mutating func number() -> Int? {
        var value: Int?
        while let scalar = next, ("0"..."9").contains(scalar) {
            value = min((value ?? 0) * 10 + Int(scalar.value - 0x30), 100_000)
            position += 1
        }
        return value
    }

    private mutating func quantifier(from start: Int) throws(QueryRunError) {
        var least = 0
        var most: Int?
        switch next {
        case "*": break
        case "+": least = 1
        case "?": most = 1
        case "{":
            position += 1
            guard let count = number() else { throw malformed("a number is missing") }
            least = count
            most = count
            if take(",") { most = number() }
            guard next == "}" else { throw malformed("a closing brace is missing") }
            guard most ?? least >= least else { throw malformed("the numbers are the wrong way round") }
        default: return
        }
        position += 1
        let isLazy = take("?")
        try repeated(from: start, least, most, isLazy)
    }

    private mutating func repeated(from start: Int, _ least: Int, _ most: Int?, _ isLazy: Bool)
        throws(QueryRunError)
    {
        let body = Array(program[start...])
        guard body.count * max(least, most ?? 0) < QueryRegex.maximumInstructions else {
            throw malformed("too many repetitions")
        }
        program.removeSubrange(start...)
        for _ in 0..<least { append(body, from: start) }
        if let most {
            var splits: [Int] = []
            for _ in least..<most {
                splits.append(program.count)
                program.append(.jump(0))
                append(body, from: start)
            }
            for split in splits {
                program[split] = isLazy ? .split(program.count, split + 1) : .split(split + 1, program.count)
            }
        } else {
            let slot = slotBase + extraSlots
            extraSlots += 1
            let split = program.count
            program.append(.jump(0))
            program.append(.save(slot))
            append(body, from: start)
            program.append(.progress(slot))
            program.append(.jump(split))
            program[split] = isLazy ? .split(program.count, split + 1) : .split(split + 1, program.count)
        }
    }

    /// Appends a copy of instructions that stood elsewhere.
    private mutating func append(_ body: [QueryRegex.Instruction], from start: Int) {
        let distance = program.count - start
        for instruction in body {
            switch instruction {
            case .split(let first, let second): program.append(.split(first + distance, second + distance))
            case .jump(let target): program.append(.jump(target + distance))
            case .look(let isNegated, let after):
                program.append(.look(isNegated: isNegated, after: after + distance))
            default: program.append(instruction)
            }
        }
    }

    // MARK: Characters

    private mutating func escape() throws(QueryRunError) -> Bool {
        guard let scalar = next else { throw malformed("the pattern ends in a backslash") }
        position += 1
        switch scalar {
        case "b", "B":
            program.append(.wordBoundary(scalar == "b"))
            return false
        case "d", "D", "w", "W", "s", "S":
            let name = String(Character(scalar)).lowercased()
            program.append(.set(Self.classes[name] ?? [], isNegated: scalar.properties.isUppercase))
        case "1"..."9":
            position -= 1
            let group = number() ?? 0
            guard group < groups else { throw malformed("a reference to a group that does not exist") }
            program.append(.backreference(group))
        default:
            position -= 1
            program.append(.scalar(try escapedScalar()))
        }
        return true
    }

    private mutating func escapedScalar() throws(QueryRunError) -> Unicode.Scalar {
        guard let scalar = next else { throw malformed("the pattern ends in a backslash") }
        position += 1
        switch scalar {
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "f": return "\u{0C}"
        case "v": return "\u{0B}"
        case "0": return "\0"
        case "x": return try hexadecimal(2)
        case "u": return try hexadecimal(4)
        case "c":
            guard let letter = next, letter.isASCII else { throw malformed("a letter is missing") }
            position += 1
            return Unicode.Scalar(UInt8(letter.value & 31))
        default:
            if scalar.isASCII, scalar.properties.isAlphabetic { throw malformed("an unknown escape") }
            return scalar
        }
    }

    private mutating func hexadecimal(_ count: Int) throws(QueryRunError) -> Unicode.Scalar {
        guard position + count <= pattern.count,
            let value = UInt32(
                String(String.UnicodeScalarView(pattern[position..<position + count])),
                radix: 16
            ),
            let scalar = Unicode.Scalar(value)
        else { throw malformed("hexadecimal digits are missing") }
        position += count
        return scalar
    }

    private mutating func bracket() throws(QueryRunError) {
        let isNegated = take("^")
        var ranges: [ClosedRange<UInt32>] = []
        while true {
            guard let scalar = next else { throw malformed("a closing bracket is missing") }
            if scalar == "]" {
                position += 1
                break
            }
            guard let low = try bracketItem(&ranges) else { continue }
            guard next == "-", position + 1 < pattern.count, pattern[position + 1] != "]" else {
                ranges.append(low.value...low.value)
                continue
            }
            position += 1
            guard let high = try bracketItem(&ranges) else {
                ranges.append(contentsOf: [low.value...low.value, 0x2D...0x2D])
                continue
            }
            guard low <= high else { throw malformed("a range is the wrong way round") }
            ranges.append(low.value...high.value)
        }
        program.append(.set(ranges, isNegated: isNegated))
    }

    /// Reads one character of a bracket; nil if it was a class, which is added.
    private mutating func bracketItem(_ ranges: inout [ClosedRange<UInt32>]) throws(QueryRunError) -> Unicode
        .Scalar?
    {
        guard let scalar = next else { throw malformed("a closing bracket is missing") }
        position += 1
        if scalar == "[", next == ":" {
            guard
                let close = pattern[position...].indices.first(where: {
                    $0 + 1 < pattern.count && $0 > position && pattern[$0] == ":" && pattern[$0 + 1] == "]"
                }),
                let named = Self.classes[String(String.UnicodeScalarView(pattern[(position + 1)..<close]))]
            else { throw malformed("an unknown class") }
            ranges.append(contentsOf: named)
            position = close + 2
            return nil
        }
        guard scalar == "\\" else { return scalar }
        guard let escaped = next else { throw malformed("the pattern ends in a backslash") }
        switch escaped {
        case "b":
            position += 1
            return "\u{08}"
        case "d", "w", "s", "D", "W", "S":
            position += 1
            let set = Self.classes[String(Character(escaped)).lowercased()] ?? []
            if escaped.properties.isUppercase {
                var low: UInt32 = 0
                for range in set {
                    if range.lowerBound > low { ranges.append(low...(range.lowerBound - 1)) }
                    low = range.upperBound + 1
                }
                ranges.append(low...0x10_FFFF)
            } else {
                ranges.append(contentsOf: set)
            }
            return nil
        default: return try escapedScalar()
        }
    }
}
