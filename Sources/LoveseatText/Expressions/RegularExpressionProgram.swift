/// The steps of a regular expression.
struct RegularExpressionProgram: Sendable {
    enum Step: Sendable {
        case scalar(Unicode.Scalar)
        case set(ScalarSet)
        case assert(Assertion)
        /// Tries the first place, then the second.
        case split(Int, Int)
        case jump(Int)
        /// Writes the position into a slot.
        case save(Int)
        /// Begins an iteration of a loop, and writes the position into a slot.
        case enter(Int)
        /// Ends an iteration. The path goes on only if the position has moved since it entered the loop.
        case progress(Int)
        case backreference(Int)
        /// The steps from here to the place have to match, or must not.
        case look(isNegated: Bool, after: Int)
        case found
    }

    enum Assertion: Sendable {
        case start, end, endOfLine, startOfLine, lastLine, wordBoundary, noWordBoundary

        func holds(at position: Int, in text: [Unicode.Scalar]) -> Bool {
            let count = text.count
            switch self {
            case .start: return position == 0
            case .startOfLine: return position == 0 || text[position - 1] == "\n"
            case .end: return position == count
            case .lastLine: return position == count || (position == count - 1 && text[position] == "\n")
            case .endOfLine: return position == count || text[position] == "\n"
            case .wordBoundary, .noWordBoundary:
                let before = position > 0 && ScalarSet.word.contains(text[position - 1])
                let after = position < count && ScalarSet.word.contains(text[position])
                return (before != after) == (self == .wordBoundary)
            }
        }
    }

    private(set) var steps: [Step] = []
    /// Two for each group, the whole match first, and one for each loop whose iterations can be empty.
    private(set) var slots: Int
    /// How deeply such loops are nested.
    private(set) var maximumLoops = 0
    private var loops = 0
    private let maximumSteps: Int
    let needsBacktracking: Bool

    init(_ node: RegularExpressionNode, groups: Int, needsBacktracking: Bool, maximumSteps: Int)
        throws(RegularExpressionError)
    {
        slots = groups * 2
        self.maximumSteps = maximumSteps
        self.needsBacktracking = needsBacktracking
        if groups > 0 { steps.append(.save(0)) }
        try compile(node)
        if groups > 0 { steps.append(.save(1)) }
        steps.append(.found)
    }

    /// The scalar with which every match begins, if the pattern says so at once.
    var firstScalar: Unicode.Scalar? {
        for step in steps {
            switch step {
            case .save: continue
            case .scalar(let scalar): return scalar
            default: return nil
            }
        }
        return nil
    }

    private mutating func append(_ step: Step) throws(RegularExpressionError) {
        guard steps.count < maximumSteps else { throw .isTooLarge }
        steps.append(step)
    }

    private mutating func compile(_ node: RegularExpressionNode) throws(RegularExpressionError) {
        switch node {
        case .empty: break
        case .set(let set): try append(set.single.map { .scalar($0) } ?? .set(set))
        case .assertion(let assertion): try append(.assert(assertion))
        case .backreference(let group): try append(.backreference(group))
        case .sequence(let nodes): for node in nodes { try compile(node) }
        case .group(let group, let inner):
            try append(.save(group * 2))
            try compile(inner)
            try append(.save(group * 2 + 1))
        case .look(let isNegated, let inner):
            let place = steps.count
            try append(.jump(0))
            try compile(inner)
            try append(.found)
            steps[place] = .look(isNegated: isNegated, after: steps.count)
        case .either(let nodes): try compile(choices: nodes)
        case .repeated(let inner, let minimum, let maximum, let isLazy):
            for _ in 0..<minimum {
                let before = steps.count
                try compile(inner)
                // An empty pattern repeats to an empty one.
                if steps.count == before { return }
            }
            if let maximum {
                try compile(inner, optionally: maximum - minimum, isLazy)
            } else {
                try compile(loop: inner, isLazy)
            }
        }
    }

    private mutating func compile(choices nodes: [RegularExpressionNode]) throws(RegularExpressionError) {
        var ends: [Int] = []
        for node in nodes.dropLast() {
            let split = steps.count
            try append(.jump(0))
            try compile(node)
            ends.append(steps.count)
            try append(.jump(0))
            steps[split] = .split(split + 1, steps.count)
        }
        if let last = nodes.last { try compile(last) }
        for end in ends { steps[end] = .jump(steps.count) }
    }

    private mutating func compile(_ inner: RegularExpressionNode, optionally times: Int, _ isLazy: Bool)
        throws(RegularExpressionError)
    {
        var splits: [Int] = []
        for _ in 0..<times {
            splits.append(steps.count)
            try append(.jump(0))
            try compile(inner)
        }
        for split in splits { steps[split] = Self.split(split + 1, orTo: steps.count, isLazy) }
    }

    /// An iteration that is empty does not count, or the loop would not end.
    private mutating func compile(loop inner: RegularExpressionNode, _ isLazy: Bool)
        throws(RegularExpressionError)
    {
        let split = steps.count
        let slot = slots
        let canStay = inner.canBeEmpty
        try append(.jump(0))
        if canStay {
            slots += 1
            loops += 1
            maximumLoops = max(maximumLoops, loops)
            try append(.enter(slot))
        }
        try compile(inner)
        if canStay {
            loops -= 1
            try append(.progress(slot))
        }
        try append(.jump(split))
        steps[split] = Self.split(split + 1, orTo: steps.count, isLazy)
    }

    private static func split(_ next: Int, orTo end: Int, _ isLazy: Bool) -> Step {
        isLazy ? .split(end, next) : .split(next, end)
    }
}
