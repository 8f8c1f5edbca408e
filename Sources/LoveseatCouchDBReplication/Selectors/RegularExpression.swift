/// A regular expression of `$regex`, in the syntax of PCRE. It tells only whether a text contains a match.
///
/// A search follows all paths through the pattern at once (Thompson's construction), so its time is proportional to the lengths of the text
/// and of the pattern. Constructs that need backtracking are refused: references to groups, lookaround, atomic groups.
package struct RegularExpression: Sendable {
    /// A step of the program.
    enum Step: Sendable {
        case take(ScalarSet)
        case assert(Assertion)
        /// Continues at both steps.
        case split(Int, Int)
        case jump(Int)
        case found
    }

    enum Assertion: Sendable {
        case start, end, endOfLine, startOfLine, lastLine, wordBoundary, noWordBoundary
    }

    private static let maximumPattern = 256
    private static let maximumSteps = 2_000

    private let program: [Step]

    /// Returns nil if the pattern is not valid, not supported, or too long.
    package init?(_ pattern: String) {
        guard pattern.utf8.count <= Self.maximumPattern else { return nil }
        var parser = RegularExpressionParser(pattern)
        guard let node = parser.parseAll() else { return nil }
        var program: [Step] = []
        guard Self.compile(node, into: &program) else { return nil }
        program.append(.found)
        self.program = program
    }

    private static func compile(_ node: RegularExpressionNode, into program: inout [Step]) -> Bool {
        guard program.count < maximumSteps else { return false }
        switch node {
        case .empty: return true
        case .set(let set): program.append(.take(set))
        case .assertion(let assertion): program.append(.assert(assertion))
        case .sequence(let nodes): return nodes.allSatisfy { compile($0, into: &program) }
        case .either(let one, let other):
            let split = program.count
            program.append(.jump(0))
            guard compile(one, into: &program) else { return false }
            let jump = program.count
            program.append(.jump(0))
            program[split] = .split(split + 1, program.count)
            guard compile(other, into: &program) else { return false }
            program[jump] = .jump(program.count)
        case .repeated(let inner, let minimum, let maximum):
            for _ in 0..<minimum {
                let before = program.count
                guard compile(inner, into: &program) else { return false }
                // An empty pattern repeats to an empty one.
                if program.count == before { return true }
            }
            if let maximum {
                var splits: [Int] = []
                for _ in minimum..<max(minimum, maximum) {
                    splits.append(program.count)
                    program.append(.jump(0))
                    guard compile(inner, into: &program) else { return false }
                }
                for split in splits { program[split] = .split(split + 1, program.count) }
            } else {
                let split = program.count
                program.append(.jump(0))
                guard compile(inner, into: &program) else { return false }
                program.append(.jump(split))
                program[split] = .split(split + 1, program.count)
            }
        }
        return program.count <= maximumSteps
    }

    /// Whether the text contains a match.
    package func matches(_ text: String) -> Bool {
        let scalars = Array(text.unicodeScalars)
        var threads = Threads(count: program.count)
        for position in 0...scalars.count {
            // A match may begin anywhere.
            if follow(0, at: position, in: scalars, &threads) { return true }
            guard position < scalars.count else { break }
            let waiting = threads.takeAll()
            for step in waiting {
                guard case .take(let set) = program[step], set.contains(scalars[position]) else { continue }
                if follow(step + 1, at: position + 1, in: scalars, &threads) { return true }
            }
        }
        return false
    }

    /// The steps that wait for the next scalar, each once.
    private struct Threads {
        private var waiting: [Int] = []
        private var seen: [Int]
        private var round = 1
        var stack: [Int] = []

        init(count: Int) { seen = Array(repeating: 0, count: count) }

        mutating func visit(_ step: Int) -> Bool {
            guard seen[step] != round else { return false }
            seen[step] = round
            return true
        }

        mutating func wait(at step: Int) { waiting.append(step) }

        /// Returns the waiting steps, and begins the next position.
        mutating func takeAll() -> [Int] {
            defer { waiting.removeAll(keepingCapacity: true) }
            round += 1
            return waiting
        }
    }

    /// Follows steps that take no scalar. Returns whether they reach a match.
    private func follow(_ first: Int, at position: Int, in text: [Unicode.Scalar], _ threads: inout Threads)
        -> Bool
    {
        threads.stack.append(first)
        while let step = threads.stack.popLast() {
            guard threads.visit(step) else { continue }
            switch program[step] {
            case .found:
                threads.stack.removeAll()
                return true
            case .take: threads.wait(at: step)
            case .jump(let next): threads.stack.append(next)
            case .split(let one, let other): threads.stack += [other, one]
            case .assert(let assertion):
                if Self.holds(assertion, position, text) { threads.stack.append(step + 1) }
            }
        }
        return false
    }

    private static func holds(_ assertion: Assertion, _ position: Int, _ text: [Unicode.Scalar]) -> Bool {
        let count = text.count
        switch assertion {
        case .start: return position == 0
        case .startOfLine: return position == 0 || text[position - 1] == "\n"
        case .end: return position == count
        case .lastLine: return position == count || (position == count - 1 && text[position] == "\n")
        case .endOfLine: return position == count || text[position] == "\n"
        case .wordBoundary, .noWordBoundary:
            let before = position > 0 && ScalarSet.word.contains(text[position - 1])
            let after = position < count && ScalarSet.word.contains(text[position])
            return (before != after) == (assertion == .wordBoundary)
        }
    }
}

/// Some Unicode scalars.
struct ScalarSet: Sendable {
    var ranges: [ClosedRange<UInt32>] = []
    var isNegated = false
    /// Whether upper and lower case are the same.
    var ignoresCase = false

    static let digit = ScalarSet(ranges: [0x30...0x39])
    static let word = ScalarSet(ranges: [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    static let space = ScalarSet(ranges: [0x09...0x0D, 0x20...0x20])
    static let any = ScalarSet(ranges: [0...0x10_FFFF])
    static let anyInLine = ScalarSet(ranges: [0x0A...0x0A], isNegated: true)

    static func one(_ scalar: Unicode.Scalar) -> ScalarSet {
        ScalarSet(ranges: [scalar.value...scalar.value])
    }

    var negated: ScalarSet {
        var set = self
        set.isNegated.toggle()
        return set
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        var isIn = has(scalar)
        if ignoresCase, !isIn {
            let properties = scalar.properties
            isIn = [properties.lowercaseMapping, properties.uppercaseMapping].contains { mapped in
                let scalars = mapped.unicodeScalars
                return scalars.count == 1 && scalars.first.map(has) ?? false
            }
        }
        return isIn != isNegated
    }

    private func has(_ scalar: Unicode.Scalar) -> Bool { ranges.contains { $0.contains(scalar.value) } }
}
