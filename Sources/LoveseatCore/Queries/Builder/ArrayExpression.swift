import LoveseatQuery

/// Conditions on the items of an array.
///
/// ```swift
/// let tag = ArrayExpression.variable("tag")
/// let isTall = ArrayExpression.any(tag).in(Expression.property("tags")).satisfies(tag.equalTo(Expression.value("tall")))
/// ```
public enum ArrayExpression {
    /// An item of an array under a name of its choice, or a property of the item, such as `line.price`.
    public static func variable(_ name: String) -> VariableExpression { VariableExpression(path: name) }

    /// Whether at least one item satisfies a condition.
    public static func any(_ variable: VariableExpression) -> ArrayExpressionIn {
        ArrayExpressionIn(quantifier: .any, variable: variable)
    }

    /// Whether all items satisfy a condition. True if there are none.
    public static func every(_ variable: VariableExpression) -> ArrayExpressionIn {
        ArrayExpressionIn(quantifier: .every, variable: variable)
    }

    /// Whether there are items, and all satisfy a condition.
    public static func anyAndEvery(_ variable: VariableExpression) -> ArrayExpressionIn {
        ArrayExpressionIn(quantifier: .anyAndEvery, variable: variable)
    }
}

/// An item of an array, or a property of it, in the condition of an ``ArrayExpression``.
public struct VariableExpression: ExpressionProtocol {
    let path: String

    /// The value of the variable.
    public var expression: Expression { Expression.property(path).expression }
}

/// A condition on the items of an array that is not named yet.
public struct ArrayExpressionIn: Sendable {
    let quantifier: QueryExpression.Quantifier
    let variable: VariableExpression

    /// Names the array, usually a property.
    public func `in`(_ expression: any ExpressionProtocol) -> ArrayExpressionSatisfies {
        ArrayExpressionSatisfies(quantifier: quantifier, variable: variable, array: expression)
    }
}

/// An array whose items are to satisfy a condition.
public struct ArrayExpressionSatisfies: Sendable {
    let quantifier: QueryExpression.Quantifier
    let variable: VariableExpression
    let array: any ExpressionProtocol

    /// Sets the condition, which speaks of the item by the variable.
    public func satisfies(_ expression: any ExpressionProtocol) -> Expression {
        guard case .success(let tree) = variable.expression.tree, case .property(let steps) = tree.kind,
            steps.count == 1, case .key(let name) = steps[0]
        else {
            let problem =
                "\"\(variable.path)\" is not the name of a variable: use one without dots and brackets"
            return Expression(tree: .failure(QueryError(.invalidQuery, problem)))
        }
        return Expression(of: [array, expression]) {
            .quantified(quantifier, variable: name, collection: $0[0], condition: $0[1])
        }
    }
}

/// Functions of arrays.
public enum ArrayFunction {
    /// Whether an array contains a value.
    public static func contains(_ expression: any ExpressionProtocol, value: any ExpressionProtocol)
        -> Expression
    {
        .function("ARRAY_CONTAINS", expression, value)
    }

    /// The number of an array's items; 0 for anything else.
    public static func length(_ expression: any ExpressionProtocol) -> Expression {
        .function("ARRAY_LENGTH", expression)
    }
}

/// Functions of full-text indexes.
public enum FullTextFunction {
    /// Whether a document has the words of a full-text query, such as `sunny terrace`. It may stand only at the top of WHERE, or in
    /// conditions joined by ``ExpressionProtocol/and(_:)`` there.
    ///
    /// All words have to be in the document. `OR`, `NOT` and parentheses combine them, `"a phrase"` stands in quotes, and `wor*` finds all
    /// words that begin so. A malformed query makes the run throw.
    public static func match(_ index: FullTextIndexExpression, query: String) -> Expression {
        Expression(.match(index.reference, QueryExpression(.literal(.string(query)))))
    }

    /// How well a document fits the `match` of the same index: greater is better.
    public static func rank(_ index: FullTextIndexExpression) -> Expression {
        Expression(.rank(index.reference))
    }
}

/// A full-text index of a collection.
public struct FullTextIndexExpression: Sendable {
    let source: String?
    let name: String

    var reference: QueryExpression.IndexReference { .init(source: source, name: name) }

    /// Takes the index from the collection with this alias, which is needed where there are several.
    public func from(_ alias: String) -> FullTextIndexExpression {
        FullTextIndexExpression(source: alias, name: name)
    }
}
