/// Tries one path through a pattern after the other.
///
/// The search keeps a stack of its own and counts its steps, so that no pattern can overflow the thread's stack or run for ever.
struct BacktrackingSearch {
    private struct Path {
        var step: Int
        var position: Int
        var slots: [Int]
    }

    private static let maximumVisits = 10_000_000
    private static let maximumPaths = 1_000_000
    private static let maximumDepth = 32

    private let program: RegularExpressionProgram
    private let text: [Unicode.Scalar]
    private var visits = 0

    init(program: RegularExpressionProgram, text: [Unicode.Scalar]) {
        self.program = program
        self.text = text
    }

    /// Returns the slots of the first match.
    mutating func firstMatch(from start: Int) throws(RegularExpressionError) -> [Int]? {
        let none = Array(repeating: -1, count: program.slots)
        for position in start...text.count {
            let path = Path(step: 0, position: position, slots: none)
            if let found = try match(path, depth: 0) { return found }
        }
        return nil
    }

    private mutating func match(_ first: Path, depth: Int) throws(RegularExpressionError) -> [Int]? {
        guard depth < Self.maximumDepth else { throw .isNestedTooDeeply }
        var stack = [first]
        while var path = stack.popLast() {
            thread: while true {
                visits += 1
                guard visits < Self.maximumVisits, stack.count < Self.maximumPaths else {
                    throw .takesTooLong
                }
                switch program.steps[path.step] {
                case .found: return path.slots
                case .scalar(let scalar):
                    guard path.position < text.count, text[path.position] == scalar else { break thread }
                    path.position += 1
                case .set(let set):
                    guard path.position < text.count, set.contains(text[path.position]) else { break thread }
                    path.position += 1
                case .assert(let assertion):
                    guard assertion.holds(at: path.position, in: text) else { break thread }
                case .split(let one, let other):
                    stack.append(Path(step: other, position: path.position, slots: path.slots))
                    path.step = one
                    continue thread
                case .jump(let next):
                    path.step = next
                    continue thread
                case .save(let slot), .enter(let slot): path.slots[slot] = path.position
                case .progress(let slot): if path.slots[slot] == path.position { break thread }
                case .backreference(let group):
                    // A group that took no part matches the empty text.
                    if let range = RegularExpression.Match(slots: path.slots)[group] {
                        guard text[path.position...].starts(with: text[range]) else { break thread }
                        path.position += range.count
                    }
                case .look(let isNegated, let after):
                    var inner = path
                    inner.step += 1
                    let found = try match(inner, depth: depth + 1)
                    guard (found == nil) == isNegated else { break thread }
                    if let found, !isNegated { path.slots = found }
                    path.step = after
                    continue thread
                }
                path.step += 1
            }
        }
        return nil
    }
}
