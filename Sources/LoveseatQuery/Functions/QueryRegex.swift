/// A regular expression in ECMAScript's syntax, matched on Unicode scalars.
///
/// The matcher keeps its own stack and counts its steps, so that no pattern can overflow the thread's stack or run for
/// ever.
struct QueryRegex: Sendable {
    enum Instruction: Sendable {
        case scalar(Unicode.Scalar)
        case any
        case set([ClosedRange<UInt32>], isNegated: Bool)
        /// Tries the first place, then the second.
        case split(Int, Int)
        case jump(Int)
        case save(Int)
        /// Goes on only if the position has moved since the slot was saved.
        case progress(Int)
        case start, end
        case wordBoundary(Bool)
        case backreference(Int)
        /// The instructions from here to the place have to match, or must not.
        case look(isNegated: Bool, after: Int)
        case match
    }

    let program: [Instruction]
    let slots: Int
    let groups: Int

    static let maximumSteps = 10_000_000
    static let maximumInstructions = 20_000

    init(_ pattern: String) throws(QueryRunError) {
        var compiler = RegexCompiler(Array(pattern.unicodeScalars))
        (program, slots, groups) = try compiler.compile()
    }

    /// The first match at or after a position: where the groups begin and end, the whole first.
    func firstMatch(in text: [Unicode.Scalar], from start: Int) throws(QueryRunError) -> [Int?]? {
        var steps = 0
        for position in start...max(start, text.count) where position <= text.count {
            if let found = try run(0, text, position, [Int?](repeating: nil, count: slots), &steps, depth: 0)
            {
                return found
            }
        }
        return nil
    }

    private func isWord(_ text: [Unicode.Scalar], _ position: Int) -> Bool {
        guard text.indices.contains(position) else { return false }
        let value = text[position].value
        return RegexCompiler.word.contains { $0.contains(value) }
    }

    private func run(
        _ entry: Int,
        _ text: [Unicode.Scalar],
        _ start: Int,
        _ initial: [Int?],
        _ steps: inout Int,
        depth: Int
    ) throws(QueryRunError) -> [Int?]? {
        var stack: [(Int, Int, [Int?])] = [(entry, start, initial)]
        while var (place, position, slots) = stack.popLast() {
            thread: while true {
                steps += 1
                guard steps < Self.maximumSteps, stack.count < 1_000_000 else {
                    throw QueryRunError("The regular expression takes too long: simplify its repetitions")
                }
                switch program[place] {
                case .scalar(let scalar):
                    guard position < text.count, text[position] == scalar else { break thread }
                    position += 1
                case .any:
                    guard position < text.count else { break thread }
                    switch text[position].value {
                    case 0x0A, 0x0D, 0x2028, 0x2029: break thread
                    default: position += 1
                    }
                case .set(let ranges, let isNegated):
                    guard position < text.count else { break thread }
                    let value = text[position].value
                    guard ranges.contains(where: { $0.contains(value) }) != isNegated else { break thread }
                    position += 1
                case .split(let first, let second):
                    stack.append((second, position, slots))
                    place = first
                    continue thread
                case .jump(let target):
                    place = target
                    continue thread
                case .save(let slot): slots[slot] = position
                case .progress(let slot): if slots[slot] == position { break thread }
                case .start: if position != 0 { break thread }
                case .end: if position != text.count { break thread }
                case .wordBoundary(let wanted):
                    guard (isWord(text, position - 1) != isWord(text, position)) == wanted else {
                        break thread
                    }
                case .backreference(let group):
                    if let from = slots[group * 2], let to = slots[group * 2 + 1], from <= to {
                        guard text[position...].starts(with: text[from..<to]) else { break thread }
                        position += to - from
                    }
                case .look(let isNegated, let after):
                    guard depth < 32 else {
                        throw QueryRunError("The regular expression is nested too deeply")
                    }
                    let found = try run(place + 1, text, position, slots, &steps, depth: depth + 1)
                    guard (found == nil) == isNegated else { break thread }
                    if let found, !isNegated { slots = found }
                    place = after
                    continue thread
                case .match:
                    return slots
                }
                place += 1
            }
        }
        return nil
    }
}

extension QueryFunctions {
    static func matched(_ id: QueryFunctionID, _ arguments: [QueryValue]) throws(QueryRunError) -> QueryValue
    {
        if let absent = absent(arguments) { return absent }
        guard arguments.count >= 2, let text = arguments[0].string, let pattern = arguments[1].string else {
            return .null
        }
        let regex = try QueryRegex(pattern)
        let scalars = Array(text.unicodeScalars)
        switch id {
        case .regexpLike: return .bool(try regex.firstMatch(in: scalars, from: 0) != nil)
        case .regexpPosition:
            let found = try regex.firstMatch(in: scalars, from: 0)
            return .integer(Int64(found?[0] ?? -1))
        default: break
        }
        guard arguments.count >= 3, let replacement = arguments[2].string else { return .null }
        var left = Int.max
        if arguments.count > 3 {
            guard arguments[3].number != nil else { return .null }
            left = Int(clamping: cut(arguments[3]))
        }
        return .string(try replaced(scalars, regex, Array(replacement.unicodeScalars), &left))
    }

    private static func replaced(
        _ text: [Unicode.Scalar],
        _ regex: QueryRegex,
        _ replacement: [Unicode.Scalar],
        _ left: inout Int
    ) throws(QueryRunError) -> String {
        var result = String.UnicodeScalarView()
        var (position, copied) = (0, 0)
        while left > 0, position <= text.count, let found = try regex.firstMatch(in: text, from: position),
            let from = found[0], let to = found[1]
        {
            left -= 1
            result.append(contentsOf: text[copied..<from])
            expand(replacement, text, found, regex.groups, into: &result)
            copied = to
            position = to
            if from == to {
                if to < text.count { result.append(text[to]) }
                copied = min(text.count, to + 1)
                position = to + 1
            }
        }
        if copied < text.count { result.append(contentsOf: text[copied...]) }
        return String(result)
    }

    /// Writes a replacement with `$1`, `$&` and the like.
    private static func expand(
        _ replacement: [Unicode.Scalar],
        _ text: [Unicode.Scalar],
        _ found: [Int?],
        _ groups: Int,
        into result: inout String.UnicodeScalarView
    ) {
        var index = 0
        while index < replacement.count {
            let scalar = replacement[index]
            index += 1
            guard scalar == "$", index < replacement.count else {
                result.append(scalar)
                continue
            }
            let next = replacement[index]
            switch next {
            case "$":
                result.append("$")
                index += 1
            case "&":
                if let from = found[0], let to = found[1] { result.append(contentsOf: text[from..<to]) }
                index += 1
            case "`":
                if let from = found[0] { result.append(contentsOf: text[..<from]) }
                index += 1
            case "'":
                if let to = found[1] { result.append(contentsOf: text[to...]) }
                index += 1
            case "0"..."9":
                var group = Int(next.value - 0x30)
                index += 1
                if index < replacement.count, ("0"..."9").contains(replacement[index]),
                    group * 10 + Int(replacement[index].value - 0x30) < groups
                {
                    group = group * 10 + Int(replacement[index].value - 0x30)
                    index += 1
                }
                if group < groups, let from = found[group * 2], let to = found[group * 2 + 1], from <= to {
                    result.append(contentsOf: text[from..<to])
                }
            default: result.append(scalar)
            }
        }
    }
}
