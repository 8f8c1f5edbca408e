import LoveseatQuery
import LoveseatTesting
import LoveseatText

/// Makes random trees of the shapes that the parser makes.
struct RandomQuery {
    var generator: SeededGenerator

    private static let names = [
        "a", "b c", "select", "`", "é", "ALL", "count", "_id", "x.y", "", "some", "v$1",
    ]

    private mutating func name() -> String { generator.pick(Self.names) }

    private mutating func steps() -> [PathStep] {
        [.key(name())]
            + (0..<generator.int(0...2)).map { _ in
                generator.chance(0.3) ? .index(generator.int(-3...3)) : .key(name())
            }
    }

    private mutating func expressions(_ count: ClosedRange<Int>, _ depth: Int) -> [QueryExpression] {
        (0..<generator.int(count)).map { _ in expression(depth) }
    }

    private mutating func optional(_ depth: Int) -> QueryExpression? {
        generator.chance(0.5) ? expression(depth) : nil
    }

    mutating func query(_ depth: Int) -> SelectQuery {
        var query = SelectQuery(from: source())
        query.isDistinct = generator.chance(0.2)
        query.results = expressions(1...3, depth).map {
            .init($0, alias: generator.chance(0.5) ? name() : nil)
        }
        for _ in 0..<generator.int(0...2) {
            if generator.chance(0.3) {
                query.joins.append(.unnest(expression(depth), alias: generator.chance(0.5) ? name() : nil))
            } else {
                query.joins.append(
                    .collection(generator.pick([.inner, .left, .cross]), source(), on: optional(depth))
                )
            }
        }
        query.condition = optional(depth)
        query.grouping = expressions(0...2, depth)
        if !query.grouping.isEmpty { query.having = optional(depth) }
        query.order = expressions(0...2, depth).map { .init($0, isDescending: generator.chance(0.5)) }
        query.limit = optional(depth)
        query.offset = optional(depth)
        return query
    }

    private mutating func source() -> SelectQuery.Source {
        .init(
            scope: generator.chance(0.5) ? name() : nil,
            name: name(),
            alias: generator.chance(0.5) ? name() : nil
        )
    }

    mutating func expression(_ depth: Int) -> QueryExpression {
        QueryExpression(depth == 0 ? leaf() : branch(depth - 1))
    }

    private mutating func leaf() -> QueryExpression.Kind {
        let values: [QueryValue] = [
            .missing, .null, .bool(true), .integer(-7), .integer(5), .double(-0.5), .double(1e300),
            .string("it's"),
        ]
        switch generator.int(0...6) {
        case 0: return .parameter(name())
        case 1: return .wildcard(source: generator.chance(0.5) ? name() : nil)
        case 2:
            return .meta(
                source: generator.chance(0.5) ? name() : nil,
                name: generator.chance(0.8) ? name() : nil
            )
        case 3: return .rank(.init(source: generator.chance(0.5) ? name() : nil, name: name()))
        case 4: return .property(steps())
        default: return .literal(generator.pick(values))
        }
    }

    private mutating func branch(_ depth: Int) -> QueryExpression.Kind {
        let operators: [QueryExpression.BinaryOperator] = [
            .add, .subtract, .multiply, .divide, .modulo, .less, .lessOrEqual, .greater, .greaterOrEqual,
            .equal,
            .notEqual, .is, .isNot, .shiftLeft, .shiftRight, .bitAnd, .bitOr,
        ]
        let isNegated = generator.chance(0.5)
        switch generator.int(0...16) {
        case 0: return .array(expressions(0...3, depth))
        case 1:
            return .object(
                Set((0..<generator.int(0...2)).map { _ in name() }).map {
                    .init(key: $0, value: expression(depth))
                }
            )
        case 2: return nested(depth)
        case 3: return .unary(generator.pick([.negate, .plus, .not]), expression(depth))
        case 4, 5, 6: return .binary(generator.pick(operators), expression(depth), expression(depth))
        case 7: return .and(expressions(2...3, depth))
        case 8: return .or(expressions(2...3, depth))
        case 9: return .concatenation(expressions(2...3, depth))
        case 10:
            return .test(expression(depth), generator.pick([.null, .missing, .valued]), isNegated: isNegated)
        case 11: return .contained(expression(depth), expressions(0...3, depth), isNegated: isNegated)
        case 12:
            return isNegated
                ? .like(expression(depth), pattern: expression(depth), isNegated: generator.chance(0.5))
                : .between(
                    expression(depth),
                    expression(depth),
                    expression(depth),
                    isNegated: generator.chance(0.5)
                )
        case 13:
            return .choice(
                operand: optional(depth),
                (0..<generator.int(1...2)).map { _ in
                    .init(condition: expression(depth), result: expression(depth))
                },
                otherwise: optional(depth)
            )
        case 14:
            return .quantified(
                generator.pick([.any, .every, .anyAndEvery]),
                variable: name(),
                collection: expression(depth),
                condition: expression(depth)
            )
        case 15:
            return generator.chance(0.2)
                ? .exists(query(0))
                : isNegated
                    ? .match(.init(source: nil, name: name()), expression(depth))
                    : .function(generator.pick(["LOWER", "COUNT", "CONCAT"]), expressions(0...3, depth))
        default:
            let collation = TextCollation(
                isUnicode: isNegated,
                ignoresCase: generator.chance(0.5),
                ignoresAccents: generator.chance(0.5),
                locale: generator.chance(0.5) ? name() : nil
            )
            return .collated(expression(depth), collation)
        }
    }

    /// A path behind a property or `META()` is part of these.
    private mutating func nested(_ depth: Int) -> QueryExpression.Kind {
        let value = expression(depth)
        switch value.kind {
        case .property, .wildcard, .meta(_, nil): return .unary(.negate, value)
        case .meta where generator.chance(0.5):
            return .nested(value, [.index(generator.int(-3...3))] + steps())
        default: return .nested(value, steps())
        }
    }
}
