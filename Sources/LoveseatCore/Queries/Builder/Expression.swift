public import LoveseatModel
import LoveseatQuery
import LoveseatStorage

/// An expression of a ``QueryBuilder`` query: an ``Expression``, or something that stands for one.
public protocol ExpressionProtocol: Sendable {
    /// The expression.
    var expression: Expression { get }
}

/// An expression of a ``QueryBuilder`` query: a property, a value, or the result of operators and functions.
///
/// Making an expression never fails. A mistake, such as a path that is not one, is thrown as `invalidQuery` when the query is made or run.
public struct Expression: ExpressionProtocol {
    let tree: Swift.Result<QueryExpression, QueryError>

    /// The expression itself.
    public var expression: Expression { self }

    // MARK: Properties and parameters

    /// A property of a document, such as `address.city`, `tags[0]`, or `tags[-1]` for the last item.
    ///
    /// A dot, a bracket or a backslash that belongs to a name has a backslash in front.
    public static func property(_ path: String) -> PropertyExpression { PropertyExpression(path) }

    /// The whole document.
    public static func all() -> PropertyExpression { PropertyExpression() }

    /// The parameter of this name, whose value is set in ``BuiltQuery/parameters``.
    public static func parameter(_ name: String) -> Expression { Expression(.parameter(name)) }

    /// A full-text index, for ``FullTextFunction``.
    public static func fullTextIndex(_ name: String) -> FullTextIndexExpression {
        FullTextIndexExpression(source: nil, name: name)
    }

    // MARK: Values

    /// A JSON value. Nil is null. An infinity or NaN makes the query throw `invalidQuery`.
    public static func value(_ value: JSONValue?) -> Expression {
        do throws(QueryError) { return Expression(try QueryExpression(value ?? .null)) } catch {
            return Expression(tree: .failure(error))
        }
    }

    /// A value of a type, as a document stores it: a date is its ISO 8601 text. Nil is null.
    ///
    /// A value that cannot be encoded makes the query throw `invalidQuery`.
    @_disfavoredOverload
    public static func value<T: Encodable>(_ value: T?) -> Expression {
        self.value(value.map { JSONValue(orUnusable: $0) })
    }

    // MARK: Negation

    /// The logical negation: true if the expression is false, and MISSING if it is MISSING.
    public static func not(_ expression: any ExpressionProtocol) -> Expression {
        Expression(of: [expression]) { .unary(.not, $0[0]) }
    }
}

// MARK: - Trees

extension Expression {
    init(_ tree: QueryExpression) {
        // Deeper trees could exhaust the stack, and wider ones the memory.
        guard tree.depth <= QueryLimits.depth, tree.count <= QueryLimits.nodes else {
            self.init(
                tree: .failure(
                    QueryError(
                        .invalidQuery,
                        "The expression is nested more than \(QueryLimits.depth) deep, or has more than \(QueryLimits.nodes) parts: simplify it"
                    )
                )
            )
            return
        }
        self.init(tree: .success(tree))
    }

    init(_ kind: QueryExpression.Kind) { self.init(QueryExpression(kind)) }

    /// An expression of others, with as many trees as there are operands. The first mistake of an operand is its own.
    init(of operands: [any ExpressionProtocol], _ kind: ([QueryExpression]) -> QueryExpression.Kind) {
        var trees: [QueryExpression] = []
        trees.reserveCapacity(operands.count)
        for operand in operands {
            switch operand.expression.tree {
            case .success(let tree): trees.append(tree)
            case .failure:
                self = operand.expression
                return
            }
        }
        self.init(kind(trees))
    }

    /// An array of the values of expressions.
    package init(items: [any ExpressionProtocol]) { self.init(of: items) { .array($0) } }

    /// An object with the values of expressions.
    package init(members: [(name: String, value: any ExpressionProtocol)]) {
        self.init(of: members.map(\.value)) { values in
            .object(zip(members, values).map { QueryExpression.Member(key: $0.name, value: $1) })
        }
    }

    /// The expression in the language of queries.
    ///
    /// - Throws: `invalidQuery` for a mistake in it.
    package func text() throws(LoveseatError) -> String {
        switch tree {
        case .success(let tree): return tree.text
        case .failure(let error): throw LoveseatError(error)
        }
    }

    static func function(_ name: String, _ arguments: any ExpressionProtocol...) -> Expression {
        Expression(of: arguments) { .function(name, $0) }
    }
}

// MARK: - Properties

/// A property of a document, or the whole document.
public struct PropertyExpression: ExpressionProtocol {
    /// Nil for the whole document.
    private let steps: Swift.Result<[PathStep], QueryError>?

    init() { steps = nil }

    init(_ path: String) {
        let problem = QueryError(
            .invalidQuery,
            "\"\(path)\" is not the path of a property: write one such as address.city or tags[0]"
        )
        steps = PathStep.steps(path).map { .success($0) } ?? .failure(problem)
    }

    /// The property of the first collection, which must be the only one.
    public var expression: Expression { expression(source: nil) }

    /// Takes the property from the collection with this alias, which is needed where there are several.
    public func from(_ alias: String) -> Expression { expression(source: alias) }

    private func expression(source: String?) -> Expression {
        switch steps {
        case nil: return Expression(.wildcard(source: source))
        case .failure(let error): return Expression(tree: .failure(error))
        case .success(let steps):
            let path = (source.map { [.key($0)] } ?? []) + steps
            guard case .key = path.first else {
                let problem = "A property's path begins with a name, or with the alias of a collection"
                return Expression(tree: .failure(QueryError(.invalidQuery, problem)))
            }
            return Expression(.property(path))
        }
    }
}

/// Properties of documents that are not in their bodies.
public enum Meta {
    /// The document's ID, a text.
    public static var id: MetaExpression { MetaExpression(name: "id") }
    /// The ID of the current revision, a text.
    public static var revisionID: MetaExpression { MetaExpression(name: "revisionID") }
    /// The number of the document's latest change in its collection, which grows with each change.
    public static var sequence: MetaExpression { MetaExpression(name: "sequence") }
    /// Whether the document was deleted. A query that has this also finds deleted documents.
    public static var isDeleted: MetaExpression { MetaExpression(name: "deleted") }
    /// When the document expires, in milliseconds since 1970; MISSING if it does not.
    public static var expiration: MetaExpression { MetaExpression(name: "expiration") }
}

/// A property of a document that is not in its body.
public struct MetaExpression: ExpressionProtocol {
    let name: String

    /// The property of the first collection, which must be the only one.
    public var expression: Expression { Expression(.meta(source: nil, name: name)) }

    /// Takes the property from the collection with this alias, which is needed where there are several.
    public func from(_ alias: String) -> Expression { Expression(.meta(source: alias, name: name)) }
}
