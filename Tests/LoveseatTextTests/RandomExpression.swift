import LoveseatText

/// A random regular expression, written in the syntax that both dialects share unless a dialect has more.
indirect enum RandomExpression {
    case scalar(Unicode.Scalar)
    case any
    case set([Unicode.Scalar], isNegated: Bool)
    case start, end
    case wordBoundary(Bool)
    case sequence([RandomExpression])
    case either([RandomExpression])
    case group(Int, RandomExpression)
    case repeated(RandomExpression, minimum: Int, maximum: Int?, isLazy: Bool)
    case look(isNegated: Bool, RandomExpression)
    case backreference(Int)

    static let letters: [Unicode.Scalar] = ["a", "b", "-", "\n"]

    var pattern: String {
        switch self {
        case .scalar(let scalar): String(Character(scalar))
        case .any: "."
        case .set(let scalars, let isNegated):
            (isNegated ? "[^" : "[") + scalars.map { $0 == "-" ? "\\-" : String(Character($0)) }.joined()
                + "]"
        case .start: "^"
        case .end: "$"
        case .wordBoundary(let wanted): wanted ? "\\b" : "\\B"
        case .sequence(let parts): parts.map(\.pattern).joined()
        case .either(let parts): "(?:" + parts.map(\.pattern).joined(separator: "|") + ")"
        case .group(_, let inner): "(" + inner.pattern + ")"
        case .repeated(let inner, let minimum, let maximum, let isLazy):
            "(?:\(inner.pattern)){\(minimum),\(maximum.map(String.init) ?? "")}" + (isLazy ? "?" : "")
        case .look(let isNegated, let inner): (isNegated ? "(?!" : "(?=") + inner.pattern + ")"
        case .backreference(let group): "\\\(group)"
        }
    }
}

/// Makes random expressions.
struct ExpressionMaker {
    var dice: any RandomNumberGenerator
    /// Whether expressions may have what needs backtracking.
    let backtracks: Bool
    private var groups = 0

    init(dice: any RandomNumberGenerator, backtracks: Bool) {
        self.dice = dice
        self.backtracks = backtracks
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &dice) }

    /// Returns a text of up to seven scalars.
    mutating func text() -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<number(0...7) { text.append(scalar()) }
        return String(text)
    }

    mutating func expression() -> RandomExpression {
        groups = 0
        return expression(depth: 3)
    }

    private mutating func scalar() -> Unicode.Scalar { RandomExpression.letters[number(0...3)] }

    private mutating func expression(depth: Int) -> RandomExpression {
        switch number(0...(depth == 0 ? 7 : backtracks ? 17 : 15)) {
        case 0...2: return .scalar(scalar())
        case 3: return .any
        case 4: return .set((0...number(0...2)).map { _ in scalar() }, isNegated: number(0...1) == 0)
        case 5: return .start
        case 6: return .end
        case 7: return .wordBoundary(number(0...1) == 0)
        case 8...10: return .sequence((0...number(0...3)).map { _ in expression(depth: depth - 1) })
        case 11: return .either((0...number(1...2)).map { _ in expression(depth: depth - 1) })
        case 12:
            groups += 1
            let group = groups
            return .group(group, expression(depth: depth - 1))
        case 16: return .look(isNegated: number(0...1) == 0, expression(depth: depth - 1))
        case 17: return groups > 0 ? .backreference(number(1...groups)) : .any
        default:
            let minimum = number(0...2)
            let maximum = number(0...1) == 0 ? nil : minimum + number(0...2)
            let inner = expression(depth: depth - 1)
            return .repeated(inner, minimum: minimum, maximum: maximum, isLazy: number(0...2) == 0)
        }
    }
}
