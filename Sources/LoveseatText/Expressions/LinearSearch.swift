import LoveseatAssertions

/// Follows all paths through a pattern at once: at each position, every step in every state at most once, the preferred path first.
struct LinearSearch {
    /// A path at a step, or waiting there for the next scalar.
    private struct Path {
        var step: Int
        /// The slots that it has written.
        var slots: [Int]
        /// How many loops it has entered since it has moved: the innermost of those around the step.
        var fresh = 0

        func next(_ step: Int) -> Path {
            var path = self
            path.step = step
            return path
        }
    }

    /// The maximum number of steps that all paths together visit: a second or two.
    private static let maximumVisits = 50_000_000

    private let steps: [RegularExpressionProgram.Step]
    private let firstScalar: Unicode.Scalar?
    private let text: [Unicode.Scalar]
    private let slots: Int
    /// The number of states in which a path may be at a step. Whether there is any match does not depend on empty iterations.
    private let states: Int
    private var waiting: [Path] = []
    private var stack: [Path] = []
    /// The round in which each step was visited last, in each state.
    private var visited: [Int]
    private var round = 1
    private var visits = 0
    private var found: [Int]?

    /// Creates a search that keeps a number of slots. With 0, any match will do.
    init(program: RegularExpressionProgram, text: [Unicode.Scalar], slots: Int) {
        steps = program.steps
        firstScalar = program.firstScalar
        self.text = text
        self.slots = slots
        states = slots == 0 ? 1 : program.maximumLoops + 1
        visited = Array(repeating: 0, count: program.steps.count * states)
    }

    /// Returns the slots of the first match.
    mutating func firstMatch(from start: Int) throws(RegularExpressionError) -> [Int]? {
        let none = Array(repeating: -1, count: slots)
        var position = start
        while true {
            if found == nil {
                if waiting.isEmpty, let firstScalar {
                    guard let next = text[position...].firstIndex(of: firstScalar) else { return nil }
                    position = next
                }
                // A match may begin anywhere. One that began before is preferred.
                try follow(Path(step: 0, slots: none), at: position)
            }
            if found != nil, slots == 0 || waiting.isEmpty { return found }
            guard position < text.count else { return found }
            try advance(over: text[position], to: position + 1)
            position += 1
        }
    }

    private mutating func advance(over scalar: Unicode.Scalar, to position: Int)
        throws(RegularExpressionError)
    {
        let paths = waiting
        waiting.removeAll(keepingCapacity: true)
        round += 1
        for path in paths {
            let fits =
                switch steps[path.step] {
                case .scalar(let wanted): wanted == scalar
                case .set(let set): set.contains(scalar)
                default: false
                }
            // The paths after one that has found a match are not preferred to it.
            if fits, try follow(Path(step: path.step + 1, slots: path.slots), at: position) { return }
        }
    }

    /// Follows a path, and those that branch off, over the steps that take no scalar. Returns whether one of them reaches a match.
    @discardableResult
    private mutating func follow(_ path: Path, at position: Int) throws(RegularExpressionError) -> Bool {
        stack.append(path)
        while var path = stack.popLast() {
            guard visited[path.step * states + path.fresh] != round else { continue }
            visited[path.step * states + path.fresh] = round
            visits += 1
            guard visits < Self.maximumVisits else { throw .takesTooLong }
            switch steps[path.step] {
            case .found:
                found = path.slots
                stack.removeAll(keepingCapacity: true)
                return true
            case .scalar, .set: waiting.append(path)
            case .jump(let next): stack.append(path.next(next))
            case .split(let one, let other):
                stack.append(path.next(other))
                stack.append(path.next(one))
            case .assert(let assertion):
                guard assertion.holds(at: position, in: text) else { continue }
                stack.append(path.next(path.step + 1))
            case .save(let slot):
                if slot < slots { path.slots[slot] = position }
                stack.append(path.next(path.step + 1))
            case .enter:
                if slots > 0 { path.fresh += 1 }
                stack.append(path.next(path.step + 1))
            case .progress: if path.fresh == 0 { stack.append(path.next(path.step + 1)) }
            case .backreference, .look:
                impossible("a pattern that needs backtracking is searched in linear time")
            }
        }
        return false
    }
}
