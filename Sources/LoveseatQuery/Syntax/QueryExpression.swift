import LoveseatModel
package import LoveseatText

/// A step of a path into a document: a key, or a position in an array.
package enum PathStep: Hashable, Sendable {
    case key(String)
    /// A position from 0, or from the end if negative.
    case index(Int)

    /// Keys are compared by their bytes.
    package static func == (one: PathStep, other: PathStep) -> Bool {
        switch (one, other) {
        case (.key(let one), .key(let other)): one.isExactly(other)
        case (.index(let one), .index(let other)): one == other
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .key(let key): hasher.combine(ExactText(key))
        case .index(let index): hasher.combine(index)
        }
    }
}

/// An expression of a query, as parsed or as built. Expressions are equal wherever they stand in a text.
package struct QueryExpression: Hashable, Sendable {
    package let kind: Kind
    /// The first byte in the query's text, or nil if the expression was not parsed.
    package let position: Int?
    /// The height of the tree, which is bounded. A chain counts as one level, and its length as more.
    package let depth: Int
    /// The number of expressions in the tree, which is bounded.
    package let count: Int

    package init(_ kind: Kind, at position: Int? = nil) {
        let kind = kind.flattened
        let children = kind.children
        self.kind = kind
        self.position = position
        depth = kind.levels + (children.map(\.depth).max() ?? 0)
        count = 1 + children.reduce(0) { $0 + $1.count }
    }

    package static func == (one: QueryExpression, other: QueryExpression) -> Bool { one.kind == other.kind }

    package func hash(into hasher: inout Hasher) { hasher.combine(kind) }

    /// Whether the value depends on a document, as far as names tell: those within ANY and EVERY may be variables.
    var readsDocuments: Bool {
        switch kind {
        case .property, .wildcard, .meta, .rank, .match: true
        case .quantified: false
        default: kind.children.contains { $0.readsDocuments }
        }
    }

    package enum UnaryOperator: Hashable, Sendable { case negate, plus, not }

    package enum BinaryOperator: String, Hashable, Sendable {
        case add = "+"
        case subtract = "-"
        case multiply = "*"
        case divide = "/"
        case modulo = "%"
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="
        case equal = "="
        case notEqual = "!="
        case `is` = "IS"
        case isNot = "IS NOT"
        case shiftLeft = "<<"
        case shiftRight = ">>"
        case bitAnd = "&"
        case bitOr = "|"

        /// Which chains an operator of arithmetic may be in: of sums, or of products.
        fileprivate var chain: Int? {
            switch self {
            case .add, .subtract: 0
            case .multiply, .divide, .modulo: 1
            default: nil
            }
        }
    }

    /// An operator of a chain, with its right operand.
    package struct Link: Hashable, Sendable {
        package var name: BinaryOperator
        package var operand: QueryExpression
    }

    package enum Test: Hashable, Sendable { case null, missing, valued }

    package enum Quantifier: Hashable, Sendable { case any, every, anyAndEvery }

    /// A full-text index by name, with the alias of its collection if one was written.
    package struct IndexReference: Hashable, Sendable {
        package var source: String?
        package var name: String
        package init(source: String? = nil, name: String) {
            self.source = source
            self.name = name
        }
    }

    package struct Branch: Hashable, Sendable {
        package var condition: QueryExpression
        package var result: QueryExpression
        package init(condition: QueryExpression, result: QueryExpression) {
            self.condition = condition
            self.result = result
        }
    }

    package struct Member: Hashable, Sendable {
        package var key: String
        package var value: QueryExpression
        package init(key: String, value: QueryExpression) {
            self.key = key
            self.value = value
        }
    }

    package indirect enum Kind: Hashable, Sendable {
        case literal(QueryValue)
        case array([QueryExpression])
        case object([Member])
        case parameter(String)
        case property([PathStep])
        /// `*`, or everything of one source.
        case wildcard(source: String?)
        /// `META(source)`; without a name the whole object.
        case meta(source: String?, name: String?)
        /// A path into the value of an expression.
        case nested(QueryExpression, [PathStep])
        case unary(UnaryOperator, QueryExpression)
        case binary(BinaryOperator, QueryExpression, QueryExpression)
        /// Sums of sums, or products of products, from the left: `a + b - c`. Made of `binary` expressions.
        case chain(QueryExpression, [Link])
        case and([QueryExpression])
        case or([QueryExpression])
        case concatenation([QueryExpression])
        case test(QueryExpression, Test, isNegated: Bool)
        case contained(QueryExpression, [QueryExpression], isNegated: Bool)
        case like(QueryExpression, pattern: QueryExpression, isNegated: Bool)
        case between(QueryExpression, QueryExpression, QueryExpression, isNegated: Bool)
        case choice(operand: QueryExpression?, [Branch], otherwise: QueryExpression?)
        case quantified(Quantifier, variable: String, collection: QueryExpression, condition: QueryExpression)
        /// The name is in capitals.
        case function(String, [QueryExpression])
        case match(IndexReference, QueryExpression)
        case rank(IndexReference)
        case exists(SelectQuery)
        case collated(QueryExpression, TextCollation)

        /// A chain instead of a binary expression whose left operand belongs to it.
        fileprivate var flattened: Self {
            guard case .binary(let name, let left, let right) = self, let chain = name.chain else {
                return self
            }
            let link = Link(name: name, operand: right)
            switch left.kind {
            case .binary(let other, let first, let second) where other.chain == chain:
                return .chain(first, [Link(name: other, operand: second), link])
            case .chain(let first, let links) where links.first?.name.chain == chain:
                return .chain(first, links + [link])
            default: return self
            }
        }

        /// How much deeper a tree is than its children.
        var levels: Int {
            guard case .chain(_, let links) = self else { return 1 }
            return 1 + links.count / QueryLimits.linksOfLevel
        }

        var children: [QueryExpression] {
            switch self {
            case .literal, .parameter, .property, .wildcard, .meta, .rank, .exists: []
            case .array(let items), .and(let items), .or(let items), .concatenation(let items),
                .function(_, let items):
                items
            case .object(let members): members.map(\.value)
            case .nested(let value, _), .unary(_, let value), .test(let value, _, _), .match(_, let value),
                .collated(let value, _):
                [value]
            case .binary(_, let left, let right), .like(let left, let right, _): [left, right]
            case .chain(let first, let links): [first] + links.map(\.operand)
            case .contained(let value, let items, _): [value] + items
            case .between(let value, let low, let high, _): [value, low, high]
            case .choice(let operand, let branches, let otherwise):
                [operand, otherwise].compactMap { $0 } + branches.flatMap { [$0.condition, $0.result] }
            case .quantified(_, _, let collection, let condition): [collection, condition]
            }
        }
    }
}
