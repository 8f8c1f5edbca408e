import LoveseatQuery
import LoveseatText

/// Operators. Values of different kinds can be compared, and comparisons with something MISSING are MISSING.
extension ExpressionProtocol {
    // MARK: Arithmetic

    /// Multiplies by another number.
    public func multiply(_ expression: any ExpressionProtocol) -> Expression { binary(.multiply, expression) }

    /// Divides by another number. Integers are divided without a remainder, and division by zero is MISSING.
    public func divide(_ expression: any ExpressionProtocol) -> Expression { binary(.divide, expression) }

    /// The remainder of a division, with the sign of the left number.
    public func modulo(_ expression: any ExpressionProtocol) -> Expression { binary(.modulo, expression) }

    /// Adds another number.
    public func add(_ expression: any ExpressionProtocol) -> Expression { binary(.add, expression) }

    /// Subtracts another number.
    public func subtract(_ expression: any ExpressionProtocol) -> Expression { binary(.subtract, expression) }

    // MARK: Comparisons

    /// Whether this is less than another value.
    public func lessThan(_ expression: any ExpressionProtocol) -> Expression { comparison(.less, expression) }

    /// Whether this is less than another value, or equal.
    public func lessThanOrEqualTo(_ expression: any ExpressionProtocol) -> Expression {
        comparison(.lessOrEqual, expression)
    }

    /// Whether this is greater than another value.
    public func greaterThan(_ expression: any ExpressionProtocol) -> Expression {
        comparison(.greater, expression)
    }

    /// Whether this is greater than another value, or equal.
    public func greaterThanOrEqualTo(_ expression: any ExpressionProtocol) -> Expression {
        comparison(.greaterOrEqual, expression)
    }

    /// Whether this equals another value.
    public func equalTo(_ expression: any ExpressionProtocol) -> Expression { comparison(.equal, expression) }

    /// Whether this differs from another value.
    public func notEqualTo(_ expression: any ExpressionProtocol) -> Expression {
        comparison(.notEqual, expression)
    }

    /// Whether this is between two values, both included.
    public func between(
        _ expression1: any ExpressionProtocol,
        and expression2: any ExpressionProtocol
    ) -> Expression {
        comparison(with: [expression1, expression2]) { .between($0[0], $0[1], $0[2], isNegated: false) }
    }

    /// Whether this equals one of several values.
    public func `in`(_ expressions: [any ExpressionProtocol]) -> Expression {
        comparison(with: expressions) { .contained($0[0], Array($0.dropFirst()), isNegated: false) }
    }

    /// Whether this equals another value, where MISSING equals MISSING. With null it is `IS NULL`, which is MISSING for MISSING.
    public func `is`(_ expression: any ExpressionProtocol) -> Expression {
        comparison(with: [expression]) {
            $0[1].kind == .literal(.null)
                ? .test($0[0], .null, isNegated: false) : .binary(.is, $0[0], $0[1])
        }
    }

    /// Whether this differs from another value, where MISSING equals MISSING. With null it is `IS NOT NULL`, which is MISSING for
    /// MISSING.
    public func isNot(_ expression: any ExpressionProtocol) -> Expression {
        comparison(with: [expression]) {
            $0[1].kind == .literal(.null)
                ? .test($0[0], .null, isNegated: true) : .binary(.isNot, $0[0], $0[1])
        }
    }

    /// Whether this is neither MISSING nor null.
    public func isValued() -> Expression {
        Expression(of: [self]) { .test($0[0], .valued, isNegated: false) }
    }

    /// Whether this is MISSING or null.
    public func isNotValued() -> Expression {
        Expression(of: [self]) { .test($0[0], .valued, isNegated: true) }
    }

    // MARK: Texts

    /// Whether this text matches a pattern, in which `%` stands for any characters, `_` for one, and `\` makes the next one ordinary.
    /// Case counts.
    public func like(_ expression: any ExpressionProtocol) -> Expression {
        comparison(with: [expression]) { .like($0[0], pattern: $0[1], isNegated: false) }
    }

    /// Whether a regular expression, in the syntax of ECMAScript, is found in this text.
    public func regex(_ expression: any ExpressionProtocol) -> Expression {
        .function("REGEXP_LIKE", self, expression)
    }

    /// Says how texts are compared: where this is an operand of a comparison, `like`, `between`, `in` or ``Function/contains(_:substring:)``,
    /// or where it is sorted by. Without a collation, texts are compared by their bytes.
    public func collate(_ collation: any CollationProtocol) -> Expression {
        Expression(of: [self]) { .collated($0[0], collation.collation.options) }
    }

    // MARK: Logic

    /// Whether both conditions are true.
    public func and(_ expression: any ExpressionProtocol) -> Expression {
        // A chain is one expression, so that a long one is not a deep one.
        Expression(of: [self, expression]) {
            .and($0.flatMap { if case .and(let items) = $0.kind { items } else { [$0] } })
        }
    }

    /// Whether at least one of the conditions is true.
    public func or(_ expression: any ExpressionProtocol) -> Expression {
        Expression(of: [self, expression]) {
            .or($0.flatMap { if case .or(let items) = $0.kind { items } else { [$0] } })
        }
    }
}

// MARK: - Trees

extension ExpressionProtocol {
    private func binary(_ name: QueryExpression.BinaryOperator, _ other: any ExpressionProtocol) -> Expression
    {
        Expression(of: [self, other]) { .binary(name, $0[0], $0[1]) }
    }

    private func comparison(_ name: QueryExpression.BinaryOperator, _ other: any ExpressionProtocol)
        -> Expression
    {
        comparison(with: [other]) { .binary(name, $0[0], $0[1]) }
    }

    /// A comparison under the collation of its operands, of which the first counts. In the language, a collation is attached to the
    /// comparison.
    func comparison(
        with others: [any ExpressionProtocol],
        _ kind: ([QueryExpression]) -> QueryExpression.Kind
    ) -> Expression {
        Expression(of: [self] + others) { operands in
            var collation: TextCollation?
            let bare = operands.map { operand in
                guard case .collated(let value, let own) = operand.kind, !value.isComparison else {
                    return operand
                }
                collation = collation ?? own
                return value
            }
            let comparison = kind(bare)
            return collation.map { .collated(QueryExpression(comparison), $0) } ?? comparison
        }
    }
}

extension QueryExpression {
    /// Whether a collation applies to the expression itself.
    fileprivate var isComparison: Bool {
        switch kind {
        case .contained, .like, .between, .function("CONTAINS", _): return true
        case .binary(let name, _, _):
            switch name {
            case .less, .lessOrEqual, .greater, .greaterOrEqual, .equal, .notEqual, .is, .isNot: return true
            default: return false
            }
        default: return false
        }
    }
}
